/// \file
/// The values of metrics, of one batch and of all ranks.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/loss/detail/metric_math.hpp"
#include "seqpack/loss/global_counts.hpp"
#include "seqpack/loss/metric.hpp"

namespace seqpack {

/// The values of a loss's metrics. A mean is this part of it, over the global count: add the values
/// of all micro-batches and data-parallel ranks, with `merge` and `reduce_metrics`, and it is the
/// mean of all.
template <class List>
class metric_values;

template <metric... Metrics>
class metric_values<metric_list<Metrics...>> {
 public:
  using list = metric_list<Metrics...>;

  /// Of nothing: 0, and the infinities for min and max.
  constexpr metric_values() : values_{detail::metric_math::neutral(Metrics::kind)...} {}
  /// From the contributions of a loss.
  constexpr metric_values(const double* contributions, const global_counts& counts)
      : metric_values() {
    std::size_t k = 0;
    ((values_[k] = detail::metric_math::share(contributions[k],
                                              detail::metric_math::factor<Metrics>(counts)),
      ++k),
     ...);
  }

  /// The value of a metric: `metrics[accuracy{}]`.
  template <metric Metric>
    requires has_metric<list, Metric>
  constexpr double operator[](Metric) const noexcept {
    return values_[detail::metric_math::index_of<Metric>(list{})];
  }
  /// Calls f(name, value) for each.
  template <class F>
  constexpr void for_each(F&& f) const {
    std::size_t k = 0;
    (f(std::string_view(Metrics::name), values_[k++]), ...);
  }

  /// Takes in the values of another micro-batch or rank: sums and means add up, min and max skip
  /// values of nothing.
  constexpr metric_values& merge(const metric_values& other) {
    std::size_t k = 0;
    ((values_[k] = detail::metric_math::combine(Metrics::kind, values_[k], other.values_[k]), ++k),
     ...);
    return *this;
  }

  friend constexpr bool operator==(const metric_values&, const metric_values&) = default;

 private:
  std::array<double, sizeof...(Metrics)> values_;
};

/// The metrics of all ranks of a group, on every rank: the data-parallel group's, as the ranks of a
/// context- or tensor-parallel group have the same ones.
///
/// **Collective**: one exchange of a record of fixed size; the host waits for it. Ranks are taken
/// in their order, so the result is the same to the last bit on all of them.
/// \throws collective_mismatch where ranks call something else.
template <communicator C, class List>
metric_values<List> reduce_metrics(C& group, const metric_values<List>& mine) {
  static_assert(sizeof(metric_values<List>) <= detail::envelope::room,
                "more metrics than one record between ranks has room for: 27");
  metric_values<List> all;
  if constexpr (List::size > 0) {
    for (const auto& one : detail::exchange_records(group, "reduce_metrics", mine)) {
      all.merge(one);
    }
  }
  return all;
}

namespace detail::records {

/// Doubles, of which every pattern of bits is one.
template <class List>
struct traits<metric_values<List>> {
  static void write(writer& to, const metric_values<List>& values) {
    if constexpr (List::size > 0) to.raw(&values, sizeof values);
  }
  static metric_values<List> read(reader& from) {
    metric_values<List> values;
    if constexpr (List::size > 0) from.raw(&values, sizeof values);
    return values;
  }
};

}  // namespace detail::records

}  // namespace seqpack
