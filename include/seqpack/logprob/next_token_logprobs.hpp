/// \file
/// Next-token log-probabilities of a packed, sharded batch, and the way back to its logits.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/logprob/detail/log_prob_checks.hpp"
#include "seqpack/logprob/detail/logits_checks.hpp"
#include "seqpack/logprob/detail/next_token_checks.hpp"
#include "seqpack/logprob/detail/shard_log_probs.hpp"
#include "seqpack/logprob/detail/temperature.hpp"
#include "seqpack/logprob/label_log_probs.hpp"
#include "seqpack/logprob/log_prob_state.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/move/field.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/parallel/context_gather.hpp"
#include "seqpack/parallel/detail/group_execution.hpp"
#include "seqpack/parallel/group_execution.hpp"
#include "seqpack/parallel/together.hpp"
#include "seqpack/tokens/batch_fields.hpp"
#include "seqpack/tokens/detail/targets.hpp"

namespace seqpack {

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
/// \throws invalid_input before anything is sent or written, as per_token, label_log_probs and
/// unpack do; an output in the memory of the logits, the ids, the layout's arrays or the other
/// output. With options.check_all_ranks on all ranks of both groups, as collective_mismatch.
///
/// Allocates O(T). Does not synchronise, but for the exchanges of check_all_ranks. One read of the
/// logits.
template <executor E, layout L, communicator CP, communicator TP, token_table Ids, logit T, class C>
  requires runs_on<E, L> && gathers_on<E, CP> && gathers_on<E, TP>
log_prob_state<C> next_token_logprobs(const E& where, const L& layout, CP& cp, TP& tp,
                                      const Ids& ids, const matrix_view<T>& logits,
                                      const column_range& columns, const batch_view<C>& out,
                                      const log_prob_options& options = {},
                                      const std::type_identity_t<batch_view<C>>& entropy = {}) {
  static_assert(std::same_as<C, compute_type<T>>,
                "log-probabilities are float, and double where the logits are");
  static_assert(std::integral<typename Ids::value_type>, "token ids are integers");
  const auto view = layout.view();
  const shard mine{cp.rank().value};
  tp.rank();
  [[maybe_unused]] const auto named_for_cp = detail::name_operation(cp, "next_token_logprobs");
  [[maybe_unused]] const auto named_for_tp = detail::name_operation(tp, "next_token_logprobs");
  const detail::current_device here(cp, tp);
  const auto predicting = view.without_last(1);
  // Without masks every token is a target.
  const field_list fields(token_field(input_ids, ids));
  using label_type = detail::counted_label<std::remove_const_t<decltype(fields)>>;
  const label_type next_label{fields, {}, 1};
  const bool with_entropy = entropy.positions() > 0 || entropy.data() != nullptr;
  log_prob_state<C> state;
  const auto check = [&] {
    detail::require_same_stream(where, cp);
    detail::require_same_stream(where, tp);
    detail::require_equal(detail::alone, "context-parallel size of the layout", view.cp.size(),
                          cp.size(), "the ranks of the group");
    detail::require_equal(detail::alone, "logits rows", logits.rows, view.shard_tokens(),
                          "the tokens of the layout in one shard");
    detail::require_logits_of(logits, columns);
    detail::reciprocal<C>(options.temperature);
    detail::require_table<E>(detail::alone, "ids", view, ids, false);
    detail::require_log_prob_table<E>("log-probabilities", predicting, out);
    if (with_entropy) detail::require_log_prob_table<E>("entropy", predicting, entropy);
    detail::regions<3, 2> memory;
    memory.read_layout(view);
    memory.read(logits.touched(), detail::alone, "logits");
    memory.read(ids.touched(), detail::alone, "ids");
    memory.read(ids.bounds_touched(), detail::alone, "ids bounds");
    memory.write(out.touched(), detail::alone, "log-probabilities");
    memory.write(entropy.touched(), detail::alone, "entropy");
    memory.require_apart();
    if constexpr (host_executor<E>) detail::require_known_targets(view, next_label, columns.total);
    state = detail::labelled_shard<C>(where, view, mine, next_label, with_entropy);
  };
  if (options.check_all_ranks) {
    together(tp, cp, "next_token_logprobs", check,
             detail::log_prob_mark<E>(view, with_entropy, options.temperature, columns.total));
    detail::require_tiling_everywhere(tp, cp, columns);
  } else {
    check();
  }
  detail::find_log_probs(where, tp, logits, columns, state, {.temperature = options.temperature});
  const auto spread = [&](const row_view<C>& rows, const batch_view<C>& to) {
    detail::keeping(cp, state.owner(), [&] {
      all_gather_unpack(where, cp, predicting, field(row_view<const C>(rows), to));
    });
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
/// \throws invalid_input as pack and label_log_probs_backward do; a gradient in the memory of
/// anything that is given and is not its own logits.
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
  detail::require_equal(detail::alone, "logits rows", logits.rows, view.shard_tokens(),
                        "the tokens of the layout in one shard");
  detail::regions<1, 1> memory;
  memory.read_layout(view);
  memory.read(derivatives.touched(), detail::alone, "derivatives");
  memory.write(detail::written_bytes(gradient, options.zero_padded_columns), detail::alone,
               "gradient");
  memory.require_apart();
  const executor_array<C> rows(where, logits.rows);
  pack(where, view.without_last(1), mine, field(derivatives, rows.rows()));
  detail::find_gradient(where, logits, columns, state, row_view<const C>(rows.rows()), gradient,
                        options);
}

}  // namespace seqpack
