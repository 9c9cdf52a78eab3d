/// \file
/// Next-token log-probabilities of a packed, sharded batch, and the way back to its logits.
#pragma once

#include <cstdint>
#include <type_traits>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"
#include "seqpack/pack/field.hpp"
#include "seqpack/pack/layout_view.hpp"
#include "seqpack/pack/pack.hpp"
#include "seqpack/pack/per_token.hpp"
#include "seqpack/parallel/context_gather.hpp"
#include "seqpack/train/label_log_probs.hpp"
#include "seqpack/train/logits.hpp"

namespace seqpack {

/// What a forward pass over the rows of one shard leaves: the labels, the log-probabilities and
/// what the backward pass needs. O(T / CP) memory with an owner.
template <class C>
class log_prob_state {
 public:
  log_prob_state() = default;
  /// Room for `rows` rows; the entropy where asked.
  template <executor E>
  log_prob_state(const E& where, offset_t rows, bool with_entropy = false)
      : labels_(where, rows), numbers_(where, (with_entropy ? 4 : 3) * rows) {
    const auto part = [&](offset_t k) { return row_view<C>(numbers_.data() + k * rows, rows); };
    if (rows == 0) return;
    rows_ = {part(0), part(1), part(2)};
    if (with_entropy) rows_.entropy = part(3);
  }

  /// The label of each row.
  row_view<std::int64_t> labels() const { return labels_.rows(); }
  /// The results of each row.
  const label_log_prob_rows<C>& rows() const noexcept { return rows_; }

 private:
  workspace<std::int64_t> labels_;
  workspace<C> numbers_;
  label_log_prob_rows<C> rows_;
};

/// The log-probability of each token of a batch given the tokens before it:
///
///     out[b][s] = logp of token s + 1 of sequence b, 0 <= s < length - 1, and 0 elsewhere
///
/// from the logits of the rows that predict, wherever packing, sharding and the columns of the
/// vocabulary have put them. Every rank gets all of `out`.
///
/// **Collective** over both groups: an all-gather of three numbers per row over the tensor-parallel
/// ranks (four with the entropy) and one of a number per row over the context-parallel ranks (two).
///
/// \param layout where the tokens are
/// \param cp, tp the groups; the ranks of cp are the context-parallel ranks of the layout
/// \param ids [B, S], the same on all ranks
/// \param logits [T / CP, columns.size()], of this rank
/// \param out [B, S - 1] or wider, of float, or double for double logits; written, all of it
/// \param entropy the same shape, or a view of nothing: the entropy of the distribution that the
/// token was drawn from, in nats, written as `out` is
/// \returns what next_token_logprobs_backward needs
/// \throws invalid_input as per_token, label_log_probs and all_gather_unpack do.
///
/// Allocates O(T). Does not synchronise. One read of the logits.
template <executor E, layout L, communicator CP, communicator TP, token_table Ids, logit T, class C>
  requires runs_on<E, L> && gathers_on<E, CP> && gathers_on<E, TP>
log_prob_state<C> next_token_logprobs(const E& where, const L& layout, CP& cp, TP& tp,
                                      const Ids& ids, const matrix_view<T>& logits,
                                      const column_range& columns, const batch_view<C>& out,
                                      const log_prob_options& options = {},
                                      const std::type_identity_t<batch_view<C>>& entropy = {}) {
  const auto view = layout.view();
  const shard mine{cp.rank().value};
  checks::require_equal(checks::alone, "context-parallel size of the layout", view.cp.size(),
                        cp.size(), "the ranks of the group");
  checks::require_equal(checks::alone, "logits rows", logits.rows, view.shard_tokens(),
                        "the tokens of the layout in one shard");
  const bool with_entropy = entropy.data() != nullptr;
  const log_prob_state<C> state(where, logits.rows, with_entropy);
  per_token(where, view, mine, labels(ids, state.labels(), {.ignore = ignored_label}));
  label_log_probs(where, tp, logits, columns, state.labels(), state.rows(), options);

  const auto targets = view.without_last(1);
  const context_gather_options gather{.check_all_ranks = options.check_all_ranks};
  const auto spread = [&](const row_view<C>& rows, const batch_view<C>& to) {
    all_gather_unpack(where, cp, targets, field(row_view<const C>(rows), to), gather);
  };
  spread(state.rows().log_probs, out);
  if (with_entropy) spread(state.rows().entropy, entropy);
  return state;
}

/// From the gradient with respect to the log-probabilities to that with respect to the logits.
///
/// \param layout, columns, logits, options as in the forward pass
/// \param mine the shard of this rank
/// \param state what the forward pass has returned
/// \param derivatives [B, S - 1] or wider: of the loss with respect to out[b][s]. Entries without a
/// token are not read.
/// \param gradient [T / CP, columns.size()], written, all of it; it may be the logits themselves.
/// Rows whose derivative is 0 get 0, and their logits are not read.
/// \throws invalid_input as pack and label_log_probs_backward do.
///
/// Not collective. Allocates one number per row. Does not synchronise; two launches.
template <executor E, layout L, logit T, class C, logit G>
  requires runs_on<E, L>
void next_token_logprobs_backward(const E& where, const L& layout, shard mine,
                                  const log_prob_state<C>& state, const matrix_view<T>& logits,
                                  const column_range& columns,
                                  const std::type_identity_t<batch_view<const C>>& derivatives,
                                  const matrix_view<G>& gradient,
                                  const log_prob_options& options = {}) {
  const auto view = layout.view();
  checks::require_equal(checks::alone, "logits rows", logits.rows, view.shard_tokens(),
                        "the tokens of the layout in one shard");
  const workspace<C> rows(where, logits.rows);
  pack(where, view.without_last(1), mine, field(derivatives, rows.rows()));
  label_log_probs_backward(where, logits, columns, state.labels(), state.rows(), rows.rows(),
                           gradient, options);
}

}  // namespace seqpack
