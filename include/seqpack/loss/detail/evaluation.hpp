/// \file
/// How a loss goes through a batch: all sequences at once, or one tuple after the other.
// For the folders above too.
#pragma once

#include <type_traits>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/place_on.hpp"
#include "seqpack/logprob/detail/shard_log_probs.hpp"
#include "seqpack/logprob/label_log_probs.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/logprob/temperature.hpp"
#include "seqpack/loss/detail/log_prob_loss.hpp"
#include "seqpack/loss/detail/logits_loss.hpp"
#include "seqpack/loss/detail/tuple_rows.hpp"
#include "seqpack/loss/global_counts.hpp"
#include "seqpack/loss/loss.hpp"
#include "seqpack/loss/loss_options.hpp"
#include "seqpack/loss/loss_result.hpp"
#include "seqpack/parallel/detail/group_execution.hpp"
#include "seqpack/tokens/detail/targets.hpp"

namespace seqpack::detail {

/// Everything that stays the same while a loss goes through a batch.
template <class E, class CP, class TP, class Fields, class L, class T, class G>
struct loss_evaluation {
  const E& where;
  CP& cp;
  TP& tp;
  const Fields& fields;
  const document_rule& rule;
  const L& loss;
  column_range columns;
  bool with_gradient;
  double factor;  ///< of derivatives
  logit_temperature temperature;
  bool replicated;
  bool zero_padded_columns;

  using C = compute_type<T>;

  shard mine() const { return {cp.rank().value}; }

  /// All tuples of a layout whose sequence 0 is `first_sequence` of the fields; logits and gradient
  /// are the rows of this layout's shard, results has a row for each tuple.
  template <class View>
  void fused(const View& view, offset_t first_sequence, const matrix_view<const T>& logits,
             const matrix_view<G>& gradient, double* results) const {
    using label_type = counted_label<Fields>;
    const log_prob_options options{.temperature = temperature.to_apply(),
                                   .zero_padded_columns = zero_padded_columns};
    const auto state = labelled_shard<C>(
        where, view, mine(), label_type{fields, rule, sequences_per_tuple<L>, first_sequence});
    find_log_probs(where, tp, logits, columns, state, options);

    const bool gathered = cp.size() > 1;
    const executor_array<C> all(where, gathered ? view.total : 0);
    if (gathered) {
      keeping(cp, {state.owner(), all.owner()},
              [&] { cp.all_gather(state.rows().log_probs.data, all.data(), logits.rows); });
    }
    const executor_array<C> derivatives(where, with_gradient ? logits.rows : 0);
    fill(where, derivatives, C{0});
    using operation = log_prob_loss_operation<View, Fields, L, C>;
    execute(where, operation{{view, fields, rule, first_sequence},
                             loss,
                             gathered ? all.data() : state.rows().log_probs.data,
                             derivatives.data(),
                             mine(),
                             factor,
                             results});
    if (with_gradient) {
      find_gradient(where, logits, columns, state, row_view<const C>(derivatives.rows()), gradient,
                    options);
    }
  }

  /// The one tuple of a layout, for a loss on logits.
  template <class View>
  void assembled(const View& view, offset_t first_sequence, const matrix_view<const T>& logits,
                 const matrix_view<G>& gradient, double* results) const {
    const executor_array<C> full(where, view.total * columns.total);
    const auto scale = static_cast<C>(1 / temperature.to_apply());
    const loss_source<View, Fields> from{view, fields, rule, first_sequence};
    const auto rows = row_view<C>(full.data(), view.total, columns.total);
    execute(where, assemble_logits_operation<View, Fields, T, C>{from, logits, columns, mine(),
                                                                 scale, has_last_row<L>, rows});
    add_up(cp, full);
    if (!replicated) add_up(tp, full);
    if (with_gradient) zero_gradient(gradient);
    const executor_array<double> derivatives(where, with_gradient ? columns.total : 0);
    using operation = logits_loss_operation<View, Fields, L, C, G>;
    execute(where, operation{from, loss, rows, derivatives.data(), gradient, columns, mine(),
                             factor / temperature.to_apply(), results});
  }

  void zero_gradient(const matrix_view<G>& gradient) const {
    execute(where, zero_rows_operation<G>{zero_padded_columns ? gradient.whole_rows() : gradient});
  }

  template <class Group>
  static void add_up(Group& group, const executor_array<C>& numbers) {
    if (group.size() == 1) return;
    keeping(group, numbers.owner(), [&] {
      group.all_reduce(static_cast<const C*>(numbers.data()), numbers.data(), numbers.size(),
                       reduction::sum);
    });
  }

  /// One tuple after the other, each with a layout of its own.
  template <class CPPolicy, class Index>
  void per_sequence(const packed_layout<CPPolicy, Index>& layout,
                    const matrix_view<const T>& logits, const matrix_view<G>& gradient,
                    double* results) const {
    const auto view = layout.view();
    constexpr offset_t tuple = sequences_per_tuple<L>;
    const auto part = [&](const auto& matrix, offset_t first, offset_t last) {
      return matrix.rows == 0 ? matrix : matrix.part(first, last - first);
    };
    for (offset_t b = 0; b < view.batch; b += tuple) {
      const offset_t first = view.share_begin(b);
      const offset_t last = view.share_begin(b + tuple);
      const auto own = layout_part(layout, b, tuple);
      const auto placed = place_on(where, own);
      double* const row = results + divide(b, tuple) * tuple_row_size<L>;
      if constexpr (L::input == loss_input::logits) {
        assembled(placed.view(), b, part(logits, first, last), part(gradient, first, last), row);
      } else {
        fused(placed.view(), b, part(logits, first, last), part(gradient, first, last), row);
      }
    }
    // What belongs to no sequence: a ghost.
    const offset_t end = view.share_begin(view.sequences);
    if (with_gradient && end < gradient.rows) {
      zero_gradient(part(gradient, end, gradient.rows));
    }
  }
};

/// What the sum over all tuples is multiplied by.
template <class L>
double level_factor(const global_counts& counts) {
  if (L::level == loss_level::token) return counts.one_over(count_of::tokens);
  return static_cast<double>(sequences_per_tuple<L>) * counts.one_over(count_of::sequences);
}

/// Evaluates a loss whose batch has been checked.
/// \param layout on the host
/// \param view the same layout where the executor works
template <executor E, communicator CP, communicator TP, class C, class Index, class View,
          class Fields, class L, class T, class G>
loss_result<E, typename L::metrics> run_loss(
    const E& where, CP& cp, TP& tp, const packed_layout<C, Index>& layout, const View& view,
    const Fields& fields, const document_rule& rule, const L& loss, const matrix_view<T>& logits,
    const column_range& columns, const matrix_view<G>& gradient, const loss_options& options) {
  using plain = std::remove_const_t<T>;
  const double factor = level_factor<L>(options.counts);
  const auto ranks = static_cast<double>(cp.size());
  const loss_evaluation<E, CP, TP, Fields, L, plain, G> evaluation{
      where,
      cp,
      tp,
      fields,
      rule,
      loss,
      columns,
      gradient.data != nullptr,
      (options.cp_normalize ? factor : factor * ranks) / options.temperature.applied(),
      options.temperature,
      options.replicated_columns,
      options.zero_padded_columns};
  [[maybe_unused]] const current_device here(cp, tp);
  const offset_t tuples = divide(view.batch, sequences_per_tuple<L>);
  const executor_array<double> results(where, tuples * tuple_row_size<L>);
  const matrix_view<const plain> rows(logits.data, logits.rows, logits.columns, logits.stride);
  constexpr bool of_logits = L::input == loss_input::logits;
  if (of_logits || options.pass == loss_pass::per_sequence) {
    evaluation.per_sequence(layout, rows, gradient, results.data());
  } else if constexpr (!of_logits) {
    evaluation.fused(view, 0, rows, gradient, results.data());
  }
  executor_array<double> totals(where, tuple_row_size<L>);
  execute(where, loss_total_operation<L>{results.data(), tuples, totals.data()});
  return {where, totals, options.cp_normalize ? factor / ranks : factor, options.counts};
}

}  // namespace seqpack::detail
