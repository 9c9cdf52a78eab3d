/// \file
/// Log-probabilities of labels from rows of logits, forward and backward, with the vocabulary in
/// one piece or shared among tensor-parallel ranks.
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
#include "seqpack/logprob/detail/log_prob_checks.hpp"
#include "seqpack/logprob/detail/log_prob_operations.hpp"
#include "seqpack/logprob/detail/logits_checks.hpp"
#include "seqpack/logprob/detail/temperature.hpp"
#include "seqpack/logprob/log_prob_state.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/parallel/detail/group_execution.hpp"
#include "seqpack/parallel/group_execution.hpp"
#include "seqpack/parallel/together.hpp"

namespace seqpack {

/// Options of log-probabilities.
struct log_prob_options {
  /// Logits are divided by it in the same pass; finite and above 0.
  double temperature = 1;
  /// Exchanges the verdict of every rank first, and which columns it holds, so that all ranks fail
  /// together: two exchanges more, which the host waits for. The same on all ranks.
  bool check_all_ranks = false;
  /// Of a backward pass, whose gradient has rows that are further apart than its columns are many,
  /// as with a padded vocabulary: writes 0 to all elements between them, and after the last row, up
  /// to its stride, which must be there. Else a gradient writes the columns alone, and a product
  /// over whole rows reads what was there before. In the same launch.
  bool zero_padded_columns = false;
};

/// The log-probability of one label per row of logits, and what the backward pass needs:
///
///     log_probs[t] = y[label] - log sum over v of exp(y[v]),    y = logits[t] / temperature
///
/// **Collective** over the tensor-parallel group, whose ranks hold the columns of the vocabulary in
/// their order, with the same labels on all of them: one all-gather of three numbers per row (four
/// with the entropy), merged on every rank in the same order, so that all ranks have the same bits.
/// With one rank nothing is sent.
///
/// \param logits [rows, columns.size()] of this rank; read once. Rows whose label is ignored are
/// not read.
/// \param columns which columns of the vocabulary they are
/// \param labels [rows], of the whole vocabulary, or ignored_label
/// \param out rows elements each, written; the entropy where it has memory
/// \throws invalid_input before anything is sent or written: a temperature that is not finite and
/// positive, sizes that do not fit, a pointer that is null or misaligned, an output in the memory of
/// something else and, on the host, a label that is not in the vocabulary (on a device its
/// log-probability is NaN). With options.check_all_ranks on all ranks, as collective_mismatch; then
/// also where the columns of the ranks are not the vocabulary.
///
/// Allocates nothing where tp has one rank, else 3 or 4 numbers per row, and as many for each rank:
/// O(T), never O(T * V). Does not synchronise; one launch, or two where tp has several ranks. One
/// read of the logits.
///
/// On a device a warp does a row, or a block where a row is of more than 8 KiB. The results of a
/// row depend on its elements and their number alone: not on its address, nor on what is beside it.
template <executor E, communicator TP, logit T, class C>
  requires gathers_on<E, TP>
void label_log_probs(const E& where, TP& tp, const matrix_view<T>& logits,
                     const column_range& columns,
                     const std::type_identity_t<row_view<const std::int64_t>>& labels,
                     const label_log_prob_rows<C>& out, const log_prob_options& options = {}) {
  static_assert(std::same_as<C, compute_type<T>>,
                "log-probabilities are float, and double where the logits are");
  [[maybe_unused]] const auto named = detail::name_operation(tp, "label_log_probs");
  const auto check = [&] {
    detail::require_same_stream(where, tp);
    detail::require_labelled_logits(logits, columns, labels);
    detail::require_result_rows("log_probs", out.log_probs, logits.rows);
    detail::require_result_rows("max", out.max, logits.rows);
    detail::require_result_rows("sum", out.sum, logits.rows);
    const bool entropy = out.entropy.data != nullptr;
    if (entropy) detail::require_result_rows("entropy", out.entropy, logits.rows);
    detail::regions<2, 4> memory;
    memory.read(logits.touched(), detail::alone, "logits");
    memory.read(labels.touched(), detail::alone, "labels");
    memory.write(out.log_probs.touched(), detail::alone, "log_probs");
    memory.write(out.max.touched(), detail::alone, "max");
    memory.write(out.sum.touched(), detail::alone, "sum");
    memory.write(out.entropy.touched(), detail::alone, "entropy");
    memory.require_apart();
    if constexpr (host_executor<E>) detail::require_labels(labels, columns);
    return detail::reciprocal<C>(options.temperature);
  };
  const std::uint64_t mark = mark_of(logits.rows, out.entropy.data != nullptr, options.temperature);
  const C scale = options.check_all_ranks ? together(tp, "label_log_probs", check, mark) : check();
  if (options.check_all_ranks || tp.size() == 1) detail::require_tiling(tp, columns);

  [[maybe_unused]] const auto here = detail::make_current(tp);
  using plain = std::remove_const_t<T>;
  const matrix_view<const plain> rows(logits.data, logits.rows, logits.columns, logits.stride);
  if (out.entropy.data != nullptr) {
    detail::log_prob_forward<true, E, TP, plain>(where, tp, rows, columns, labels.data, out, scale);
  } else {
    detail::log_prob_forward<false, E, TP, plain>(where, tp, rows, columns, labels.data, out,
                                                  scale);
  }
}

/// The gradient with respect to the logits, from that with respect to the log-probabilities:
///
///     gradient[t][v] = derivatives[t] * (1 if v == label else 0 - probability of v) / temperature
///
/// Not collective: every rank has its own columns, and what the forward pass left.
///
/// \param logits, columns, labels as in the forward pass
/// \param forward what label_log_probs has written
/// \param derivatives [rows], of the loss with respect to log_probs. A row with derivative 0 or an
/// ignored label gets gradient 0, and its logits are not read.
/// \param gradient [rows, columns], written; it may be the logits themselves, which it then
/// overwrites. A logit of -inf that is not the label's gets 0.
/// \throws invalid_input as label_log_probs does; a gradient that shares memory with anything else
/// that is given, or with the logits and is not the same view.
///
/// Allocates nothing. Does not synchronise; one launch. One read of the logits and one write.
template <executor E, logit T, logit G, class C>
  requires(!std::is_const_v<G>)
void label_log_probs_backward(const E& where, const matrix_view<T>& logits,
                              const column_range& columns,
                              const std::type_identity_t<row_view<const std::int64_t>>& labels,
                              const label_log_prob_rows<C>& forward,
                              const std::type_identity_t<row_view<const C>>& derivatives,
                              const matrix_view<G>& gradient,
                              const log_prob_options& options = {}) {
  static_assert(std::same_as<C, compute_type<T>>,
                "log-probabilities are float, and double where the logits are");
  detail::require_labelled_logits(logits, columns, labels);
  detail::require_result_rows("max", forward.max, logits.rows);
  detail::require_result_rows("sum", forward.sum, logits.rows);
  detail::require_result_rows("derivatives", derivatives, logits.rows);
  detail::require_gradient(logits, gradient, options.zero_padded_columns);
  using plain = std::remove_const_t<T>;
  detail::regions<6, 1> memory;
  memory.read(labels.touched(), detail::alone, "labels");
  memory.read(forward.log_probs.touched(), detail::alone, "log_probs");
  memory.read(forward.max.touched(), detail::alone, "max");
  memory.read(forward.sum.touched(), detail::alone, "sum");
  memory.read(forward.entropy.touched(), detail::alone, "entropy");
  memory.read(derivatives.touched(), detail::alone, "derivatives");
  memory.write(detail::written_bytes(gradient, options.zero_padded_columns), detail::alone,
               "gradient");
  memory.require_apart();
  const C scale = detail::reciprocal<C>(options.temperature);
  execute(where, detail::log_prob_backward<plain, G, C>{
                     {logits.data, logits.rows, logits.columns, logits.stride},
                     columns,
                     labels.data,
                     {forward.log_probs, forward.max, forward.sum, forward.entropy},
                     derivatives.data,
                     gradient,
                     options.zero_padded_columns ? gradient.stride : gradient.columns,
                     scale});
}

}  // namespace seqpack
