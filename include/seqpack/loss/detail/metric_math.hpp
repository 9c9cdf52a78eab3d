/// \file
/// How contributions to a metric are combined, and what they become.
#pragma once

#include <cstddef>
#include <limits>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/loss/global_counts.hpp"
#include "seqpack/loss/metric.hpp"

namespace seqpack::detail::metric_math {

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

}  // namespace seqpack::detail::metric_math
