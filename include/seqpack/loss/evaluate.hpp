/// \file
/// evaluate_loss: the value, the metrics and the gradient of a loss over a packed, sharded batch,
/// in one pass over all sequences or one tuple after the other.
#pragma once

#include <type_traits>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/place_on.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/loss/detail/checked_loss.hpp"
#include "seqpack/loss/detail/evaluation.hpp"
#include "seqpack/loss/detail/loss_checks.hpp"
#include "seqpack/loss/loss.hpp"
#include "seqpack/loss/loss_options.hpp"
#include "seqpack/loss/loss_result.hpp"
#include "seqpack/parallel/detail/group_execution.hpp"
#include "seqpack/parallel/group_execution.hpp"
#include "seqpack/tokens/batch_fields.hpp"

namespace seqpack {

/// Evaluates a loss over packed, sharded logits, and its gradient where asked.
///
///     const auto result = evaluate_loss(host, layout, cp, tp, batch, nll{}, logits, columns,
///                                       {.counts = counts}, gradient);
///     result.value(), result.metrics()
///
/// **Collective** over both groups, all of whose ranks have the same batch and layout: for a loss
/// on log-probabilities an all-gather of three numbers per row over tp and one of a number per row
/// over cp; with loss_pass::per_sequence one over tp for each sequence, and an all-reduce of a number
/// per token over cp for each tuple; for a loss on logits two all-reduces of the logits of each tuple,
/// which is simple and slow. A group of one rank sends nothing.
///
/// Of a layout with an order, sequences that it leaves out give 0 and are counted nowhere. What is
/// summed over sequences is summed in the order of the batch, so that the order of the layout
/// changes no bit.
///
/// The gradient of a rank is the derivative, with respect to its logits, of the sum over the
/// context-parallel ranks of the losses that they return: exact with cp_normalize, as many times
/// that as there are ranks without. The ranks of tp return the same loss, which counts once.
///
/// \param layout on the host; a tuple of sequences that the loss takes together must be wholly in its
/// order or wholly left out
/// \param batch its fields live where the executor works
/// \param given the loss, a loss_function
/// \param logits [T / CP, columns.size()] of this rank. What stands in rows of padding and of
/// targets that the masks leave out reaches nothing.
/// \param columns which they are; those of the ranks of tp are the vocabulary, in their order
/// \param gradient the same shape, of any type of logits, written, all of it; the logits
/// themselves, which it then overwrites; or a view of nothing. A logit of -inf that is not the
/// label's gets 0 from a loss on log-probabilities.
/// \returns a loss_result
/// \throws invalid_input before anything is sent or written, on this rank alone: a field that the
/// loss asks for and does not fit the layout, a batch that is no multiple of what the loss takes
/// together, sizes that do not fit, a pointer that is null or misaligned, counts that are neither 0
/// nor at least least_count, a temperature that is not finite and positive, a gradient in the memory
/// of a field, of the layout's arrays, or of logits that are not the same view; on the host also a
/// target that is not in the vocabulary.
///
/// Allocates O(T), for a loss on logits O(V times the longest tuple); an allocation that fails
/// is an error on this rank alone. Does not synchronise, but that on a device the layout is copied
/// there as to_device does; reading the result waits.
template <executor E, class C, class Index, communicator CP, communicator TP, batch B,
          class GivenLoss, logit T, logit G = std::remove_const_t<T>>
  requires gathers_on<E, CP> && gathers_on<E, TP>
auto evaluate_loss(const E& where, const packed_layout<C, Index>& layout, CP& cp, TP& tp,
                   const B& batch, const GivenLoss& given, const matrix_view<T>& logits,
                   const column_range& columns, const loss_options& options,
                   const matrix_view<G>& gradient = {}) {
  const auto loss = detail::checked_loss(given);
  using L = std::remove_const_t<decltype(loss)>;
  const detail::current_device here(cp, tp);
  const auto placed = place_on(where, layout);
  const auto view = placed.view();
  const auto fields = batch.fields();
  detail::require_loss_streams(where, cp, tp);
  detail::require_loss_batch<E, L>(layout.view(), fields);
  detail::require_loss_logits(view, fields, cp, tp, logits, columns, gradient, options);
  detail::require_loss_targets<E, L>(layout.view(), fields, {}, columns.total);
  using call_type = detail::loss_call<packed_layout<C, Index>, std::remove_const_t<decltype(view)>,
                                      std::remove_const_t<decltype(fields)>, L, T, G>;
  return detail::run_loss(where, cp, tp,
                          call_type{.layout = layout,
                                    .view = view,
                                    .fields = fields,
                                    .rule = {},
                                    .loss = loss,
                                    .logits = logits,
                                    .columns = columns,
                                    .gradient = gradient,
                                    .options = options});
}

}  // namespace seqpack
