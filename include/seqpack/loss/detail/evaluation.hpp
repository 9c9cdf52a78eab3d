/// \file
/// How a loss goes through a batch: all sequences at once, or one tuple after the other.
// For the folders above too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/logprob/detail/shard_log_probs.hpp"
#include "seqpack/logprob/label_log_probs.hpp"
#include "seqpack/logprob/log_prob_state.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/logprob/temperature.hpp"
#include "seqpack/loss/detail/log_prob_loss.hpp"
#include "seqpack/loss/detail/logits_loss.hpp"
#include "seqpack/loss/detail/loss_source.hpp"
#include "seqpack/loss/detail/tuple_rows.hpp"
#include "seqpack/loss/detail/tuple_tokens.hpp"
#include "seqpack/loss/global_counts.hpp"
#include "seqpack/loss/loss.hpp"
#include "seqpack/loss/loss_options.hpp"
#include "seqpack/loss/loss_result.hpp"
#include "seqpack/parallel/detail/group_execution.hpp"
#include "seqpack/tokens/detail/targets.hpp"

namespace seqpack::detail {

/// A loss, the batch that it is evaluated on, and the rows that it reads and writes.
template <class Layout, class View, class Fields, class L, class T, class G>
struct loss_call {
  using layout_type = Layout;
  using view_type = View;
  using fields_type = Fields;
  using loss_type = L;
  using logit_type = std::remove_const_t<T>;
  using gradient_type = G;

  const Layout& layout;  ///< on the host
  View view;             ///< the same layout where the executor works
  Fields fields;
  document_rule rule;
  L loss;
  matrix_view<T> logits;  ///< of this rank's shard
  column_range columns;
  matrix_view<G> gradient;  ///< the same shape, or of nothing
  loss_options options;
};

/// What the sum over all tuples is multiplied by.
template <class L>
double level_factor(const global_counts& counts) {
  if (L::level == loss_level::token) return counts.one_over(count_of::tokens);
  return static_cast<double>(sequences_per_tuple<L>) * counts.one_over(count_of::sequences);
}

/// The two ways through a batch. Each writes a row of results for every tuple of the batch, in the
/// order of the batch, whatever the order of the layout.
template <class E, class CP, class TP, class Call>
class loss_evaluation {
  using View = typename Call::view_type;
  using Fields = typename Call::fields_type;
  using L = typename Call::loss_type;
  using T = typename Call::logit_type;
  using G = typename Call::gradient_type;
  using C = compute_type<T>;
  using label_type = counted_label<Fields>;
  using tuple_type = tuple_tokens<tuple_size<L>>;

 public:
  loss_evaluation(const E& where, CP& cp, TP& tp, const Call& call, double* results)
      : where_(where),
        cp_(cp),
        tp_(tp),
        call_(call),
        results_(results),
        logits_(call.logits.data, call.logits.rows, call.logits.columns, call.logits.stride),
        mine_{cp.rank().value},
        factor_(level_factor<L>(call.options.counts) *
                (call.options.cp_normalize ? 1 : static_cast<double>(cp.size())) /
                call.options.temperature.applied()),
        from_{call.view, call.fields, call.rule} {}

  /// All tuples at once.
  void fused() const {
    const auto state = labelled_shard<C>(where_, call_.view, mine_, label());
    find_log_probs(where_, tp_, logits_, call_.columns, state, log_probs());

    const bool gathered = cp_.size() > 1;
    const executor_array<C> all(where_, gathered ? call_.view.total : 0);
    if (gathered) {
      keeping(cp_, {state.owner(), all.owner()},
              [&] { cp_.all_gather(state.rows().log_probs.data, all.data(), logits_.rows); });
    }
    const executor_array<C> derivatives(where_, with_gradient() ? logits_.rows : 0);
    fill(where_, derivatives, C{0});
    evaluate(gathered ? all.data() : state.rows().log_probs.data, derivatives.data(), {});
    if (with_gradient()) {
      find_gradient(where_, logits_, call_.columns, state, row_view<const C>(derivatives.rows()),
                    call_.gradient, log_probs());
    }
  }

  /// One tuple after the other; on all ranks in the same order, also where a rank has none of its
  /// tokens.
  void per_sequence() const {
    const auto view = call_.layout.view();
    const offset_t tuples = divide(view.batch, sequences_per_tuple<L>);
    execute(where_, clear_tuples_operation<L>{results_, tuples});
    for (offset_t n = 0; n < tuples; ++n) {
      if (view.slot(n * sequences_per_tuple<L>) < 0) continue;
      const auto tuple = tokens_of_tuple<tuple_size<L>>(view, mine_, n);
      if constexpr (L::input == loss_input::logits) {
        of_logits(tuple);
      } else {
        of_log_probs(tuple);
      }
    }
    if (with_gradient() && view.has_ghost()) {
      zero_gradient(rows_of_segment(view, mine_, view.sequences));
    }
  }

 private:
  bool with_gradient() const { return call_.gradient.data != nullptr; }
  label_type label() const { return {call_.fields, call_.rule, sequences_per_tuple<L>}; }
  log_prob_options log_probs() const {
    return {.temperature = call_.options.temperature.to_apply(),
            .zero_padded_columns = call_.options.zero_padded_columns};
  }

  /// A loss on log-probabilities, of one tuple or of all.
  void evaluate(const C* log_probs, C* derivatives, const tuple_type& one) const {
    execute(where_, log_prob_loss_operation<View, Fields, L, C>{
                        from_, call_.loss, log_probs, derivatives, mine_, factor_, results_, one});
  }

  /// Ranks may hold unequal numbers of the tuple's tokens, so each writes its own of all of them, and
  /// the sum over the ranks, which is exact, is the same number of elements on every rank.
  void of_log_probs(const tuple_type& tuple) const {
    constexpr std::size_t count = tuple_size<L>;
    const log_prob_state<C> state(where_, tuple.own_rows());
    execute(where_, tuple_labels_operation<View, Fields, count>{call_.view, label(), tuple, mine_,
                                                                state.labels().data});
    for (std::size_t k = 0; k < count; ++k) {
      const auto rows = tuple.rows_of(k);
      label_log_probs(where_, tp_, part(logits_, rows), call_.columns,
                      row_view<const std::int64_t>(labels_of(state, tuple, k)),
                      results_of(state, tuple, k), log_probs());
    }
    const executor_array<C> of_tokens(where_, tuple.tokens());
    fill(where_, of_tokens, C{0});
    execute(where_, tuple_spread_operation<View, C, count>{
                        call_.view, tuple, mine_, state.rows().log_probs.data, of_tokens.data()});
    add_up(cp_, of_tokens);
    const executor_array<C> derivatives(where_, with_gradient() ? tuple.own_rows() : 0);
    fill(where_, derivatives, C{0});
    evaluate(of_tokens.data(), derivatives.data(), tuple);
    if (!with_gradient()) return;
    for (std::size_t k = 0; k < count; ++k) {
      const auto rows = tuple.rows_of(k);
      label_log_probs_backward(where_, part(logits_, rows), call_.columns,
                               row_view<const std::int64_t>(labels_of(state, tuple, k)),
                               results_of(state, tuple, k),
                               row_view<const C>(derivatives.data() + tuple.own[k], rows.count),
                               part(call_.gradient, rows), log_probs());
    }
  }

  static row_view<std::int64_t> labels_of(const log_prob_state<C>& state, const tuple_type& tuple,
                                          std::size_t k) {
    return {state.labels().data + tuple.own[k], tuple.rows_of(k).count};
  }
  static label_log_prob_rows<C> results_of(const log_prob_state<C>& state, const tuple_type& tuple,
                                           std::size_t k) {
    const auto of = [&](const row_view<C>& all) {
      return row_view<C>(all.data + tuple.own[k], tuple.rows_of(k).count);
    };
    const auto& all = state.rows();
    return {of(all.log_probs), of(all.max), of(all.sum)};
  }

  /// Only now are the rows of the gradient set to 0: they may be the logits'.
  void of_logits(const tuple_type& tuple) const {
    constexpr std::size_t count = tuple_size<L>;
    const offset_t width = call_.columns.total;
    const executor_array<C> full(where_, tuple.tokens() * width);
    const row_view<C> rows(full.data(), tuple.tokens(), width);
    const auto scale = static_cast<C>(1 / call_.options.temperature.to_apply());
    execute(where_, assemble_logits_operation<View, Fields, T, C, count>{
                        from_, tuple, logits_, call_.columns, mine_, scale, has_last_row<L>, rows});
    add_up(cp_, full);
    if (!call_.options.replicated_columns) add_up(tp_, full);
    if (with_gradient()) {
      for (std::size_t k = 0; k < count; ++k) zero_gradient(tuple.rows_of(k));
    }
    const executor_array<double> derivatives(where_, with_gradient() ? width : 0);
    execute(where_,
            logits_loss_operation<View, Fields, L, C, G>{
                from_, tuple, call_.loss, rows, derivatives.data(), call_.gradient, call_.columns,
                mine_, factor_ / call_.options.temperature.to_apply(), results_});
  }

  template <class Matrix>
  static Matrix part(const Matrix& matrix, const shard_rows& rows) {
    return matrix.rows == 0 ? matrix : matrix.part(rows.first, rows.count);
  }
  void zero_gradient(const shard_rows& rows) const {
    const auto of = part(call_.gradient, rows);
    execute(where_,
            zero_rows_operation<G>{call_.options.zero_padded_columns ? of.whole_rows() : of});
  }

  template <class Group>
  static void add_up(Group& group, const executor_array<C>& numbers) {
    if (group.size() == 1) return;
    keeping(group, numbers.owner(), [&] {
      group.all_reduce(static_cast<const C*>(numbers.data()), numbers.data(), numbers.size(),
                       reduction::sum);
    });
  }

  const E& where_;
  CP& cp_;
  TP& tp_;
  const Call& call_;
  double* results_;
  matrix_view<const T> logits_;
  shard mine_;
  double factor_;  ///< of derivatives
  loss_source<View, Fields> from_;
};

/// Evaluates a loss whose batch has been checked.
template <executor E, communicator CP, communicator TP, class Call>
loss_result<E, typename Call::loss_type::metrics> run_loss(const E& where, CP& cp, TP& tp,
                                                           const Call& call) {
  using L = typename Call::loss_type;
  [[maybe_unused]] const current_device here(cp, tp);
  const offset_t tuples = divide(call.view.batch, sequences_per_tuple<L>);
  const executor_array<double> results(where, tuples * tuple_row_size<L>);
  const loss_evaluation<E, CP, TP, Call> evaluation(where, cp, tp, call, results.data());
  constexpr bool of_logits = L::input == loss_input::logits;
  if (of_logits || call.options.pass == loss_pass::per_sequence) {
    evaluation.per_sequence();
  } else if constexpr (!of_logits) {
    evaluation.fused();
  }
  executor_array<double> totals(where, tuple_row_size<L>);
  execute(where, loss_total_operation<L>{results.data(), tuples, totals.data()});
  const double factor = level_factor<L>(call.options.counts);
  const auto ranks = static_cast<double>(cp.size());
  return {where, totals, call.options.cp_normalize ? factor / ranks : factor, call.options.counts};
}

}  // namespace seqpack::detail
