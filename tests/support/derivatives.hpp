/// \file
/// Compares losses with their formulas in long double, and gradients with central differences of
/// those.
#pragma once

#include <boost/test/unit_test.hpp>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "seqpack/loss/evaluate.hpp"
#include "support/loss_oracle.hpp"

namespace seqpack::testing {

/// Any counts: a loss divides by what it is told.
inline constexpr global_counts counts{.tokens = 7.5, .sequences = 3.25};

inline bool is_near(real found, real expected, real tolerance) {
  return std::abs(found - expected) <= tolerance * std::max(real{1}, std::abs(expected));
}

/// The rows of a sample in the order of a layout; NaN in padding.
template <class View>
std::vector<double> packed_outputs(const loss_sample& c, const View& view) {
  std::vector<double> rows;
  for (offset_t t = 0; t < view.total_tokens(); ++t) {
    const token_ref token = view.token_at(full_row, t);
    for (int v = 0; v < c.columns; ++v) {
      if (!token.real()) {
        rows.push_back(std::numeric_limits<double>::quiet_NaN());
        continue;
      }
      const auto b = static_cast<int>(view.sequence_in(token.slot));
      const auto at = c.at(b, static_cast<int>(token.index));
      rows.push_back(static_cast<double>(c.outputs[at][static_cast<std::size_t>(v)]));
    }
  }
  return rows;
}

/// The gradient of packed rows against central differences of f(sample). Every step of a difference
/// is 1e-6 long, the error of a difference about 1e-12.
template <class View, class F>
void check_gradient(loss_sample c, const View& view, const std::vector<double>& gradient,
                    const F& f) {
  constexpr real step = 1e-6L;
  std::size_t k = 0;
  for (offset_t t = 0; t < view.total_tokens(); ++t) {
    const token_ref token = view.token_at(full_row, t);
    for (int v = 0; v < c.columns; ++v, ++k) {
      if (!token.real()) {
        BOOST_TEST(gradient[k] == 0);
        continue;
      }
      const int b = static_cast<int>(view.sequence_in(token.slot));
      const int s = static_cast<int>(token.index);
      real& x = c.outputs[c.at(b, s)][static_cast<std::size_t>(v)];
      const real middle = x;
      x = middle + step;
      const real above = f(c);
      x = middle - step;
      const real below = f(c);
      x = middle;
      const real expected = (above - below) / (2 * step);
      if (is_near(gradient[k], expected, 1e-10L)) continue;
      BOOST_TEST(false, "gradient[" << b << "][" << s << "][" << v << "]: found " << gradient[k]
                                    << ", expected " << expected);
    }
  }
}

/// Value, metrics and gradient of a loss over a sample; fused and one sequence after the other they
/// are the same to the last bit.
template <class Loss, class Formula>
void check_loss(const loss_sample& c, const Loss& loss, const Formula& formula,
                const slot_order& order = {}) {
  const auto layout = make_layout(c.lengths, padding{each_multiple_of<3>{}}, no_context_parallel{},
                                  {.order = order});
  const auto view = layout.view();
  const std::vector<double> outputs = packed_outputs(c, view);
  const matrix_view rows(outputs.data(), view.total_tokens(), offset_t{c.columns});
  self_communicator cp;
  self_communicator tp;
  const auto evaluate = [&](loss_pass pass, std::vector<double>& gradient) {
    return evaluate_loss(host, layout, cp, tp, c, loss, rows, column_range(c.columns),
                         {.counts = counts, .temperature = c.temperature, .pass = pass},
                         matrix_view(gradient.data(), rows.rows, rows.columns));
  };
  std::vector<double> gradient(outputs.size(), 12345);
  const auto result = evaluate(loss_pass::fused, gradient);
  const loss_value expected = formula(c);
  BOOST_TEST(is_near(result.value(), expected.value, 1e-13L), result.value()
                                                                  << " for " << expected.value);
  result.metrics().for_each([&](std::string_view name, double x) {
    const real y = expected.metrics.at(std::string(name));
    BOOST_TEST((x == static_cast<double>(y) || is_near(x, y, 1e-13L)),
               name << ": " << x << " for " << y);
  });
  check_gradient(c, view, gradient, [&](const loss_sample& moved) { return formula(moved).value; });

  std::vector<double> other_gradient(outputs.size(), 12345);
  const auto other = evaluate(loss_pass::per_sequence, other_gradient);
  BOOST_TEST(other.value() == result.value());
  BOOST_TEST((other.metrics() == result.metrics()));
  BOOST_TEST((other_gradient == gradient));
}

/// Calls f with samples of several shapes, at temperatures other than 1.
template <class F>
void for_each_sample(unsigned seed, int columns, const F& f) {
  std::mt19937 random(seed);
  for (const int batch : {2, 4, 6}) {
    for (const double temperature : {1.0, 0.6, 1.7}) {
      f(random_sample(random, batch, columns, temperature));
    }
  }
}

}  // namespace seqpack::testing
