/// \file
/// The concept of a loss: a function of a sequence, or of a tuple of them, that gives a value and
/// its derivative.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/loss/detail/loss_archetypes.hpp"
#include "seqpack/loss/differentiable.hpp"
#include "seqpack/loss/loss_kind.hpp"
#include "seqpack/loss/metric.hpp"
#include "seqpack/loss/sequence.hpp"
#include "seqpack/tokens/batch_fields.hpp"

namespace seqpack {

/// A loss: a small value type whose call operator takes the sequences of one term, a *tuple*: one
/// sequence, or `L::sequences` of them that follow each other in the batch (a pair of a chosen and a
/// rejected one). It returns `differentiable(value, derivative...)` with a derivative for each. The
/// library adds up the values of all tuples, each times the sample_mask of its first sequence, and
/// divides by the global count of the loss's level. A loss knows nothing of packing, padding,
/// sharding or ranks.
///
/// What it may ask of a sequence is in batch_sequence, log_prob_sequence and logits_sequence.
///
/// - `L::input`: loss_input
/// - `L::level`: loss_level
/// - `L::metrics`: a metric_list; the call operator contributes with `record`
/// - `L::sequences`, if it is not 1
/// - `L::fields`, if it asks for fields beside input_ids: field_tags of those that a batch must
///   have
/// - `L::last_row`, of a loss on logits: true, if it looks at the output at the last token too
///
/// A loss for CUDA is callable on the device: SEQPACK_HD.
///
///     struct nll {
///       static constexpr auto input = loss_input::next_token_logprobs;
///       static constexpr auto level = loss_level::token;
///       using metrics = no_metrics;
///       SEQPACK_HD auto operator()(const auto& sequence) const {
///         return differentiable(-sequence.sum([&](offset_t t) { return sequence.logp(t); }),
///                               [](offset_t) { return -1.0; });
///       }
///     };
template <class L>
concept loss_function = std::is_trivially_copyable_v<L> && requires {
  requires std::same_as<std::remove_cv_t<decltype(L::input)>, loss_input>;
  requires std::same_as<std::remove_cv_t<decltype(L::level)>, loss_level>;
  { L::metrics::size } -> std::convertible_to<std::size_t>;
  requires detail::tuple_size<L> >= 1;
  requires detail::is_loss_result<L::input, detail::tuple_size<L>,
                                  decltype(detail::loss_returns<L, detail::loss_archetype<L>>(
                                      std::make_index_sequence<detail::tuple_size<L>>{}))>;
};

/// How many sequences a tuple of a loss has.
template <class L>
inline constexpr auto sequences_per_tuple = static_cast<offset_t>(detail::tuple_size<L>);

}  // namespace seqpack
