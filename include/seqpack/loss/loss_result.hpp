/// \file
/// The result of an evaluation of a loss.
#pragma once

#include <array>
#include <optional>
#include <utility>

#include "seqpack/exec/memory.hpp"
#include "seqpack/loss/global_counts.hpp"
#include "seqpack/loss/metrics.hpp"

namespace seqpack {

/// The value of a loss and its metrics. Where the executor is a stream, they stay on the device until
/// one of them is asked for.
template <class E, class Metrics>
class loss_result {
 public:
  /// For the library: from 1 + Metrics::size sums where the executor works.
  loss_result(E where, executor_array<double> sums, double factor, const global_counts& counts)
      : where_(std::move(where)), sums_(std::move(sums)), factor_(factor), counts_(counts) {}

  /// The loss. Waits for the stream the first time that a number is asked for.
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
    std::array<double, 1 + Metrics::size> read;
    read_back(where_, read.data(), sums_.data(), sums_.size());
    values_ = read;  // not before: reading may throw
  }

  E where_;
  executor_array<double> sums_;
  double factor_;
  global_counts counts_;
  mutable std::optional<std::array<double, 1 + Metrics::size>> values_;
};

}  // namespace seqpack
