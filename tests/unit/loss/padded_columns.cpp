// Rows of logits that are wider than the columns that they declare: a padded vocabulary. A gradient
// writes the columns alone or, where asked, 0 behind them too.
#define BOOST_TEST_MODULE padded_columns
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "seqpack/seqpack.hpp"
#include "support/as_device.hpp"
#include "support/refused.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

constexpr offset_t columns = 5;
constexpr offset_t stride = 8;

/// A loss on logits: half the square of what predicts each target.
struct half_square {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::token;
  using metrics = no_metrics;
  auto operator()(const auto& s) const {
    const double value = s.sum([&](offset_t t) {
      double sum = 0;
      for (offset_t v = 0; v < s.columns(); ++v) sum += s.logits(t)[v] * s.logits(t)[v] / 2;
      return sum;
    });
    return differentiable(value, [s](offset_t t, double* out) {
      for (offset_t v = 0; v < s.columns(); ++v) out[v] = s.weight(t) * s.logits(t)[v];
    });
  }
};

/// Rows of some width, with `between` behind the columns.
std::vector<double> wide_rows(offset_t rows, offset_t width, double between) {
  std::vector<double> all(static_cast<std::size_t>(rows * width), between);
  for (offset_t t = 0; t < rows; ++t) {
    for (offset_t v = 0; v < columns; ++v) {
      all[static_cast<std::size_t>(t * width + v)] = std::sin(static_cast<double>(7 * t + 3 * v));
    }
  }
  return all;
}

auto layout_of(const masked_text& text) {
  return make_layout(text.lengths, padding{each_multiple_of<4>{}, fixed_total<12>{}, ghost_tail{}});
}

/// Sequences of 3, 0 and 2 tokens, padded to 4 each, and a ghost of 4: 12 rows.
struct example {
  masked_text text{
      {3, 0, 2}, 3, {1, 2, 4, 0, 0, 0, 3, 1, 0}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1}};
  decltype(layout_of(text)) layout = layout_of(text);
  static constexpr offset_t rows = 12;

  template <class E, class Loss>
  double evaluate(const E& where, const Loss& loss, loss_pass pass, bool zero,
                  std::vector<double>& logits, std::vector<double>& gradient) {
    self_communicator one;
    const matrix_view<double> from(logits.data(), rows, columns, stride);
    const matrix_view<double> to(gradient.data(), rows, columns, stride);
    return evaluate_loss(where, layout, one, one, text, loss, from, column_range(columns),
                         {.counts = {3, 3}, .pass = pass, .zero_padded_columns = zero}, to)
        .value();
  }
};

/// The columns are those of dense rows, and what is behind them is this.
void check_rows(const std::vector<double>& found, const std::vector<double>& dense,
                double between) {
  for (offset_t t = 0; t < example::rows; ++t) {
    for (offset_t v = 0; v < stride; ++v) {
      const double x = found[static_cast<std::size_t>(t * stride + v)];
      if (v >= columns) {
        BOOST_TEST(x == between);
      } else {
        // Executors group a row's sum in their own ways.
        BOOST_TEST(std::abs(x - dense[static_cast<std::size_t>(t * columns + v)]) < 1e-15);
      }
    }
  }
}

template <class Loss, class E>
void check_padded_columns(const E& where) {
  example e;
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> dense = wide_rows(e.rows, columns, 0);
  {
    self_communicator one;
    const matrix_view<double> rows(dense.data(), e.rows, columns);
    evaluate_loss(host, e.layout, one, one, e.text, Loss{}, rows, column_range(columns),
                  {.counts = {3, 3}}, rows);
  }
  for (const loss_pass pass : {loss_pass::fused, loss_pass::per_sequence}) {
    const auto logits = wide_rows(e.rows, stride, not_a_number);
    for (const bool zero : {false, true}) {
      auto from = logits;
      std::vector<double> gradient(logits.size(), 77);
      e.evaluate(where, Loss{}, pass, zero, from, gradient);
      check_rows(gradient, dense, zero ? 0 : 77);
      // In place, where something else is behind the columns.
      auto in_place = wide_rows(e.rows, stride, 55);
      e.evaluate(where, Loss{}, pass, zero, in_place, in_place);
      check_rows(in_place, dense, zero ? 0 : 55);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_loss_on_log_probabilities) {
  check_padded_columns<nll>(host);
}
BOOST_AUTO_TEST_CASE(a_loss_on_logits) {
  check_padded_columns<half_square>(host);
}
BOOST_AUTO_TEST_CASE(an_executor_that_works_as_device) {
  check_padded_columns<nll>(as_device{});
  check_padded_columns<half_square>(as_device{});
}

namespace {

struct wide_model {
  static constexpr auto attention = attention_input::packed_parameters;
  static constexpr auto output = output_kind::logits;
  std::vector<double> logits = wide_rows(example::rows, stride, 55);
  auto operator()(const auto& input) {
    BOOST_TEST(input.ids.rows == example::rows);
    return model_output<double>{{logits.data(), example::rows, columns, stride},
                                column_range(columns)};
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_step_and_its_bound_loss) {
  const example e;
  for (const bool zero : {false, true}) {
    const std::vector<masked_text> batches{e.text};
    auto next = batches.begin();
    wide_model model;
    auto step = forward_step(
        host, no_timer{}, next, model, nll{},
        forward_setup(packed(padding{each_multiple_of<4>{}, fixed_total<12>{}, ghost_tail{}}),
                      &masked_text::lengths),
        {.global_valid_toks = 3, .zero_padded_columns = zero});
    step.loss(step.output.rows);
    for (offset_t t = 0; t < example::rows; ++t) {
      BOOST_TEST(model.logits[static_cast<std::size_t>(t * stride + 5)] == (zero ? 0 : 55));
      BOOST_TEST(model.logits[static_cast<std::size_t>(t * stride + 7)] == (zero ? 0 : 55));
    }
    BOOST_TEST(model.logits[0] != std::sin(0.0));
  }
}

BOOST_AUTO_TEST_CASE(log_probabilities_of_tokens) {
  const std::vector<int> ids{1, 2, 4};
  const auto layout = make_layout(std::vector{3});
  self_communicator one;
  std::vector<double> out(2);
  const std::vector<double> derivatives{1, 0};
  for (const bool zero : {false, true}) {
    std::vector<double> logits = wide_rows(3, stride, 55);
    const matrix_view<double> rows(logits.data(), 3, columns, stride);
    const auto state =
        next_token_logprobs(host, layout, one, one, batch_view(ids.data(), 1, 3), rows,
                            column_range(columns), batch_view<double>(out.data(), 1, 2));
    next_token_logprobs_backward(host, layout, shard{0}, state, rows, column_range(columns),
                                 batch_view(derivatives.data(), 1, 2), rows,
                                 {.zero_padded_columns = zero});
    for (const offset_t t : {0, 1, 2}) {  // one with a share, one without, one without a target
      for (offset_t v = columns; v < stride; ++v) {
        BOOST_TEST(logits[static_cast<std::size_t>(t * stride + v)] == (zero ? 0 : 55));
      }
      BOOST_TEST((logits[static_cast<std::size_t>(t * stride + 2)] != 0) == (t == 0));
    }
  }
}

// A rank may hold no column at all, of rows that it still has memory for.
BOOST_AUTO_TEST_CASE(no_columns_but_padding) {
  std::vector<float> gradient(6, 7);
  const std::vector<std::int64_t> labels{ignored_label, ignored_label};
  const std::vector<float> derivatives{1, 1};
  self_communicator one;
  const log_prob_state<float> state(host, 2);
  const matrix_view<float> rows(gradient.data(), 2, 0, 3);
  label_log_probs(host, one, rows, column_range(0), labels, state.rows());
  label_log_probs_backward(host, rows, column_range(0), labels, state.rows(), derivatives, rows);
  BOOST_TEST((gradient == std::vector<float>(6, 7)));
  label_log_probs_backward(host, rows, column_range(0), labels, state.rows(), derivatives, rows,
                           {.zero_padded_columns = true});
  BOOST_TEST((gradient == std::vector<float>(6, 0)));
  BOOST_CHECK_EXCEPTION(
      label_log_probs_backward(host, matrix_view<float>(nullptr, 2, 0, 3), column_range(0), labels,
                               state.rows(), derivatives, matrix_view<float>(nullptr, 2, 0, 3),
                               {.zero_padded_columns = true}),
      invalid_input, refused("gradient", "null", "it must point to 6 elements"));
}

// What is written between the rows counts as written.
BOOST_AUTO_TEST_CASE(what_lies_between_the_rows) {
  std::vector<double> logits = wide_rows(2, columns, 0);
  std::vector<double> gradient(16, 7);
  const std::vector<std::int64_t> labels{1, 2};
  self_communicator one;
  const log_prob_state<double> state(host, 2);
  const matrix_view<double> rows(logits.data(), 2, columns);
  label_log_probs(host, one, rows, column_range(columns), labels, state.rows());
  const row_view<const double> between(gradient.data() + 5, 2);
  gradient[5] = gradient[6] = 1;
  const auto call = [&](bool zero) {
    label_log_probs_backward(host, rows, column_range(columns), labels, state.rows(), between,
                             matrix_view<double>(gradient.data(), 2, columns, stride),
                             {.zero_padded_columns = zero});
  };
  BOOST_CHECK_EXCEPTION(call(true), invalid_input,
                        refused("gradient", "in the memory of derivatives", "must not alias"));
  BOOST_TEST(gradient[0] == 7);
  BOOST_TEST(gradient[5] == 1);
}

template <class T>
void columns_of_minus_infinity() {
  using C = compute_type<T>;
  const auto never = static_cast<T>(-std::numeric_limits<float>::infinity());
  std::vector<T> logits{T(1), never, T(2), never, T(0), T(3), never, never};
  std::vector<T> gradient(8, T(7));
  const std::vector<std::int64_t> labels{2, 1};
  const std::vector<C> derivatives{-3, 2};
  self_communicator one;
  const log_prob_state<C> state(host, 2);
  const matrix_view<T> rows(logits.data(), 2, 4);
  const matrix_view<T> out(gradient.data(), 2, 4);
  label_log_probs(host, one, rows, column_range(4), labels, state.rows());
  BOOST_TEST(std::isfinite(*state.rows().log_probs.at(0)));
  label_log_probs_backward(host, rows, column_range(4), labels, state.rows(), derivatives, out);
  for (const std::size_t k : {1U, 3U, 6U, 7U}) BOOST_TEST(static_cast<double>(gradient[k]) == 0);
  for (const std::size_t k : {0U, 2U, 4U, 5U}) BOOST_TEST(static_cast<double>(gradient[k]) != 0);
}
BOOST_AUTO_TEST_CASE(columns_of_minus_infinity_get_gradient_0) {
  columns_of_minus_infinity<float>();
  columns_of_minus_infinity<double>();
  columns_of_minus_infinity<_Float16>();
}
