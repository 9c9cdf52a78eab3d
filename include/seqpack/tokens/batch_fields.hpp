/// \file
/// The fields of a batch: which of them have a value for each token, and which for each sequence.
/// All of it is known at compile time.
#pragma once

#include <concepts>
#include <functional>
#include <ranges>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/order.hpp"
#include "seqpack/tokens/detail/find_field.hpp"
#include "seqpack/tokens/field_tags.hpp"

namespace seqpack {

/// A field with a value for each token: a batch of any kind, [B, S] or [B, S, D].
template <field_tag Tag, token_table Table>
struct token_field_t {
  using tag = Tag;
  static constexpr bool per_token = true;

  Table tokens;
};
/// A field with a value for each sequence: B elements.
template <field_tag Tag, element T>
struct sequence_field_t {
  using tag = Tag;
  static constexpr bool per_token = false;

  row_view<T> sequences;
};

/// Declares a per-token field.
template <field_tag Tag, token_table Table>
constexpr token_field_t<Tag, Table> token_field(Tag, const Table& table) {
  return {table};
}
/// Declares a per-sequence field: a contiguous range or a row_view of B elements, which must
/// outlive the field.
template <field_tag Tag, class Values>
constexpr auto sequence_field(Tag, Values&& values) {
  const row_view rows(std::forward<Values>(values));
  return sequence_field_t<Tag, typename std::remove_const_t<decltype(rows)>::element_type>{rows};
}

/// The fields of a batch. Views, nothing else: trivially copyable, host or device memory.
///
///     field_list(token_field(input_ids, ids), sequence_field(sample_mask, mask))
template <class... Fields>
struct field_list : Fields... {
  static_assert(((detail::fields_named<typename Fields::tag, Fields...> == 1) && ...),
                "two fields of a batch have the same name");
  static_assert((detail::is_of_its_kind<Fields> && ...),
                "token_mask has a value for each token, sample_mask for each sequence");

  constexpr explicit field_list(const Fields&... fields) : Fields(fields)... {}
};

/// Whether a list has a per-token field of the name.
template <class List, class Tag>
concept has_token_field = requires(const List& list) { detail::find_tokens<Tag>(list); };
/// Whether a list has a per-sequence field of the name.
template <class List, class Tag>
concept has_sequence_field = requires(const List& list) { detail::find_sequences<Tag>(list); };
/// Whether a list has a field of the name.
template <class List, class Tag>
concept has_field = has_token_field<List, Tag> || has_sequence_field<List, Tag>;

/// The view of a per-token field.
template <field_tag Tag, class List>
  requires has_token_field<List, Tag>
SEQPACK_HD constexpr const auto& tokens_of(Tag, const List& list) {
  return detail::find_tokens<Tag>(list);
}
/// The view of a per-sequence field.
template <field_tag Tag, class List>
  requires has_sequence_field<List, Tag>
SEQPACK_HD constexpr const auto& sequences_of(Tag, const List& list) {
  return detail::find_sequences<Tag>(list);
}

/// The fields that a loss or a model asks for: its `fields`, or none.
template <class X>
using asked_fields = typename detail::asked<X>::type;

/// The input of a training step: a batch declares its fields, among them input_ids, of integers.
/// `fields()` is called where it is needed; the memory of its views belongs to the batch, or to an
/// owner that outlives it.
///
///     struct text {
///       std::vector<int> lengths;
///       std::vector<std::int64_t> ids;  // [B, S]
///       offset_t width;                 // S
///       auto fields() const {
///         const auto rows = static_cast<offset_t>(lengths.size());
///         return field_list(token_field(input_ids, batch_view(ids.data(), rows, width)));
///       }
///     };
template <class B>
concept batch = requires(const B& b) {
  requires detail::is_field_list<std::remove_cvref_t<decltype(b.fields())>>;
  requires has_token_field<std::remove_cvref_t<decltype(b.fields())>, input_ids_t>;
  requires std::integral<
      typename std::remove_cvref_t<decltype(tokens_of(input_ids, b.fields()))>::value_type>;
};

/// A batch that says which of its sequences are packed, and in which slots: `order()`, which is or
/// becomes a slot_order that refers to memory of the batch. A micro_batch is one. The sequences that it
/// leaves out give 0 and are counted nowhere.
template <class B>
concept ordered_batch = batch<B> && requires(const B& b) {
  { b.order() } -> std::convertible_to<slot_order>;
};

namespace detail {

/// Whether what a call returns has its entries elsewhere, so that they are still there after it.
template <class R>
inline constexpr bool refers_to_entries =
    !std::ranges::range<R> || std::is_lvalue_reference_v<R> || std::ranges::borrowed_range<R>;

/// The order of a batch, or none.
template <class B>
slot_order order_of([[maybe_unused]] const B& batch) {
  if constexpr (!ordered_batch<B>) {
    return {};
  } else if constexpr (refers_to_entries<decltype(batch.order())>) {
    return batch.order();
  } else {
    static_assert(
        refers_to_entries<decltype(batch.order())>,
        "`order()` of a batch returns a copy of its entries, which nothing would keep: return "
        "a span of them, or a reference");
    return {};
  }
}

}  // namespace detail

/// How the lengths are found in a batch: a member pointer, or a function of the batch, that gives a
/// range of integers, on the host.
template <class P, class B>
concept lengths_projection =
    std::invocable<const P&, const B&> &&
    std::ranges::random_access_range<
        std::remove_cvref_t<std::invoke_result_t<const P&, const B&>>> &&
    integer_range<std::remove_cvref_t<std::invoke_result_t<const P&, const B&>>>;

}  // namespace seqpack
