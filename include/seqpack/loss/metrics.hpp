/// \file
/// Metrics whose reduction is a part of their type, so that nobody sums a minimum or divides a sum
/// by the wrong count.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <limits>
#include <string_view>
#include <type_traits>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/loss/global_counts.hpp"

namespace seqpack {

/// How contributions to a metric become one number.
enum class metric_kind {
  sum,
  mean,  ///< a sum over a global count, so that the values of micro-batches and ranks add up
  min,   ///< +infinity where there was nothing
  max    ///< -infinity where there was nothing
};

/// A metric: an empty type with its name, its kind and, for a mean, what it is per.
///
///     struct accuracy {
///       static constexpr std::string_view name = "accuracy";
///       static constexpr auto kind = metric_kind::mean;
///       static constexpr auto over = count_of::pairs;
///     };
template <class M>
concept metric = std::is_empty_v<M> && requires {
  { M::name } -> std::convertible_to<std::string_view>;
  requires std::same_as<std::remove_cv_t<decltype(M::kind)>, metric_kind>;
  requires M::kind != metric_kind::mean || requires {
    requires std::same_as<std::remove_cv_t<decltype(M::over)>, count_of>;
  };
};

/// The metrics of a loss.
template <metric... Metrics>
struct metric_list {
  static constexpr std::size_t size = sizeof...(Metrics);
};
/// A loss without any.
using no_metrics = metric_list<>;

namespace detail::metric_math {

// A constant, because a device cannot call std::numeric_limits.
inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// The number that changes nothing.
SEQPACK_HD constexpr double neutral(metric_kind kind) {
  if (kind == metric_kind::min) return infinity;
  if (kind == metric_kind::max) return -infinity;
  return 0;
}

/// NaN wins: a metric that is not a number must not look like one.
SEQPACK_HD constexpr double combine(metric_kind kind, double a, double b) {
  if (kind == metric_kind::min) return b < a || b != b ? b : a;
  if (kind == metric_kind::max) return b > a || b != b ? b : a;
  return a + b;
}

template <class Metric, class... Metrics>
SEQPACK_HD constexpr std::size_t index_of(metric_list<Metrics...>) {
  constexpr bool same[] = {std::is_same_v<Metric, Metrics>...};
  std::size_t k = 0;
  while (!same[k]) ++k;
  return k;
}

template <class Metric>
constexpr double factor(const global_counts& counts) {
  if constexpr (Metric::kind == metric_kind::mean) {
    return counts.one_over(Metric::over);
  } else {
    return 1;
  }
}

/// Of nothing there is no share, also of what is not finite.
constexpr double share(double contribution, double factor) {
  return factor == 0 ? 0 : contribution * factor;
}

}  // namespace detail::metric_math

/// Whether a list has a metric.
template <class List, class Metric>
inline constexpr bool has_metric = false;
template <class Metric, class... Metrics>
inline constexpr bool has_metric<metric_list<Metrics...>, Metric> =
    (std::is_same_v<Metric, Metrics> || ...);

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
  /// who had nothing.
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

}  // namespace seqpack
