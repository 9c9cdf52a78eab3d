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
#include "seqpack/pack/layout_view.hpp"
#include "seqpack/pack/place.hpp"
#include "seqpack/train/logits.hpp"
#include "seqpack/train/loss.hpp"
#include "seqpack/train/metrics.hpp"
#include "seqpack/train/targets.hpp"

namespace seqpack::losses {

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

}  // namespace seqpack::losses
