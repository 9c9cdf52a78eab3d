/// \file
/// The passes of a loss, as bulk operations: a group of sequences at a time, for hosts and devices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/team.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/loss/loss.hpp"
#include "seqpack/loss/metrics.hpp"
#include "seqpack/tokens/targets.hpp"

namespace seqpack::detail::losses {

/// Where a loss puts its value and its contributions to metrics: one row per group of sequences.
template <class L>
inline constexpr offset_t row_size = 1 + static_cast<offset_t>(L::metrics::size);

template <metric... M>
SEQPACK_HD void clear(double* row, metric_list<M...>) {
  row[0] = 0;
  [[maybe_unused]] std::size_t k = 0;
  ((row[++k] = detail::metric_math::neutral(M::kind)), ...);
}

template <metric... M>
SEQPACK_HD constexpr metric_kind kind_of(offset_t column, metric_list<M...>) {
  metric_kind kind = metric_kind::sum;
  [[maybe_unused]] offset_t k = 0;
  ((++k == column ? static_cast<void>(kind = M::kind) : static_cast<void>(0)), ...);
  return kind;
}

/// What the threads of a group have recorded, on all of them.
template <team Group, metric... M>
SEQPACK_HD void gather(const Group& group, double* row, metric_list<M...>) {
  [[maybe_unused]] const auto all = [&](metric_kind kind, double& value) {
    value = group.reduce(
        value, [kind](double a, double b) { return detail::metric_math::combine(kind, a, b); });
  };
  [[maybe_unused]] std::size_t k = 0;
  (all(M::kind, row[++k]), ...);
}

/// The rows of all groups of sequences: the same sum whoever computed them. On the host in their
/// order, on a device by the threads of a block for each column.
template <class L>
struct total_operation {
  const double* groups;
  offset_t count;
  double* totals;

  offset_t rows() const noexcept { return row_size<L>; }
  offset_t row_bytes() const noexcept { return sizeof(double); }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(single_thread{}, first);
  }
  offset_t row_work() const noexcept { return count * row_size<L> * offset_t{sizeof(double)}; }
  template <team Group>
  SEQPACK_HD void operator()(const Group& threads, offset_t column) const {
    const metric_kind kind = kind_of(column, typename L::metrics{});
    const auto combine = [kind](double a, double b) {
      return detail::metric_math::combine(kind, a, b);
    };
    double total = detail::metric_math::neutral(kind);
    for (offset_t g = threads.rank(); g < count; g += threads.size()) {
      total = combine(total, groups[g * row_size<L> + column]);
    }
    total = threads.reduce(total, combine);
    if (threads.rank() == 0) totals[column] = total;
  }
};

/// A loss on log-probabilities: one group of sequences per row of work. On a device the threads
/// that evaluate it for a group share its targets out among them.
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

  offset_t rows() const noexcept { return divide(from.view.batch, group); }
  offset_t row_bytes() const noexcept {
    return divide(from.view.total, max_of(rows(), 1)) * offset_t{sizeof(C)};
  }
  /// The same for every batch, so that the same number of threads adds up a sequence, in the same
  /// order, whatever else is in its batch and however that is padded: those for a few thousand
  /// tokens.
  offset_t row_work() const noexcept { return offset_t{64} * 1024; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(single_thread{}, first);
  }
  template <team Group>
  SEQPACK_HD void operator()(const Group& threads, offset_t g) const {
    using metrics = typename L::metrics;
    double found[row_size<L>];  // by this thread; the value, by the first one
    clear(found, metrics{});
    const double weight = detail::targets::sample_weight(from.fields, from.first_row + g * group);
    if (weight != 0) {
      bool inside = false;
      const sequence_team<Group> all(threads, inside);
      const auto sequence = [&](std::size_t k) {
        return log_prob_sequence<View, Fields, metrics, C, Group>(
            from, g * group + static_cast<offset_t>(k), found + 1, weight, log_probs, all);
      };
      const auto term = call(loss, sequence, std::make_index_sequence<group_size<L>>{});
      found[0] = weight * term.value;
      inside = true;
      if (derivatives != nullptr && factor != 0) write(threads, g * group, weight * factor, term);
      gather(threads, found, metrics{});
    }
    if (threads.rank() > 0) return;
    for (offset_t k = 0; k < row_size<L>; ++k) results[g * row_size<L> + k] = found[k];
  }

 private:
  template <class Group>
  SEQPACK_HD void write(const Group&, offset_t, double, const differentiable_t<>&) const {}
  template <class Group, class Term>
  SEQPACK_HD void write(const Group& threads, offset_t b, double scale, const Term& term) const {
    const offset_t slot = from.view.slot(b);
    const offset_t length = slot < 0 ? 0 : from.view.length(slot);
    for (offset_t t = 1 + threads.rank(); t < length; t += threads.size()) {
      const offset_t row = from.view.row_of(mine, slot, t - 1);
      if (row < 0) continue;
      const double w = detail::targets::token_weight(from.fields, from.rule, from.first_row + b, t);
      if (w != 0) derivatives[row] = static_cast<C>(scale * w * term.derivative(t));
    }
    write(threads, b + 1, scale, term.rest);
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
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(single_thread{}, first);
  }
  offset_t row_work() const noexcept { return row_bytes(); }
  template <team Group>
  SEQPACK_HD void operator()(const Group& threads, offset_t row) const {
    C* const to = out.at(row);
    const T* const own = row_to_add(row);
    for (offset_t v = threads.rank(); v < out.payload; v += threads.size()) {
      to[v] = own != nullptr && columns.contains(v) ? static_cast<C>(own[v - columns.first]) * scale
                                                    : C{0};
    }
  }

 private:
  /// The logits that this rank has of a row of the full row; null where they are not wanted.
  SEQPACK_HD const T* row_to_add(offset_t row) const {
    const token_ref token = from.view.token_at(full_row, row);
    if (!token.real() || !counts(token)) return nullptr;
    const offset_t own = from.view.row_of(mine, token.slot, token.index);
    return own < 0 ? nullptr : logits.at(own);
  }
  SEQPACK_HD bool counts(const token_ref& token) const {
    const offset_t t = token.index + 1;
    if (t == token.length) return last_row;
    return detail::targets::token_weight(
               from.fields, from.rule, from.first_row + from.view.sequence_in(token.slot), t) != 0;
  }
};

/// Rows of a matrix that are 0.
template <class G>
struct zero_operation {
  matrix_view<G> out;

  offset_t rows() const noexcept { return out.rows; }
  offset_t row_bytes() const noexcept { return out.columns * offset_t{sizeof(G)}; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) {
      std::fill_n(out.at(first), out.columns, static_cast<G>(0.0F));
    }
  }
  offset_t row_work() const noexcept { return row_bytes(); }
  template <team Group>
  SEQPACK_HD void operator()(const Group& threads, offset_t row) const {
    threads.fill_row(out.at(row), out.columns, static_cast<G>(0.0F));
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
  void process(offset_t, offset_t) const { (*this)(0); }
  SEQPACK_HD void operator()(offset_t) const {
    clear(results, typename L::metrics{});
    const double weight = detail::targets::sample_weight(from.fields, from.first_row);
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
    return detail::targets::token_weight(from.fields, from.rule, from.first_row + b, t) != 0;
  }
};

}  // namespace seqpack::detail::losses
