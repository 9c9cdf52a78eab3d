/// \file
/// evaluate_loss: the value, the metrics and the gradient of a loss over a packed, sharded batch,
/// in one pass over all sequences or one sequence after the other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"
#include "seqpack/pack/layout.hpp"
#include "seqpack/pack/layout_part.hpp"
#include "seqpack/pack/per_token.hpp"
#include "seqpack/pack/resident.hpp"
#include "seqpack/parallel/group_execution.hpp"
#include "seqpack/train/counts.hpp"
#include "seqpack/train/label_log_probs.hpp"
#include "seqpack/train/logits.hpp"
#include "seqpack/train/loss.hpp"
#include "seqpack/train/metrics.hpp"
#include "seqpack/train/next_token_logprobs.hpp"
#include "seqpack/train/targets.hpp"

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
};

/// A loss that was evaluated. Where the executor is a stream, the numbers are on the device until
/// someone asks.
template <class E, class Metrics>
class loss_result {
 public:
  /// From 1 + Metrics::size sums where the executor works. The library's own.
  loss_result(E where, workspace<double> sums, double factor, const global_counts& counts)
      : where_(std::move(where)), sums_(std::move(sums)), factor_(factor), counts_(counts) {}

  /// The loss. Waits for the stream, the first time that anything is asked.
  double value() const {
    read();
    // Not 0 * x: what no target has a share in is 0 whatever x is.
    return factor_ == 0 ? 0 : (*values_)[0] * factor_;
  }
  /// The metrics. Waits as value() does.
  metric_values<Metrics> metrics() const {
    read();
    return {values_->data() + 1, counts_};
  }

 private:
  void read() const {
    if (values_) return;
    values_.emplace();
    read_back(where_, values_->data(), sums_.data(), sums_.size());
  }

  E where_;
  workspace<double> sums_;
  double factor_;
  global_counts counts_;
  mutable std::optional<std::array<double, 1 + Metrics::size>> values_;
};

namespace losses {

/// Where a loss puts its value and its contributions to metrics: one row per group of sequences.
template <class L>
inline constexpr offset_t row_size = 1 + static_cast<offset_t>(L::metrics::size);

template <metric... M>
SEQPACK_HD void clear(double* row, metric_list<M...>) {
  row[0] = 0;
  [[maybe_unused]] std::size_t k = 0;
  ((row[++k] = metric_math::neutral(M::kind)), ...);
}

template <metric... M>
SEQPACK_HD constexpr metric_kind kind_of(offset_t column, metric_list<M...>) {
  metric_kind kind = metric_kind::sum;
  [[maybe_unused]] offset_t k = 0;
  ((++k == column ? static_cast<void>(kind = M::kind) : static_cast<void>(0)), ...);
  return kind;
}

/// The rows of all groups, in their order: the same sum whoever computed them.
template <class L>
struct total_operation {
  const double* groups;
  offset_t count;
  double* totals;

  offset_t rows() const noexcept { return row_size<L>; }
  offset_t row_bytes() const noexcept { return sizeof(double); }
  offset_t units() const noexcept { return row_size<L>; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t column) const {
    const metric_kind kind = kind_of(column, typename L::metrics{});
    double total = metric_math::neutral(kind);
    for (offset_t g = 0; g < count; ++g) {
      total = metric_math::combine(kind, total, groups[g * row_size<L> + column]);
    }
    totals[column] = total;
  }
};

/// A loss on log-probabilities: one group of sequences per row of work.
template <class View, class Fields, class L, class C>
struct log_prob_operation {
  source<View, Fields> from;
  L loss;
  const C* log_probs;  ///< of all shards, rank after rank
  C* derivatives;      ///< of this rank's rows, 0 so far; or null
  shard mine;
  double factor;  ///< what a derivative of the plain sum is multiplied by
  double* results;

  static constexpr offset_t group = sequences_per_group<L>;
  using sequence_type = log_prob_sequence<View, Fields, typename L::metrics, C>;

  offset_t rows() const noexcept { return divide(from.view.batch, group); }
  offset_t row_bytes() const noexcept {
    return divide(from.view.total, max_of(rows(), 1)) * offset_t{sizeof(C)};
  }
  offset_t units() const noexcept { return rows(); }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t g) const {
    double* const row = results + g * row_size<L>;
    clear(row, typename L::metrics{});
    const double weight = targets::sample_weight(from.fields, from.first_row + g * group);
    if (weight == 0) return;
    const auto sequence = [&](std::size_t k) {
      return sequence_type(from, g * group + static_cast<offset_t>(k), row + 1, weight, log_probs);
    };
    const auto term = call(loss, sequence, std::make_index_sequence<group_size<L>>{});
    row[0] = weight * term.value;
    if (derivatives != nullptr && factor != 0) write(g * group, weight * factor, term);
  }

 private:
  SEQPACK_HD void write(offset_t, double, const differentiable_t<>&) const {}
  template <class Term>
  SEQPACK_HD void write(offset_t b, double scale, const Term& term) const {
    const offset_t slot = from.view.slot(b);
    const offset_t length = slot < 0 ? 0 : from.view.length(slot);
    for (offset_t t = 1; t < length; ++t) {
      const offset_t row = from.view.row_of(mine, slot, t - 1);
      if (row < 0) continue;
      const double w = targets::token_weight(from.fields, from.rule, from.first_row + b, t);
      if (w != 0) derivatives[row] = static_cast<C>(scale * w * term.derivative(t));
    }
    write(b + 1, scale, term.rest);
  }
};

/// The rows of a few sequences with all columns, from the ranks that have parts of them: every rank
/// writes its own and 0 elsewhere, and the sum over the ranks is exact. Rows of targets that do not
/// count stay 0.
template <class View, class Fields, class T, class C>
struct assemble_operation {
  source<View, Fields> from;
  matrix_view<const T> logits;  ///< of this rank
  column_range columns;
  shard mine;
  C scale;
  bool last_row;    ///< whether the output at the last token is wanted
  row_view<C> out;  ///< the full row, all columns

  offset_t rows() const noexcept { return out.rows; }
  offset_t row_bytes() const noexcept { return out.payload * offset_t{sizeof(C)}; }
  SEQPACK_HD offset_t units() const noexcept { return out.rows; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t row) const {
    C* const to = out.at(row);
    for (offset_t v = 0; v < out.payload; ++v) to[v] = 0;
    const token_ref token = from.view.token_at(full_row, row);
    if (!token.real() || !counts(token)) return;
    const offset_t own = from.view.row_of(mine, token.sequence, token.index);
    if (own < 0) return;
    for (offset_t v = 0; v < columns.size(); ++v) {
      to[columns.first + v] = static_cast<C>(logits.at(own)[v]) * scale;
    }
  }

 private:
  SEQPACK_HD bool counts(const token_ref& token) const {
    const offset_t t = token.index + 1;
    if (t == token.length) return last_row;
    return targets::token_weight(from.fields, from.rule,
                                 from.first_row + from.view.batch_row(token.sequence), t) != 0;
  }
};

/// Rows of a matrix that are 0.
template <class G>
struct zero_operation {
  matrix_view<G> out;

  offset_t rows() const noexcept { return out.rows; }
  offset_t row_bytes() const noexcept { return out.columns * offset_t{sizeof(G)}; }
  SEQPACK_HD offset_t units() const noexcept { return out.rows * out.columns; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) {
      std::fill_n(out.at(first), out.columns, static_cast<G>(0.0F));
    }
  }
  SEQPACK_HD void operator()(offset_t unit) const {
    const offset_t row = divide(unit, out.columns);
    out.at(row)[unit - row * out.columns] = static_cast<G>(0.0F);
  }
};

/// A loss on logits, for one group of sequences.
template <class View, class Fields, class L, class C, class G>
struct logits_operation {
  source<View, Fields> from;
  L loss;
  row_view<const C> logits;  ///< the full row, all columns
  double* derivatives;       ///< one row of all columns, for the derivative to be written to
  matrix_view<G> gradient;   ///< of this rank's rows, 0 so far; or of nothing
  column_range columns;
  shard mine;
  double factor;
  double* results;

  using sequence_type = logits_sequence<View, Fields, typename L::metrics, C>;

  offset_t rows() const noexcept { return 1; }
  offset_t row_bytes() const noexcept { return logits.rows * logits.payload * offset_t{sizeof(C)}; }
  offset_t units() const noexcept { return 1; }
  void process(offset_t, offset_t) const { (*this)(0); }
  SEQPACK_HD void operator()(offset_t) const {
    clear(results, typename L::metrics{});
    const double weight = targets::sample_weight(from.fields, from.first_row);
    if (weight == 0) return;
    const auto sequence = [&](std::size_t k) {
      return sequence_type(from, static_cast<offset_t>(k), results + 1, weight, logits.data,
                           logits.payload);
    };
    const auto term = call(loss, sequence, std::make_index_sequence<group_size<L>>{});
    results[0] = weight * term.value;
    if (gradient.data != nullptr && factor != 0) write(0, weight * factor, term);
  }

 private:
  SEQPACK_HD void write(offset_t, double, const differentiable_t<>&) const {}
  template <class Term>
  SEQPACK_HD void write(offset_t b, double scale, const Term& term) const {
    const offset_t slot = from.view.slot(b);
    const offset_t length = from.view.length(slot);
    for (offset_t t = 1; t <= length; ++t) {
      const offset_t row = from.view.row_of(mine, slot, t - 1);
      if (row < 0 || !counts(b, t, length)) continue;
      for (offset_t v = 0; v < logits.payload; ++v) derivatives[v] = 0;
      term.derivative(t, derivatives);
      for (offset_t v = 0; v < columns.size(); ++v) {
        const double d = scale * derivatives[columns.first + v];
        gradient.at(row)[v] = static_cast<G>(static_cast<C>(d));
      }
    }
    write(b + 1, scale, term.rest);
  }
  SEQPACK_HD bool counts(offset_t b, offset_t t, offset_t length) const {
    if (t == length) return has_last_row<L>;
    return targets::token_weight(from.fields, from.rule, from.first_row + b, t) != 0;
  }
};

/// Everything that stays the same while a loss goes through a batch.
template <class E, class CP, class TP, class Fields, class L, class T, class G>
struct evaluation {
  const E& where;
  CP& cp;
  TP& tp;
  const Fields& fields;
  const targets::document_rule& rule;
  const L& loss;
  column_range columns;
  bool with_gradient;
  double factor;  ///< of derivatives
  double temperature;
  bool replicated;

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
    using label_type = targets::counted_label<Fields>;
    if (rows > 0) {
      per_token(where, view, mine(),
                token_array<std::int64_t, label_type>{
                    labels, {fields, rule, sequences_per_group<L>, first_row}});
    }
    const log_prob_options options{.temperature = temperature};
    label_log_probs(where, tp, logits, columns, labels, state.rows(), options);

    const bool alone = cp.size() == 1;
    const workspace<C> all(where, alone ? 0 : view.total);
    if (!alone) {
      keeping(cp, all.owner(),
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
    if (with_gradient) execute(where, zero_operation<G>{gradient});
    const workspace<double> derivatives(where, with_gradient ? columns.total : 0);
    using operation = logits_operation<View, Fields, L, C, G>;
    execute(where, operation{from, loss, rows, derivatives.data(), gradient, columns, mine(),
                             factor / temperature, results});
  }

  template <class Group>
  static void add_up(Group& group, const workspace<C>& numbers) {
    if (group.size() == 1) return;
    keeping(group, numbers.owner(), [&] {
      group.all_reduce(static_cast<const C*>(numbers.data()), numbers.data(), numbers.size(),
                       reduction::sum);
    });
  }

  /// One group after the other, each with a layout of its own.
  template <class P, class CPPolicy, class Index>
  void per_sequence(const packed_layout<P, CPPolicy, Index>& layout,
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
      const auto placed = resident(where, alone);
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
      execute(where, zero_operation<G>{part(gradient, end, gradient.rows)});
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
  (targets::require_field<E>(Tags{}, view, fields), ...);
}

/// What a loss needs of a batch, on this rank.
template <executor E, loss_function L, class View, class Fields>
void require_batch(const View& view, const Fields& fields) {
  require_fields<E>(view, fields, asked_fields<L>{});
  require_fields<E>(view, fields, field_tags<input_ids_t>{});
  targets::require_field<E>(token_mask, view, fields);
  targets::require_field<E>(sample_mask, view, fields);
  if (view.batch % sequences_per_group<L> != 0) {
    reject("batch size", view.batch,
           "it must be a multiple of " + std::to_string(sequences_per_group<L>) +
               ", the sequences that the loss takes together");
  }
  if (view.slot_of != nullptr) {
    reject("order of the layout", "given", "a loss takes the rows of the batch in their order");
  }
}

/// Targets that are not in the vocabulary, where they can be read.
template <executor E, loss_function L, class View, class Fields>
void require_targets(const View& view, const Fields& fields, const targets::document_rule& rule,
                     offset_t vocabulary) {
  if constexpr (host_executor<E> && L::input == loss_input::next_token_logprobs) {
    targets::require_known(
        view, targets::counted_label<Fields>{fields, rule, sequences_per_group<L>, 0}, vocabulary);
  }
}

/// Evaluates a loss whose batch has been checked.
/// \param layout on the host
/// \param view the same layout where the executor works
template <executor E, communicator CP, communicator TP, class P, class C, class Index, class View,
          class Fields, class L, class T, class G>
loss_result<E, typename L::metrics> run(const E& where, CP& cp, TP& tp,
                                        const packed_layout<P, C, Index>& layout, const View& view,
                                        const Fields& fields, const targets::document_rule& rule,
                                        const L& loss, const matrix_view<T>& logits,
                                        const column_range& columns, const matrix_view<G>& gradient,
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
      options.replicated_columns};
  [[maybe_unused]] const group_execution::current_device here(cp, tp);
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
  group_execution::require_same_stream(where, cp);
  group_execution::require_same_stream(where, tp);
}

/// What run() is given beside the batch.
template <class View, class CP, class TP, class T, class G>
void require_logits(const View& view, const CP& cp, const TP& tp, const matrix_view<T>& logits,
                    const column_range& columns, const matrix_view<G>& gradient,
                    const loss_options& options) {
  require_counts(options.counts);
  logits_checks::reciprocal<compute_type<T>>(options.temperature);
  logits_checks::require_range(columns);
  if (tp.size() == 1 || options.replicated_columns) logits_checks::require_all(columns);
  checks::require_equal(checks::alone, "context-parallel size of the layout", view.cp.size(),
                        cp.size(), "the ranks of the group");
  checks::require_equal(checks::alone, "logits rows", logits.rows, view.shard_tokens(),
                        "the tokens of the layout in one shard");
  checks::require_equal(checks::alone, "logits columns", logits.columns, columns.size(),
                        "the columns of the vocabulary that they are");
  checks::require_memory(checks::alone, "logits", logits.data, logits.rows * logits.columns);
  if (gradient.data == nullptr && gradient.rows * gradient.columns == 0) return;
  logits_checks::require_gradient(logits, gradient);
}

}  // namespace losses

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
/// \param logits [T / CP, columns.size()] of this rank. What stands in rows of padding and of
/// targets that the masks leave out reaches nothing.
/// \param columns which they are; those of the ranks of tp are the vocabulary, in their order
/// \param gradient the same shape, of any type of logits, written, all of it; the logits
/// themselves, which it then overwrites; or a view of nothing
/// \throws invalid_input before anything is sent or written, on this rank alone: a field that the
/// loss asks for and does not fit the layout, a batch that is no multiple of what the loss takes
/// together, sizes that do not fit, counts that are negative, a temperature that is not finite and
/// positive; on the host also a target that is not in the vocabulary.
///
/// Allocates O(T), for a loss on logits O(V times the longest sequence); an allocation that fails
/// is an error on this rank alone. Does not synchronise, but that on a device the layout, with
/// loss_pass::per_sequence of each group, is copied there as to_device does; reading the result
/// waits.
template <executor E, class P, class C, class Index, communicator CP, communicator TP, batch B,
          loss_function L, logit T, logit G = std::remove_const_t<T>>
  requires gathers_on<E, CP> && gathers_on<E, TP>
loss_result<E, typename L::metrics> evaluate_loss(
    const E& where, const packed_layout<P, C, Index>& layout, CP& cp, TP& tp, const B& batch,
    const L& loss, const matrix_view<T>& logits, const column_range& columns,
    const loss_options& options, const matrix_view<G>& gradient = {}) {
  const group_execution::current_device here(cp, tp);
  const auto placed = resident(where, layout);
  const auto view = placed.view();
  const auto fields = batch.fields();
  losses::require_streams(where, cp, tp);
  losses::require_batch<E, L>(layout.view(), fields);
  losses::require_logits(view, cp, tp, logits, columns, gradient, options);
  losses::require_targets<E, L>(layout.view(), fields, {}, columns.total);
  return losses::run(where, cp, tp, layout, view, fields, {}, loss, logits, columns, gradient,
                     options);
}

}  // namespace seqpack
