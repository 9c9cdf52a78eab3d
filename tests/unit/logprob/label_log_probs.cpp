// Log-probabilities of labels against their definition in long double, and what is refused. Several
// ranks are in tests/mpi/log_probs.cpp.
#define BOOST_TEST_MODULE label_log_probs
#include "seqpack/logprob/label_log_probs.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/logprob/temperature.hpp"
#include "support/refused.hpp"
#include "support/row_truth.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using labels_of = std::vector<std::int64_t>;

static_assert(logit<float> && logit<double> && logit<_Float16> && logit<const float>);
static_assert(!logit<int> && !logit<bool> && !logit<std::vector<float>>);
static_assert(std::same_as<compute_type<float>, float> &&
              std::same_as<compute_type<double>, double> &&
              std::same_as<compute_type<const _Float16>, float>);

template <class T>
struct problem {
  offset_t rows;
  offset_t columns;
  std::vector<T> logits;
  labels_of labels;

  problem(offset_t row_count, offset_t column_count, double spread, unsigned seed)
      : rows(row_count), columns(column_count) {
    std::mt19937 random(seed);
    std::normal_distribution<double> value(0, spread);
    for (offset_t k = 0; k < rows * columns; ++k) logits.push_back(static_cast<T>(value(random)));
    for (offset_t t = 0; t < rows; ++t) {
      labels.push_back(t % 4 == 3
                           ? ignored_label
                           : static_cast<std::int64_t>(random() % static_cast<unsigned>(columns)));
    }
  }
  matrix_view<T> view() { return {logits.data(), rows, columns}; }
  column_range range() const { return column_range(columns); }
};

template <class T>
log_prob_state<compute_type<T>> forward(problem<T>& p, const log_prob_options& options = {},
                                        bool entropy = true) {
  self_communicator tp;
  const log_prob_state<compute_type<T>> state(host, p.rows, entropy);
  label_log_probs(host, tp, p.view(), p.range(), p.labels, state.rows(), options);
  return state;
}

template <class T>
constexpr double tolerance = std::same_as<T, double> ? 1e-13 : 2e-6;

}  // namespace

template <class T>
void values_are_those_of_the_definition() {
  for (const double temperature : {1.0, 0.5, 2.5}) {
    problem<T> p(9, 700, 2, 3);
    const auto state = forward(p, {.temperature = temperature});
    for (offset_t t = 0; t < p.rows; ++t) {
      const auto label = p.labels[static_cast<std::size_t>(t)];
      if (label == ignored_label) {
        BOOST_TEST(*state.rows().log_probs.at(t) == 0);
        BOOST_TEST(*state.rows().entropy.at(t) == 0);
        continue;
      }
      const row_truth expected = truth(p.view().at(t), p.columns, label, temperature);
      BOOST_TEST(std::abs(static_cast<double>(*state.rows().log_probs.at(t)) - expected.log_prob) <=
                 tolerance<T> * (1 + std::abs(expected.log_prob)));
      BOOST_TEST(std::abs(static_cast<double>(*state.rows().entropy.at(t)) - expected.entropy) <=
                 tolerance<T> * (1 + expected.entropy));
    }
  }
}
BOOST_AUTO_TEST_CASE(values_float) {
  values_are_those_of_the_definition<float>();
}
BOOST_AUTO_TEST_CASE(values_double) {
  values_are_those_of_the_definition<double>();
}
BOOST_AUTO_TEST_CASE(values_16_bit) {
  values_are_those_of_the_definition<_Float16>();
}

template <class T, class G>
void gradients_are_those_of_the_definition() {
  const double temperature = 1.5;
  problem<T> p(8, 65, 2, 5);
  using C = compute_type<T>;
  const auto state = forward(p, {.temperature = temperature}, false);
  std::vector<C> derivatives;
  for (offset_t t = 0; t < p.rows; ++t) derivatives.push_back(static_cast<C>(t % 5) - C{1});
  std::vector<G> gradient(p.logits.size(), static_cast<G>(9.0F));
  label_log_probs_backward(
      host, p.view(), p.range(), p.labels, state.rows(), row_view<const C>(derivatives),
      matrix_view<G>(gradient.data(), p.rows, p.columns), {.temperature = temperature});
  for (offset_t t = 0; t < p.rows; ++t) {
    const auto label = p.labels[static_cast<std::size_t>(t)];
    for (offset_t v = 0; v < p.columns; ++v) {
      const auto found = static_cast<double>(gradient[static_cast<std::size_t>(t * p.columns + v)]);
      if (label == ignored_label) {
        BOOST_TEST(found == 0);
        continue;
      }
      const auto d = static_cast<double>(derivatives[static_cast<std::size_t>(t)]) / temperature;
      const row_truth row = truth(p.view().at(t), p.columns, label, temperature);
      const double expected =
          d * ((v == label ? 1 : 0) - row.probabilities[static_cast<std::size_t>(v)]);
      const double rounding = sizeof(G) == 2 ? 1e-3 : tolerance<T>;
      BOOST_TEST(std::abs(found - expected) <= rounding * (1 + std::abs(expected)));
    }
  }
}
BOOST_AUTO_TEST_CASE(gradients_float) {
  gradients_are_those_of_the_definition<float, float>();
}
BOOST_AUTO_TEST_CASE(gradients_double) {
  gradients_are_those_of_the_definition<double, double>();
}
BOOST_AUTO_TEST_CASE(gradients_16_bit) {
  gradients_are_those_of_the_definition<_Float16, _Float16>();
}
BOOST_AUTO_TEST_CASE(gradients_of_another_type) {
  gradients_are_those_of_the_definition<_Float16, float>();
  gradients_are_those_of_the_definition<float, _Float16>();
}

BOOST_AUTO_TEST_CASE(a_gradient_may_overwrite_the_logits) {
  problem<float> p(8, 1000, 3, 7);
  const auto state = forward(p);
  const std::vector<float> derivatives{1, -2, 0, 4, 5, 0.5F, 7, 8};
  std::vector<float> apart(p.logits.size());
  label_log_probs_backward(host, p.view(), p.range(), p.labels, state.rows(), derivatives,
                           matrix_view<float>(apart.data(), p.rows, p.columns));
  label_log_probs_backward(host, p.view(), p.range(), p.labels, state.rows(), derivatives,
                           p.view());
  BOOST_TEST((p.logits == apart));
}

BOOST_AUTO_TEST_CASE(temperature_1_is_no_temperature) {
  problem<float> p(4, 33, 2, 9);
  const std::vector<float> before = p.logits;
  const auto plain = forward(p);
  const auto one = forward(p, {.temperature = 1});
  for (offset_t t = 0; t < p.rows; ++t) {
    BOOST_TEST(*plain.rows().log_probs.at(t) == *one.rows().log_probs.at(t));
  }
  scale_logits(host, p.view(), 1);
  BOOST_TEST((p.logits == before));
}

BOOST_AUTO_TEST_CASE(large_logits_lose_nothing) {
  // The distance of 0.5 is exact in float, the logits' own size must not show.
  std::vector<float> logits{10000.5F, 10000.0F, -10000.0F};
  const labels_of labels{0};
  self_communicator tp;
  const log_prob_state<float> state(host, 1, true);
  const matrix_view<float> view(logits.data(), 1, 3);
  label_log_probs(host, tp, view, column_range(3), labels, state.rows());
  BOOST_TEST(std::abs(*state.rows().log_probs.at(0) - std::log(1 / (1 + std::exp(-0.5)))) < 1e-6);
  const std::vector<float> derivatives{1};
  label_log_probs_backward(host, view, column_range(3), labels, state.rows(), derivatives, view);
  const double p = 1 / (1 + std::exp(-0.5));
  BOOST_TEST(std::abs(logits[0] - (1 - p)) < 1e-6);
  BOOST_TEST(std::abs(logits[1] - -(1 - p)) < 1e-6);
  BOOST_TEST(std::abs(logits[2]) < 1e-30);
}

BOOST_AUTO_TEST_CASE(impossible_tokens) {
  constexpr float never = -std::numeric_limits<float>::infinity();
  std::vector<float> logits{0, never, 0, never};
  self_communicator tp;
  const log_prob_state<float> state(host, 2, true);
  const labels_of labels{0, 1};
  label_log_probs(host, tp, matrix_view<float>(logits.data(), 2, 2), column_range(2), labels,
                  state.rows());
  BOOST_TEST(*state.rows().log_probs.at(0) == 0);
  BOOST_TEST(*state.rows().entropy.at(0) == 0);
  BOOST_TEST(*state.rows().log_probs.at(1) == never);
}

BOOST_AUTO_TEST_CASE(a_nan_shows_in_its_row_alone) {
  problem<float> p(4, 40, 1, 11);
  p.labels = {3, 3, 3, 3};
  const auto clean = forward(p);
  p.logits[40 + 17] = std::numeric_limits<float>::quiet_NaN();
  const auto state = forward(p);
  BOOST_TEST(std::isnan(*state.rows().log_probs.at(1)));
  for (const offset_t t : {0, 2, 3}) {
    BOOST_TEST(*state.rows().log_probs.at(t) == *clean.rows().log_probs.at(t));
  }
}

BOOST_AUTO_TEST_CASE(columns_of_a_larger_buffer) {
  constexpr offset_t rows = 3, columns = 5, stride = 9;
  std::vector<float> wide(static_cast<std::size_t>(rows * stride),
                          std::numeric_limits<float>::quiet_NaN());
  std::vector<float> dense;
  for (offset_t t = 0; t < rows; ++t) {
    for (offset_t v = 0; v < columns; ++v) {
      dense.push_back(static_cast<float>(v * t) - 2);
      wide[static_cast<std::size_t>(t * stride + 2 + v)] = dense.back();
    }
  }
  const std::vector<float> before = wide;
  const labels_of labels{0, 4, 2};
  self_communicator tp;
  const log_prob_state<float> of_dense(host, rows);
  const log_prob_state<float> of_wide(host, rows);
  const matrix_view<float> narrow(wide.data() + 2, rows, columns, stride);
  const matrix_view<float> plain(dense.data(), rows, columns);
  label_log_probs(host, tp, plain, column_range(columns), labels, of_dense.rows());
  label_log_probs(host, tp, narrow, column_range(columns), labels, of_wide.rows());
  const std::vector<float> derivatives{1, 2, 3};
  label_log_probs_backward(host, plain, column_range(columns), labels, of_dense.rows(), derivatives,
                           plain);
  label_log_probs_backward(host, narrow, column_range(columns), labels, of_wide.rows(), derivatives,
                           narrow);
  for (offset_t t = 0; t < rows; ++t) {
    BOOST_TEST(*of_dense.rows().log_probs.at(t) == *of_wide.rows().log_probs.at(t));
    for (offset_t c = 0; c < stride; ++c) {
      const auto k = static_cast<std::size_t>(t * stride + c);
      const bool inside = c >= 2 && c < 2 + columns;
      if (inside) {
        BOOST_TEST(wide[k] == dense[static_cast<std::size_t>(t * columns + c - 2)]);
      } else {
        BOOST_TEST(std::memcmp(&wide[k], &before[k], sizeof(float)) == 0);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(scaling_touches_the_view_alone) {
  std::vector<float> buffer{1, 2, 3, 4, 5, 6};
  scale_logits(host, matrix_view<float>(buffer.data() + 1, 2, 2, 3), 2);
  const std::vector<float> expected{1, 1, 1.5F, 4, 2.5F, 3};
  BOOST_TEST(buffer == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(no_rows_and_no_columns) {
  self_communicator tp;
  const log_prob_state<float> nothing(host, 0, true);
  const labels_of none;
  label_log_probs(host, tp, matrix_view<float>(nullptr, 0, 7), column_range(7), none,
                  nothing.rows());
  // Of a vocabulary of nothing there is no label.
  const log_prob_state<float> state(host, 2);
  const labels_of ignored{ignored_label, ignored_label};
  label_log_probs(host, tp, matrix_view<float>(nullptr, 2, 0), column_range(0), ignored,
                  state.rows());
  BOOST_TEST(*state.rows().log_probs.at(1) == 0);
}

BOOST_AUTO_TEST_CASE(temperatures_are_checked_before_anything_is_written) {
  problem<float> p(2, 5, 1, 1);
  const std::vector<float> before = p.logits;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  const auto refuse = [&](double temperature, const std::string& value, const std::string& must) {
    BOOST_CHECK_EXCEPTION(forward(p, {.temperature = temperature}), invalid_input,
                          refused("temperature", value, must));
    BOOST_CHECK_EXCEPTION(scale_logits(host, p.view(), temperature), invalid_input,
                          refused("temperature", value, must));
  };
  for (const double temperature : {0.0, -1.0, infinity, -infinity, not_a_number}) {
    refuse(temperature, std::to_string(temperature), "it must be finite and above 0");
  }
  // Of which the element type makes 0 or infinity, and NaN of an infinite logit.
  refuse(1e46, std::to_string(1e46), "its reciprocal must be finite and not 0");
  refuse(1e-46, "1e-46", "its reciprocal must be finite and not 0");
  BOOST_TEST((p.logits == before));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  problem<float> p(2, 5, 1, 1);
  self_communicator tp;
  const log_prob_state<float> state(host, 2);
  const auto call = [&](const matrix_view<float>& logits, const column_range& columns,
                        const labels_of& labels, const label_log_prob_rows<float>& out) {
    label_log_probs(host, tp, logits, columns, labels, out);
  };
  BOOST_CHECK_EXCEPTION(call(p.view(), column_range(6), {1, 1}, state.rows()), invalid_input,
                        refused("logits columns", "5", "it must be 6"));
  BOOST_CHECK_EXCEPTION(call(p.view(), p.range(), {1}, state.rows()), invalid_input,
                        refused("labels", "1", "it must be 2"));
  BOOST_CHECK_EXCEPTION(call(p.view(), p.range(), {1, 5}, state.rows()), invalid_input,
                        refused("labels[1]", "5", "it must be from 0 to 4, or -100"));
  BOOST_CHECK_EXCEPTION(call(p.view(), p.range(), {-1, 0}, state.rows()), invalid_input,
                        refused("labels[0]", "-1", "it must be from 0 to 4, or -100"));
  BOOST_CHECK_EXCEPTION(call({nullptr, 2, 5}, p.range(), {1, 1}, state.rows()), invalid_input,
                        refused("logits", "null", "it must point to 10 elements"));
  BOOST_CHECK_EXCEPTION(call(p.view(), {1, 6, 9}, {1, 1}, state.rows()), invalid_input,
                        refused("vocabulary columns", "[1, 6)", "must hold all 9"));
  BOOST_CHECK_EXCEPTION(call(p.view(), {4, 9, 8}, {1, 1}, state.rows()), invalid_input,
                        refused("vocabulary columns", "[4, 9)", "within [0, 8)"));
  auto out = state.rows();
  out.sum = out.max;
  BOOST_CHECK_EXCEPTION(call(p.view(), p.range(), {1, 1}, out), invalid_input,
                        refused("sum", "in the memory of max", "must not alias"));
  out = state.rows();
  out.log_probs = row_view<float>(p.logits.data(), 2);
  BOOST_CHECK_EXCEPTION(call(p.view(), p.range(), {1, 1}, out), invalid_input,
                        refused("log_probs", "in the memory of logits", "must not alias"));
  BOOST_CHECK_EXCEPTION(matrix_view<float>(p.logits.data(), 2, 5, 4), invalid_input,
                        refused("row stride", "4", "at least 5"));
}

BOOST_AUTO_TEST_CASE(a_gradient_must_be_the_logits_or_apart_from_them) {
  problem<float> p(2, 4, 1, 1);
  const auto state = forward(p);
  const std::vector<float> derivatives{1, 1};
  const auto call = [&](const matrix_view<float>& gradient) {
    label_log_probs_backward(host, p.view(), p.range(), p.labels, state.rows(), derivatives,
                             gradient);
  };
  p.logits.resize(12);
  BOOST_CHECK_EXCEPTION(call({p.logits.data() + 1, 2, 4}), invalid_input,
                        refused("gradient", "in the memory of logits", "must not alias"));
  BOOST_CHECK_EXCEPTION(call({p.logits.data(), 2, 4, 5}), invalid_input,
                        refused("gradient", "in the memory of logits", "must not alias"));
  std::vector<float> other(8);
  BOOST_CHECK_EXCEPTION(call({other.data(), 1, 4}), invalid_input,
                        refused("gradient rows", "1", "it must be 2"));
  BOOST_CHECK_EXCEPTION(call({other.data(), 2, 3}), invalid_input,
                        refused("gradient columns", "3", "it must be 4"));
}
