/// \file
/// What a model says about itself, and how its packed fields are found.
#pragma once

#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/tokens/field_tags.hpp"

namespace seqpack {

enum class attention_input;
enum class output_kind;
template <logit T>
struct model_output;
template <field_tag Tag, element T>
struct packed_field;

namespace detail {

template <class Tag, class T>
constexpr const row_view<const T>& find_packed(const packed_field<Tag, T>& f) {
  return f.rows;
}

template <class T>
inline constexpr bool is_model_output = false;
template <class T>
inline constexpr bool is_model_output<model_output<T>> = true;

// What a model is, one by one, so that an error can say what is missing.
template <class M>
concept says_attention = requires {
  requires std::is_same_v<std::remove_cv_t<decltype(M::attention)>, attention_input>;
};
template <class M>
concept says_output =
    requires { requires std::is_same_v<std::remove_cv_t<decltype(M::output)>, output_kind>; };

template <class M, class Input>
concept returns_output = requires(M& m, const Input& input) {
  requires is_model_output<std::remove_cvref_t<decltype(m(input))>>;
};

}  // namespace detail

}  // namespace seqpack
