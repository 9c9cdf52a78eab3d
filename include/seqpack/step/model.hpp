/// \file
/// The concept of a model: a function from packed, sharded tokens to rows of logits, or of values.
#pragma once

#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/step/detail/model_traits.hpp"

namespace seqpack {

/// What tells a model which tokens attend to which.
enum class attention_input {
  packed_parameters,  ///< packed_seq_params of the packed row
  mask                ///< a causal mask, and position ids
};

/// The kind of a model's output.
enum class output_kind {
  logits,     ///< unnormalised log-probabilities of a vocabulary; a temperature divides them
  value_head  ///< values, [.., 1] or of any width, which no temperature touches
};

/// The result of a model: one row per token of its shard. The memory is the model's, and must
/// live until the loss has been called; the gradient may be written to it.
template <logit T>
struct model_output {
  matrix_view<T> rows;   ///< [T / CP, columns.size()]
  column_range columns;  ///< which columns of the vocabulary they are; all D of a value head
};

/// A model of an input: something that is called with a packed_model_input or an
/// unpacked_model_input, and returns a model_output.
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
concept model = detail::says_attention<std::remove_cvref_t<M>> &&
                detail::says_output<std::remove_cvref_t<M>> && detail::returns_output<M, Input>;

}  // namespace seqpack
