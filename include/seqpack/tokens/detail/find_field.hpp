/// \file
/// Finds a field in a list of fields by its name.
#pragma once

#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/tokens/field_tags.hpp"

namespace seqpack {

template <field_tag Tag, token_table Table>
struct token_field_t;
template <field_tag Tag, element T>
struct sequence_field_t;
template <class... Fields>
struct field_list;

namespace detail {

// Overload resolution finds the field of a name among the bases of a list.
template <class Tag, class Table>
SEQPACK_HD constexpr const Table& find_tokens(const token_field_t<Tag, Table>& f) {
  return f.tokens;
}
template <class Tag, class T>
SEQPACK_HD constexpr const row_view<T>& find_sequences(const sequence_field_t<Tag, T>& f) {
  return f.sequences;
}

template <class List>
inline constexpr bool is_field_list = false;
template <class... Fields>
inline constexpr bool is_field_list<field_list<Fields...>> = true;

/// How many fields of a list have a name.
template <class Tag, class... Fields>
inline constexpr int fields_named = (0 + ... + int{std::is_same_v<Tag, typename Fields::tag>});

/// The masks are found by their names wherever they are missing, so they must be what they are.
template <class Field>
inline constexpr bool is_of_its_kind =
    !std::is_same_v<typename Field::tag,
                    std::conditional_t<Field::per_token, sample_mask_t, token_mask_t>>;

template <class X>
struct asked {
  using type = field_tags<>;
};
template <class X>
  requires requires { typename X::fields; }
struct asked<X> {
  using type = typename X::fields;
};

}  // namespace detail

}  // namespace seqpack
