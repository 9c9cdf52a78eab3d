/// \file
/// Log-probabilities on the device beside those of the host, for any type of logits.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"

namespace seqpack::testing {

/// Rows of a width that is no multiple of anything, at an address that is not aligned to more than
/// an element, in a matrix wider than the rows.
/// \param zero whether the gradient writes 0 to what is between the rows
template <class T>
void check_log_probs(offset_t rows, offset_t columns, double tolerance, bool zero) {
  using C = compute_type<T>;
  const offset_t stride = columns + 3;
  std::mt19937 random(static_cast<unsigned>(rows + columns));
  std::normal_distribution<float> value(0, 3);
  std::vector<T> logits(static_cast<std::size_t>(rows * stride));
  for (T& x : logits) x = static_cast<T>(value(random));
  std::vector<std::int64_t> labels;
  std::vector<C> derivatives;
  for (offset_t t = 0; t < rows; ++t) {
    labels.push_back(t % 5 == 4 ? ignored_label : (t * 31) % columns);
    derivatives.push_back(t % 7 == 3 ? C{0} : static_cast<C>(value(random)));
  }
  const log_prob_options options{.temperature = 1.25, .zero_padded_columns = zero};
  self_communicator tp;

  const log_prob_state<C> expected(host, rows, true);
  std::vector<T> expected_gradient = logits;
  const matrix_view<T> host_rows(expected_gradient.data(), rows, columns, stride);
  label_log_probs(host, tp, host_rows, column_range(columns), labels, expected.rows(), options);
  label_log_probs_backward(host, host_rows, column_range(columns), labels, expected.rows(),
                           derivatives, host_rows, options);

  const test_stream stream;
  const auto where = stream.executor();
  const device_array<T> device_logits(logits, sizeof(T));
  const device_array<std::int64_t> device_labels(labels);
  const device_array<C> device_derivatives(derivatives);
  const device_array<C> log_probs(static_cast<std::size_t>(rows));
  const device_array<C> max(static_cast<std::size_t>(rows));
  const device_array<C> sum(static_cast<std::size_t>(rows));
  const device_array<C> entropy(static_cast<std::size_t>(rows));
  const auto view = [&](const device_array<C>& array) { return row_view<C>(array.data(), rows); };
  const label_log_prob_rows<C> out{view(log_probs), view(max), view(sum), view(entropy)};
  const matrix_view<T> device_rows(device_logits.data(), rows, columns, stride);
  const row_view<const std::int64_t> label_rows(device_labels.data(), rows);
  label_log_probs(where, tp, device_rows, column_range(columns), label_rows, out, options);
  label_log_probs_backward(where, device_rows, column_range(columns), label_rows, out,
                           row_view<const C>(device_derivatives.data(), rows), device_rows,
                           options);
  stream.wait();

  const auto near = [&](double found, double wanted) {
    return std::abs(found - wanted) <= tolerance * (1 + std::abs(wanted));
  };
  const auto check = [&](const device_array<C>& array, const row_view<C>& wanted) {
    const std::vector<C> found = array.values();
    for (offset_t t = 0; t < rows; ++t) {
      BOOST_TEST(near(static_cast<double>(found[static_cast<std::size_t>(t)]),
                      static_cast<double>(*wanted.at(t))));
    }
    BOOST_TEST(array.guards_intact());
  };
  check(log_probs, expected.rows().log_probs);
  check(entropy, expected.rows().entropy);
  check(max, expected.rows().max);
  check(sum, expected.rows().sum);
  const std::vector<T> gradient = device_logits.values();
  const double rounding = sizeof(T) == 2 ? 1e-2 : tolerance;
  for (offset_t t = 0; t < rows; ++t) {
    for (offset_t v = 0; v < stride; ++v) {
      const auto k = static_cast<std::size_t>(t * stride + v);
      const auto found = static_cast<double>(static_cast<C>(gradient[k]));
      const auto wanted =
          v >= columns && zero
              ? 0
              : static_cast<double>(static_cast<C>(v < columns ? expected_gradient[k] : logits[k]));
      BOOST_TEST((v < columns ? std::abs(found - wanted) <= rounding * (1 + std::abs(wanted))
                              : found == wanted));
    }
  }
  BOOST_TEST(device_logits.guards_intact());
}

template <class T>
void check_log_prob_shapes(double tolerance) {
  check_log_probs<T>(1, 1, tolerance, true);
  check_log_probs<T>(9, 37, tolerance, false);
  check_log_probs<T>(9, 37, tolerance, true);
  check_log_probs<T>(3, 1030, tolerance, false);
  check_log_probs<T>(5, 1030, tolerance, true);
}

}  // namespace seqpack::testing
