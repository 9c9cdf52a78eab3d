/// \file
/// evaluate_loss: the value, the metrics and the gradient of a loss over a packed, sharded batch,
/// in one pass over all sequences or one sequence after the other.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/place_on.hpp"
#include "seqpack/logprob/label_log_probs.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/logprob/next_token_logprobs.hpp"
#include "seqpack/loss/detail/checked_loss.hpp"
#include "seqpack/loss/detail/loss_operations.hpp"
#include "seqpack/loss/global_counts.hpp"
#include "seqpack/loss/loss.hpp"
#include "seqpack/loss/loss_result.hpp"
#include "seqpack/parallel/detail/group_execution.hpp"
#include "seqpack/parallel/group_execution.hpp"
#include "seqpack/tokens/per_token.hpp"
#include "seqpack/tokens/targets.hpp"

namespace seqpack {

/// How a loss goes through the packed row. Both ways give the same to the last bit for losses on
/// log-probabilities; one on logits only knows the second.
enum class loss_pass {
  fused,        ///< all sequences at once: a fixed number of launches and collectives per batch
  per_sequence  ///< one group of sequences after the other: memory for the longest one alone
};

/// What a loss is evaluated with.
struct loss_options {
  global_counts counts = {};  ///< of the global batch; see count_valid
  double temperature = 1;
  /// Divides the loss by the number of context-parallel ranks, each of which returns all of it, so
  /// that their sum is the loss. Metrics are not touched.
  bool cp_normalize = true;
  loss_pass pass = loss_pass::fused;
  /// Every tensor-parallel rank has all columns, as of a value head. For losses on logits.
  bool replicated_columns = false;
  /// What the logits have been divided by before they came here: the gradient is with respect to
  /// those from before.
  double applied_temperature = 1;
  /// Writes 0 to what is between the rows of the gradient; see log_prob_options.
  bool zero_padded_columns = false;
};

namespace detail::losses {

/// Everything that stays the same while a loss goes through a batch.
template <class E, class CP, class TP, class Fields, class L, class T, class G>
struct evaluation {
  const E& where;
  CP& cp;
  TP& tp;
  const Fields& fields;
  const detail::targets::document_rule& rule;
  const L& loss;
  column_range columns;
  bool with_gradient;
  double factor;  ///< of derivatives
  double temperature;
  bool replicated;
  bool zero_padded_columns;

  using C = compute_type<T>;

  shard mine() const { return {cp.rank().value}; }

  /// All groups of a layout whose row 0 is row `first_row` of the fields; logits and gradient are
  /// the rows of this layout's shard, results has a row for each group.
  template <class View>
  void fused(const View& view, offset_t first_row, const matrix_view<const T>& logits,
             const matrix_view<G>& gradient, double* results) const {
    const offset_t rows = logits.rows;
    const log_prob_state<C> state(where, rows);
    const auto labels = state.labels();
    using label_type = detail::targets::counted_label<Fields>;
    if (rows > 0) {
      per_token(where, view, mine(),
                token_array<std::int64_t, label_type>{
                    labels, {fields, rule, sequences_per_group<L>, first_row}});
    }
    const log_prob_options options{.temperature = temperature,
                                   .zero_padded_columns = zero_padded_columns};
    label_log_probs(where, tp, logits, columns, labels, state.rows(), options);

    const bool alone = cp.size() == 1;
    const workspace<C> all(where, alone ? 0 : view.total);
    if (!alone) {
      detail::keeping(cp, {state.owner(), all.owner()},
                      [&] { cp.all_gather(state.rows().log_probs.data, all.data(), rows); });
    }
    const workspace<C> derivatives(where, with_gradient ? rows : 0);
    fill(where, derivatives, C{0});
    using operation = log_prob_operation<View, Fields, L, C>;
    execute(where, operation{{view, fields, rule, first_row},
                             loss,
                             alone ? state.rows().log_probs.data : all.data(),
                             derivatives.data(),
                             mine(),
                             factor,
                             results});
    if (with_gradient) {
      label_log_probs_backward(where, logits, columns, labels, state.rows(),
                               row_view<const C>(derivatives.rows()), gradient, options);
    }
  }

  /// The one group of a layout, for a loss on logits.
  template <class View>
  void assembled(const View& view, offset_t first_row, const matrix_view<const T>& logits,
                 const matrix_view<G>& gradient, double* results) const {
    const workspace<C> full(where, view.total * columns.total);
    const auto scale = static_cast<C>(1 / temperature);
    const source<View, Fields> from{view, fields, rule, first_row};
    const auto rows = row_view<C>(full.data(), view.total, columns.total);
    execute(where, assemble_operation<View, Fields, T, C>{from, logits, columns, mine(), scale,
                                                          has_last_row<L>, rows});
    add_up(cp, full);
    if (!replicated) add_up(tp, full);
    if (with_gradient) clear_gradient(gradient);
    const workspace<double> derivatives(where, with_gradient ? columns.total : 0);
    using operation = logits_operation<View, Fields, L, C, G>;
    execute(where, operation{from, loss, rows, derivatives.data(), gradient, columns, mine(),
                             factor / temperature, results});
  }

  void clear_gradient(const matrix_view<G>& gradient) const {
    execute(where, zero_operation<G>{zero_padded_columns ? gradient.whole_rows() : gradient});
  }

  template <class Group>
  static void add_up(Group& group, const workspace<C>& numbers) {
    if (group.size() == 1) return;
    detail::keeping(group, numbers.owner(), [&] {
      group.all_reduce(static_cast<const C*>(numbers.data()), numbers.data(), numbers.size(),
                       reduction::sum);
    });
  }

  /// One group after the other, each with a layout of its own.
  template <class CPPolicy, class Index>
  void per_sequence(const packed_layout<CPPolicy, Index>& layout,
                    const matrix_view<const T>& logits, const matrix_view<G>& gradient,
                    double* results) const {
    const auto view = layout.view();
    constexpr offset_t group = sequences_per_group<L>;
    const auto part = [&](const auto& matrix, offset_t first, offset_t last) {
      return matrix.rows == 0 ? matrix : matrix.part(first, last - first);
    };
    for (offset_t b = 0; b < view.batch; b += group) {
      const offset_t first = view.shard_begin(b);
      const offset_t last = view.shard_begin(b + group);
      const auto alone = layout_part(layout, b, group);
      const auto placed = place_on(where, alone);
      double* const row = results + divide(b, group) * row_size<L>;
      if constexpr (L::input == loss_input::logits) {
        assembled(placed.view(), b, part(logits, first, last), part(gradient, first, last), row);
      } else {
        fused(placed.view(), b, part(logits, first, last), part(gradient, first, last), row);
      }
    }
    // What belongs to no sequence: a ghost.
    const offset_t end = view.shard_begin(view.sequences);
    if (with_gradient && end < gradient.rows) {
      clear_gradient(part(gradient, end, gradient.rows));
    }
  }
};

/// What the sum over all groups is multiplied by.
template <class L>
double level_factor(const global_counts& counts) {
  if (L::level == loss_level::token) return counts.one_over(count_of::tokens);
  return static_cast<double>(sequences_per_group<L>) * counts.one_over(count_of::sequences);
}

/// Whether a loss or one of its metrics is divided by a count.
template <class L, metric... M>
constexpr bool needs(count_of what, metric_list<M...>) {
  [[maybe_unused]] const auto over = [&](auto m) {
    if constexpr (decltype(m)::kind == metric_kind::mean) {
      return decltype(m)::over == what;
    } else {
      return false;
    }
  };
  const bool by_level =
      what == (L::level == loss_level::token ? count_of::tokens : count_of::sequences);
  return by_level || (over(M{}) || ...);
}
template <class L>
inline constexpr bool needs_tokens = needs<L>(count_of::tokens, typename L::metrics{});
template <class L>
inline constexpr bool needs_sequences = needs<L>(count_of::sequences, typename L::metrics{}) ||
                                        needs<L>(count_of::pairs, typename L::metrics{});

template <executor E, class View, class Fields, field_tag... Tags>
void require_fields(const View& view, const Fields& fields, field_tags<Tags...>) {
  static_assert((has_field<Fields, Tags> && ...), "the batch lacks a field that the loss asks for");
  (detail::targets::require_field<E>(Tags{}, view, fields), ...);
}

/// What a loss needs of a batch, on this rank.
template <executor E, class L, class View, class Fields>
void require_batch(const View& view, const Fields& fields) {
  require_fields<E>(view, fields, asked_fields<L>{});
  require_fields<E>(view, fields, field_tags<input_ids_t>{});
  detail::targets::require_field<E>(token_mask, view, fields);
  detail::targets::require_field<E>(sample_mask, view, fields);
  if (view.batch % sequences_per_group<L> != 0) {
    reject("batch size", view.batch,
           "it must be a multiple of " + std::to_string(sequences_per_group<L>) +
               ", the sequences that the loss takes together");
  }
  if (view.slot_of != nullptr) {
    reject("order of the layout", "given",
           "a loss takes the sequences of the batch in their order");
  }
}

/// Targets that are not in the vocabulary, where they can be read.
template <executor E, class L, class View, class Fields>
void require_targets(const View& view, const Fields& fields,
                     const detail::targets::document_rule& rule, offset_t vocabulary) {
  if constexpr (host_executor<E> && L::input == loss_input::next_token_logprobs) {
    detail::targets::require_known(
        view, detail::targets::counted_label<Fields>{fields, rule, sequences_per_group<L>, 0},
        vocabulary);
  }
}

/// Evaluates a loss whose batch has been checked.
/// \param layout on the host
/// \param view the same layout where the executor works
template <executor E, communicator CP, communicator TP, class C, class Index, class View,
          class Fields, class L, class T, class G>
loss_result<E, typename L::metrics> run(const E& where, CP& cp, TP& tp,
                                        const packed_layout<C, Index>& layout, const View& view,
                                        const Fields& fields,
                                        const detail::targets::document_rule& rule, const L& loss,
                                        const matrix_view<T>& logits, const column_range& columns,
                                        const matrix_view<G>& gradient,
                                        const loss_options& options) {
  using plain = std::remove_const_t<T>;
  const double factor = level_factor<L>(options.counts);
  const auto ranks = static_cast<double>(cp.size());
  const evaluation<E, CP, TP, Fields, L, plain, G> evaluation{
      where,
      cp,
      tp,
      fields,
      rule,
      loss,
      columns,
      gradient.data != nullptr,
      (options.cp_normalize ? factor : factor * ranks) / options.applied_temperature,
      options.temperature,
      options.replicated_columns,
      options.zero_padded_columns};
  [[maybe_unused]] const detail::current_device here(cp, tp);
  const offset_t groups = divide(view.batch, sequences_per_group<L>);
  const workspace<double> results(where, groups * row_size<L>);
  const matrix_view<const plain> rows(logits.data, logits.rows, logits.columns, logits.stride);
  constexpr bool of_logits = L::input == loss_input::logits;
  if (of_logits || options.pass == loss_pass::per_sequence) {
    evaluation.per_sequence(layout, rows, gradient, results.data());
  } else if constexpr (!of_logits) {
    evaluation.fused(view, 0, rows, gradient, results.data());
  }
  workspace<double> totals(where, row_size<L>);
  execute(where, total_operation<L>{results.data(), groups, totals.data()});
  return {where, totals, options.cp_normalize ? factor / ranks : factor, options.counts};
}

/// What is sent must come behind what was computed.
template <class E, class CP, class TP>
void require_streams(const E& where, const CP& cp, const TP& tp) {
  detail::require_same_stream(where, cp);
  detail::require_same_stream(where, tp);
}

/// What run() is given beside the batch.
template <class View, class Fields, class CP, class TP, class T, class G>
void require_logits(const View& view, const Fields& fields, const CP& cp, const TP& tp,
                    const matrix_view<T>& logits, const column_range& columns,
                    const matrix_view<G>& gradient, const loss_options& options) {
  require_counts(options.counts);
  detail::logits_checks::reciprocal<compute_type<T>>(options.temperature);
  detail::logits_checks::reciprocal(options.applied_temperature);
  detail::logits_checks::require_range(columns);
  if (tp.size() == 1 || options.replicated_columns) detail::logits_checks::require_all(columns);
  detail::require_equal(detail::alone, "context-parallel size of the layout", view.cp.size(),
                        cp.size(), "the ranks of the group");
  detail::require_equal(detail::alone, "logits rows", logits.rows, view.shard_tokens(),
                        "the tokens of the layout in one shard");
  detail::require_equal(detail::alone, "logits columns", logits.columns, columns.size(),
                        "the columns of the vocabulary that they are");
  detail::logits_checks::require_logits(logits);
  detail::require_elements<compute_type<T>>("tokens of the layout * vocabulary", view.total,
                                            columns.total);
  if (gradient.data == nullptr && gradient.rows * gradient.columns == 0) return;
  const bool padded = options.zero_padded_columns;
  detail::logits_checks::require_gradient(logits, gradient, padded);
  detail::targets::require_apart("gradient", detail::logits_checks::written_bytes(gradient, padded),
                                 view, fields);
}

}  // namespace detail::losses

/// Evaluates a loss over packed, sharded logits, and its gradient where asked.
///
///     const auto result = evaluate_loss(host, layout, cp, tp, batch, nll{}, logits, columns,
///                                       {.counts = counts}, gradient);
///     result.value(), result.metrics()
///
/// **Collective** over both groups, all of whose ranks have the same batch and layout: for a loss
/// on log-probabilities an all-gather of three numbers per row over tp and one of a number per row
/// over cp, with loss_pass::per_sequence for each group of sequences; for a loss on logits two
/// all-reduces of the logits of each group of sequences, which is simple and slow. A group of one
/// rank sends nothing.
///
/// The gradient of a rank is the derivative, with respect to its logits, of the sum over the
/// context-parallel ranks of the losses that they return: exact with cp_normalize, as many times
/// that as there are ranks without. The ranks of tp return the same loss, which counts once.
///
/// \param layout on the host, without an order
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
/// Allocates O(T), for a loss on logits O(V times the longest sequence); an allocation that fails
/// is an error on this rank alone. Does not synchronise, but that on a device the layout, with
/// loss_pass::per_sequence of each group, is copied there as to_device does; reading the result
/// waits.
template <executor E, class C, class Index, communicator CP, communicator TP, batch B,
          class GivenLoss, logit T, logit G = std::remove_const_t<T>>
  requires gathers_on<E, CP> && gathers_on<E, TP>
auto evaluate_loss(const E& where, const packed_layout<C, Index>& layout, CP& cp, TP& tp,
                   const B& batch, const GivenLoss& given, const matrix_view<T>& logits,
                   const column_range& columns, const loss_options& options,
                   const matrix_view<G>& gradient = {}) {
  const auto loss = detail::losses::checked(given);
  using L = std::remove_const_t<decltype(loss)>;
  const detail::current_device here(cp, tp);
  const auto placed = place_on(where, layout);
  const auto view = placed.view();
  const auto fields = batch.fields();
  detail::losses::require_streams(where, cp, tp);
  detail::losses::require_batch<E, L>(layout.view(), fields);
  detail::losses::require_logits(view, fields, cp, tp, logits, columns, gradient, options);
  detail::losses::require_targets<E, L>(layout.view(), fields, {}, columns.total);
  return detail::losses::run(where, cp, tp, layout, view, fields, {}, loss, logits, columns,
                             gradient, options);
}

}  // namespace seqpack
