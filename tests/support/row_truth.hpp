/// \file
/// What a row of logits says by the definition of a softmax.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "seqpack/core/config.hpp"

namespace seqpack::testing {

/// The log-probability of the label of a row of logits, its entropy and its probabilities.
struct row_truth {
  double log_prob;
  double entropy;
  std::vector<double> probabilities;
};
/// By the definition, in long double.
template <class T>
row_truth truth(const T* row, offset_t columns, std::int64_t label, double temperature) {
  std::vector<long double> y;
  long double sum = 0;
  for (offset_t v = 0; v < columns; ++v) {
    y.push_back(static_cast<long double>(row[v]) / temperature);
    sum += std::exp(y.back());
  }
  row_truth result{static_cast<double>(y[static_cast<std::size_t>(label)] - std::log(sum)), 0, {}};
  for (const long double one : y) {
    const long double p = std::exp(one) / sum;
    result.entropy -= static_cast<double>(p == 0 ? 0 : p * std::log(p));
    result.probabilities.push_back(static_cast<double>(p));
  }
  return result;
}

}  // namespace seqpack::testing
