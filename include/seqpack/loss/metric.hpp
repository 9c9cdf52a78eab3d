/// \file
/// Metrics whose reduction is a part of their type, so that nobody sums a minimum or divides a sum
/// by the wrong count.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "seqpack/loss/global_counts.hpp"

namespace seqpack {

/// The reduction of the contributions to a metric.
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

/// Whether a list has a metric.
template <class List, class Metric>
inline constexpr bool has_metric = false;
template <class Metric, class... Metrics>
inline constexpr bool has_metric<metric_list<Metrics...>, Metric> =
    (std::is_same_v<Metric, Metrics> || ...);

}  // namespace seqpack
