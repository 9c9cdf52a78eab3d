/// \file
/// The value of a loss and its contributions to metrics: a row for each tuple, and their total.
#pragma once

#include <cstddef>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/team.hpp"
#include "seqpack/loss/detail/metric_math.hpp"
#include "seqpack/loss/metric.hpp"

namespace seqpack::detail {

/// Where a loss puts its value and its contributions to metrics: one row per tuple.
template <class L>
inline constexpr offset_t tuple_row_size = 1 + static_cast<offset_t>(L::metrics::size);

/// A row of nothing.
template <metric... M>
SEQPACK_HD void clear_tuple_row(double* row, metric_list<M...>) {
  row[0] = 0;
  [[maybe_unused]] std::size_t k = 0;
  ((row[++k] = metric_math::neutral(M::kind)), ...);
}

/// Rows of nothing, for tuples that are not evaluated.
template <class L>
struct clear_tuples_operation {
  double* tuples;
  offset_t count;

  offset_t rows() const noexcept { return count; }
  offset_t row_bytes() const noexcept { return tuple_row_size<L> * offset_t{sizeof(double)}; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t n) const {
    clear_tuple_row(tuples + n * tuple_row_size<L>, typename L::metrics{});
  }
};

/// How a column of rows is combined.
template <metric... M>
SEQPACK_HD constexpr metric_kind kind_of_column(offset_t column, metric_list<M...>) {
  metric_kind kind = metric_kind::sum;
  [[maybe_unused]] offset_t k = 0;
  ((++k == column ? static_cast<void>(kind = M::kind) : static_cast<void>(0)), ...);
  return kind;
}

/// What the threads of a team have recorded, on all of them.
template <team Team, metric... M>
SEQPACK_HD void gather_recorded(const Team& team, double* row, metric_list<M...>) {
  [[maybe_unused]] const auto all = [&](metric_kind kind, double& value) {
    value =
        team.reduce(value, [kind](double a, double b) { return metric_math::combine(kind, a, b); });
  };
  [[maybe_unused]] std::size_t k = 0;
  (all(M::kind, row[++k]), ...);
}

/// Adds up the rows of all tuples: on the host in their order, on a device by a team for each column.
template <class L>
struct loss_total_operation {
  const double* tuples;
  offset_t count;
  double* totals;

  offset_t rows() const noexcept { return tuple_row_size<L>; }
  offset_t row_bytes() const noexcept { return sizeof(double); }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(single_thread{}, first);
  }
  offset_t row_work() const noexcept {
    return count * tuple_row_size<L> * offset_t{sizeof(double)};
  }
  template <team Team>
  SEQPACK_HD void operator()(const Team& team, offset_t column) const {
    const metric_kind kind = kind_of_column(column, typename L::metrics{});
    const auto combine = [kind](double a, double b) { return metric_math::combine(kind, a, b); };
    double total = metric_math::neutral(kind);
    for (offset_t n = team.rank(); n < count; n += team.size()) {
      total = combine(total, tuples[n * tuple_row_size<L> + column]);
    }
    total = team.reduce(total, combine);
    if (team.rank() == 0) totals[column] = total;
  }
};

}  // namespace seqpack::detail
