/// \file
/// The log-probabilities of one shard of a packed batch: its labels by the map, then the numbers
/// from its logits. What next_token_logprobs brings to the batch and a fused loss is evaluated on.
// For the folders above too.
#pragma once

#include <cstdint>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/logprob/label_log_probs.hpp"
#include "seqpack/logprob/log_prob_state.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/tokens/per_token.hpp"

namespace seqpack::detail {

/// Allocates the state of a shard and writes its labels: `label` of each token, as per_token calls
/// it. One launch. Of this rank alone, so that it can be a part of what ranks check together.
template <class C, executor E, class View, class Label>
log_prob_state<C> labelled_shard(const E& where, const View& view, shard mine, const Label& label,
                                 bool with_entropy = false) {
  log_prob_state<C> state(where, view.shard_tokens(), with_entropy);
  per_token(where, view, mine, token_array<std::int64_t, Label>{state.labels(), label});
  return state;
}

/// Fills the state of a labelled shard from its logits; collective over tp, as label_log_probs is.
template <executor E, communicator TP, logit T, class C>
void find_log_probs(const E& where, TP& tp, const matrix_view<T>& logits,
                    const column_range& columns, const log_prob_state<C>& state,
                    const log_prob_options& options) {
  label_log_probs(where, tp, logits, columns, state.labels(), state.rows(), options);
}

/// From the derivatives with respect to the log-probabilities of a shard to those with respect to
/// its logits, as label_log_probs_backward.
template <executor E, logit T, class C, logit G>
void find_gradient(const E& where, const matrix_view<T>& logits, const column_range& columns,
                   const log_prob_state<C>& state, const row_view<const C>& derivatives,
                   const matrix_view<G>& gradient, const log_prob_options& options) {
  label_log_probs_backward(where, logits, columns, state.labels(), state.rows(), derivatives,
                           gradient, options);
}

}  // namespace seqpack::detail
