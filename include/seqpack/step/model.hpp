/// \file
/// What a model is: a function from packed, sharded tokens to rows of logits, or of values.
#pragma once

#include <concepts>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/tokens/batch_fields.hpp"
#include "seqpack/tokens/packed_seq_params.hpp"

namespace seqpack {

/// How a model is told what attends to what.
enum class attention_input {
  packed_parameters,  ///< packed_seq_params of the packed row
  mask                ///< a causal mask, and position ids
};

/// What the rows of a model's output are.
enum class output_kind {
  logits,     ///< unnormalised log-probabilities of a vocabulary; a temperature divides them
  value_head  ///< values, [.., 1] or of any width, which no temperature touches
};

/// What a model gives back: one row per token of its shard. The memory is the model's, and must
/// live until the loss has been called; the gradient may be written to it.
template <logit T>
struct model_output {
  matrix_view<T> rows;   ///< [T / CP, columns.size()]
  column_range columns;  ///< which columns of the vocabulary they are; all D of a value head
};

/// A per-token field in packed rows.
template <field_tag Tag, element T>
struct packed_field {
  row_view<const T> rows;
};

/// What every model gets. All arrays are of this rank's shard, where the executor works.
template <class View, std::integral Id, class... Packed>
struct model_input : Packed... {
  using index_type = typename View::index_type;

  row_view<const Id> ids;                   ///< [T / CP], 0 in padding
  row_view<const index_type> position_ids;  ///< [T / CP]
  View layout;                              ///< the map, where the executor works
  shard place;                              ///< this rank's
};

namespace detail {

template <class Tag, class T>
constexpr const row_view<const T>& find_packed(const packed_field<Tag, T>& f) {
  return f.rows;
}

template <class T>
inline constexpr bool is_output = false;
template <class T>
inline constexpr bool is_output<model_output<T>> = true;

}  // namespace detail

/// The packed rows of a field that the model has asked for: [T / CP, D], 0 in padding.
template <field_tag Tag, class Input>
constexpr const auto& packed_rows(Tag, const Input& input) {
  return detail::find_packed<Tag>(input);
}

/// For a model that takes packed parameters.
template <class View, std::integral Id, class... Packed>
struct packed_model_input : model_input<View, Id, Packed...> {
  packed_seq_params<typename View::index_type> params;
};

/// For a model that takes a mask. The shard is [B, S / CP].
template <class View, std::integral Id, class... Packed>
struct unpacked_model_input : model_input<View, Id, Packed...> {
  offset_t batch = 0;                   ///< B
  offset_t width = 0;                   ///< S
  row_view<const bool> attention_mask;  ///< [1 or B, S / CP] rows of S: true where a key is hidden
};

/// A model of an input: something that is called with it and returns a model_output.
///
/// - `M::attention`: attention_input
/// - `M::output`: output_kind
/// - `M::fields`, if it asks for per-token fields beside the ids: field_tags. They are packed and
///   sharded as the ids are; `packed_rows(tag, input)` gives them.
///
/// forward_step calls it once, in the calling thread, on every rank of both groups. It may throw, and
/// communicate, best over groups of its own. `input.layout` looks at its arrays where the executor
/// works: on the host for a host executor, in kernels of the model's own for a stream.
///
///     struct bigram {
///       static constexpr auto attention = attention_input::packed_parameters;
///       static constexpr auto output = output_kind::logits;
///       std::vector<float> table;   // [256, 256]: the logits after each byte
///       std::vector<float> logits;
///       model_output<float> operator()(const auto& input) {
///         logits.resize(input.ids.rows * 256);
///         for (offset_t t = 0; t < input.ids.rows; ++t) {
///           std::copy_n(&table[*input.ids.at(t) * 256], 256, &logits[t * 256]);
///         }
///         return {{logits.data(), input.ids.rows, 256}, column_range(256)};
///       }
///     };
template <class M, class Input>
concept model = requires(M& m, const Input& input) {
  requires std::same_as<std::remove_cv_t<decltype(std::remove_cvref_t<M>::attention)>,
                        attention_input>;
  requires std::same_as<std::remove_cv_t<decltype(std::remove_cvref_t<M>::output)>, output_kind>;
  requires detail::is_output<std::remove_cvref_t<decltype(m(input))>>;
};

}  // namespace seqpack
