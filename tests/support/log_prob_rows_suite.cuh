/// \file
/// Rows of logits on the device against the definition, at every size where another number of
/// threads, or another access to memory, begins to do them.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"

namespace seqpack::testing {

/// A matrix of logits with what is done to it. Every second row or so is special.
template <class T>
struct logit_rows {
  using C = compute_type<T>;
  static constexpr offset_t rows = 7;
  static constexpr offset_t no_label = 1;       // of NaNs
  static constexpr offset_t no_derivative = 2;  // of NaNs
  static constexpr offset_t masked = 3;         // -inf, but for the label and every 11th
  static constexpr offset_t only_label = 4;     // -inf elsewhere
  static constexpr offset_t large = 5;          // around 1000

  offset_t columns;
  std::vector<T> values;  // dense
  std::vector<std::int64_t> labels;
  std::vector<C> derivatives;

  explicit logit_rows(offset_t count) : columns(count) {
    const auto inf = std::numeric_limits<float>::infinity();
    std::mt19937 random(static_cast<unsigned>(columns));
    std::normal_distribution<float> draw(0, 3);
    for (offset_t t = 0; t < rows; ++t) {
      const offset_t label = t == 6 ? columns - 1 : (t * 7919 + 5) % columns;
      labels.push_back(t == no_label ? ignored_label : label);
      derivatives.push_back(t == no_derivative ? C{0} : static_cast<C>(draw(random)));
      for (offset_t v = 0; v < columns; ++v) {
        float x = draw(random);
        if (t == no_label || t == no_derivative) x = std::numeric_limits<float>::quiet_NaN();
        if (t == masked && v != label && v % 11 != 0) x = -inf;
        if (t == only_label && v != label) x = -inf;
        if (t == large) x += 1000;
        values.push_back(static_cast<T>(x));
      }
    }
  }
  /// With a distance between rows, and NaN there.
  std::vector<T> strided(offset_t stride) const {
    std::vector<T> result(static_cast<std::size_t>(rows * stride),
                          static_cast<T>(std::numeric_limits<float>::quiet_NaN()));
    for (offset_t t = 0; t < rows; ++t) {
      std::copy_n(values.begin() + t * columns, columns, result.begin() + t * stride);
    }
    return result;
  }
  double at(offset_t t, offset_t v) const {
    return static_cast<double>(static_cast<C>(values[static_cast<std::size_t>(t * columns + v)]));
  }
};

/// What a device makes of it: max, sum, log-probability and entropy of each row, and the gradient.
template <class T, class G>
struct row_results {
  using C = compute_type<T>;
  std::vector<C> numbers;
  std::vector<G> gradient;  // dense

  bool same_bits(const row_results& other) const {
    return std::memcmp(numbers.data(), other.numbers.data(), numbers.size() * sizeof(C)) == 0 &&
           std::memcmp(gradient.data(), other.gradient.data(), gradient.size() * sizeof(G)) == 0;
  }
};

inline constexpr double row_temperature = 1.25;

/// \param shift elements from a 16-byte boundary to the first row
/// \param in_place whether the gradient overwrites the logits
template <class T, class G>
row_results<T, G> run_rows(const logit_rows<T>& input, offset_t stride, offset_t shift,
                           bool with_entropy, bool in_place) {
  using C = compute_type<T>;
  constexpr offset_t rows = logit_rows<T>::rows;
  const offset_t columns = input.columns;
  const log_prob_options options{.temperature = row_temperature};
  const test_stream stream;
  const auto where = stream.executor();
  const auto bytes = [&](std::size_t size) { return static_cast<std::size_t>(shift) * size; };
  const device_array<T> logits(input.strided(stride), bytes(sizeof(T)));
  const device_array<G> apart(in_place ? 1 : static_cast<std::size_t>(rows * stride),
                              bytes(sizeof(G)));
  const device_array<std::int64_t> labels(input.labels);
  const device_array<C> derivatives(input.derivatives);
  const device_array<C> numbers(static_cast<std::size_t>((with_entropy ? 4 : 3) * rows));
  const auto part = [&](offset_t k) { return row_view<C>(numbers.data() + k * rows, rows); };
  label_log_prob_rows<C> out{part(0), part(1), part(2)};
  if (with_entropy) out.entropy = part(3);
  const matrix_view<T> view(logits.data(), rows, columns, stride);
  const row_view<const std::int64_t> label_rows(labels.data(), rows);
  const row_view<const C> derivative_rows(derivatives.data(), rows);
  self_communicator tp;
  label_log_probs(where, tp, view, column_range(columns), label_rows, out, options);

  std::vector<G> gradient;
  const auto backward = [&](const auto& array) {
    label_log_probs_backward(where, view, column_range(columns), label_rows, out, derivative_rows,
                             matrix_view<G>(array.data(), rows, columns, stride), options);
    stream.wait();
    gradient = array.values();
    BOOST_TEST(array.guards_intact());
  };
  if constexpr (std::same_as<T, G>) {
    in_place ? backward(logits) : backward(apart);
  } else {
    backward(apart);
  }
  BOOST_TEST(logits.guards_intact());
  BOOST_TEST(numbers.guards_intact());

  row_results<T, G> result{numbers.values(), {}};
  const std::vector<T> before = input.strided(stride);
  int changed = 0;
  for (offset_t t = 0; t < rows; ++t) {
    const auto row = gradient.begin() + t * stride;
    result.gradient.insert(result.gradient.end(), row, row + columns);
    if (!in_place) continue;
    const auto tail = static_cast<std::size_t>(t * stride + columns);
    const auto gap = static_cast<std::size_t>(stride - columns) * sizeof(T);
    changed += std::memcmp(gradient.data() + tail, before.data() + tail, gap) != 0;
  }
  BOOST_TEST(changed == 0);
  return result;
}

/// \param tolerance of a sum, relative; of a gradient, which is rounded to G, a bit more
template <class T, class G>
void check_rows(const logit_rows<T>& input, const row_results<T, G>& found, bool with_entropy,
                double tolerance) {
  using C = compute_type<T>;
  constexpr offset_t rows = logit_rows<T>::rows;
  const offset_t columns = input.columns;
  const C scale = static_cast<C>(1 / row_temperature);
  const double rounding = (sizeof(G) == 2 ? 1.0 / 256 : 0) + 10 * tolerance;
  // The distance of the smallest numbers of half.
  const double underflow =
      static_cast<compute_type<G>>(static_cast<G>(1e-8F)) == 0 ? std::ldexp(1.0, -24) : 0;
  const auto number = [&](offset_t k, offset_t t) {
    return static_cast<double>(found.numbers[static_cast<std::size_t>(k * rows + t)]);
  };
  const auto near = [](double a, double b, double allowed) {
    return std::abs(a - b) <= allowed * (1 + std::abs(b));
  };
  int wrong = 0;
  for (offset_t t = 0; t < rows; ++t) {
    const auto y = [&](offset_t v) {
      return static_cast<double>(static_cast<C>(static_cast<C>(input.at(t, v)) * scale));
    };
    const auto gradient = [&](offset_t v) {
      const G g = found.gradient[static_cast<std::size_t>(t * columns + v)];
      return static_cast<double>(static_cast<compute_type<G>>(g));
    };
    if (t == logit_rows<T>::no_label || t == logit_rows<T>::no_derivative) {
      for (offset_t v = 0; v < columns; ++v) wrong += gradient(v) != 0;
      const bool ignored = t == logit_rows<T>::no_label;
      BOOST_TEST((ignored ? number(0, t) == 0 : std::isnan(number(0, t))));
      BOOST_TEST((ignored ? number(2, t) == 1 : std::isnan(number(2, t))));
      continue;
    }
    double max = -std::numeric_limits<double>::infinity();
    for (offset_t v = 0; v < columns; ++v) max = std::max(max, y(v));
    double sum = 0;
    double weighted = 0;
    for (offset_t v = 0; v < columns; ++v) {
      if (std::isinf(y(v))) continue;
      sum += std::exp(y(v) - max);
      weighted += (y(v) - max) * std::exp(y(v) - max);
    }
    const offset_t label = input.labels[static_cast<std::size_t>(t)];
    const double d = static_cast<double>(input.derivatives[static_cast<std::size_t>(t)]);
    BOOST_TEST(number(1, t) == max);
    BOOST_TEST(near(number(2, t) / sum, 1, tolerance));
    BOOST_TEST(near(number(0, t), y(label) - max - std::log(sum), 2 * tolerance));
    if (with_entropy) BOOST_TEST(near(number(3, t), std::log(sum) - weighted / sum, 3 * tolerance));
    for (offset_t v = 0; v < columns; ++v) {
      const double share = std::exp(y(v) - max) / sum;
      const double wanted = d * scale * ((v == label ? 1 : 0) - share);
      wrong += !(std::abs(gradient(v) - wanted) <=
                 underflow + rounding * std::abs(wanted) +
                     tolerance * std::abs(d) * (share + 1e-3 / columns));
    }
  }
  BOOST_TEST(wrong == 0);
}

/// The sizes: of a chunk, of a warp, of a block, and where more threads begin to do a row, which is
/// at 8 and at 128 KiB of logits.
template <class T>
std::vector<offset_t> row_sizes() {
  const auto size = offset_t{sizeof(T)};
  std::vector<offset_t> result{1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 255, 256, 257};
  for (const offset_t n : {offset_t{1024}, 8192 / size, offset_t{4098}, 131072 / size}) {
    for (const offset_t more : {-1, 0, 1}) result.push_back(n + more);
  }
  result.push_back(131072 / size + 4099);
  return result;
}

template <class T, class G = T>
void check_row_sizes(double tolerance) {
  for (const offset_t columns : row_sizes<T>()) {
    BOOST_TEST_CONTEXT("columns " << columns) {
      const logit_rows<T> input(columns);
      const bool in_place = std::same_as<T, G>;
      check_rows(input, run_rows<T, G>(input, columns, 0, true, in_place), true, tolerance);
    }
  }
}

/// Every address, and strides that give each row another one: always the same bits.
template <class T, class G = T>
void check_row_addresses(double tolerance) {
  constexpr bool in_place = std::same_as<T, G>;
  const auto size = offset_t{sizeof(T)};
  for (const offset_t columns : {offset_t{5}, offset_t{33}, offset_t{1025}, 8192 / size + 3,
                                 offset_t{12345}, 131072 / size + 7}) {
    const logit_rows<T> input(columns);
    const auto aligned = (columns + 15) / 16 * 16;
    for (const bool entropy : {false, true}) {
      const auto wanted = run_rows<T, G>(input, aligned, 0, entropy, in_place);
      check_rows(input, wanted, entropy, tolerance);
      for (offset_t shift = 0; shift < 16 / size; ++shift) {
        BOOST_TEST_CONTEXT("columns " << columns << ", shift " << shift) {
          const bool same =
              run_rows<T, G>(input, aligned, shift, entropy, in_place).same_bits(wanted);
          BOOST_TEST(same);
          if (columns > 20000 && shift > 1) continue;
          for (const offset_t stride : {columns, columns + 1, columns + 3}) {
            const bool same =
                run_rows<T, G>(input, stride, shift, entropy, in_place).same_bits(wanted);
            BOOST_TEST(same);
          }
          if (in_place) {
            const bool same =
                run_rows<T, G>(input, columns, shift, entropy, false).same_bits(wanted);
            BOOST_TEST(same);
          }
        }
      }
    }
  }
}

/// The last row ends where its memory does: what is read behind it is an error on a device that
/// looks.
template <class T>
void check_row_ends() {
  using C = compute_type<T>;
  for (const offset_t columns :
       {offset_t{3}, offset_t{37}, offset_t{1027}, 8192 / offset_t{sizeof(T)} + 1}) {
    for (offset_t shift = 0; shift < offset_t{16 / sizeof(T)}; ++shift) {
      const test_stream stream;
      const auto where = stream.executor();
      T* memory = nullptr;
      const auto count = static_cast<std::size_t>(shift + 2 * columns);
      check_cuda(cudaMalloc(&memory, count * sizeof(T)));
      check_cuda(cudaMemset(memory, 0, count * sizeof(T)));
      const device_array<std::int64_t> labels(std::vector<std::int64_t>{0, columns - 1});
      const device_array<C> derivatives(std::vector<C>{1, 1});
      const matrix_view<T> rows(memory + shift, 2, columns);
      const row_view<const std::int64_t> label_rows(labels.data(), 2);
      self_communicator tp;
      const log_prob_state<C> state(where, 2);
      label_log_probs(where, tp, rows, column_range(columns), label_rows, state.rows());
      label_log_probs_backward(where, rows, column_range(columns), label_rows, state.rows(),
                               row_view<const C>(derivatives.data(), 2), rows);
      C log_probs[2];
      read_back(where, log_probs, state.rows().log_probs.data, 2);
      const double wanted = -std::log(static_cast<double>(columns));
      for (const C found : log_probs) BOOST_TEST(std::abs(found - wanted) < 1e-5);
      check_cuda(cudaFree(memory));
    }
  }
}

}  // namespace seqpack::testing
