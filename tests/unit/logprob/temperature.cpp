// The temperature of a loss in its two states: divided by in the loss's pass, or before it.
#define BOOST_TEST_MODULE temperature
#include "seqpack/logprob/temperature.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "seqpack/seqpack.hpp"
#include "support/refused.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

static_assert(logit_temperature{} == logit_temperature::in_loss(1));
static_assert(logit_temperature(2) == logit_temperature::in_loss(2));
static_assert(logit_temperature::in_loss(2).to_apply() == 2);
static_assert(logit_temperature::in_loss(2).applied() == 1);
static_assert(!logit_temperature::in_loss(2).is_applied());
static_assert(logit_temperature::already_applied(2).to_apply() == 1);
static_assert(logit_temperature::already_applied(2).applied() == 2);
static_assert(logit_temperature::already_applied(2).is_applied());
static_assert(logit_temperature::already_applied(2).value() == 2);

constexpr offset_t columns = 5;

/// A loss on logits, so that both kinds of losses are looked at.
struct squares {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::token;
  using metrics = no_metrics;

  template <class Sequence>
  SEQPACK_HD auto operator()(const Sequence& s) const {
    const double value = s.sum([&](offset_t t) {
      double sum = 0;
      for (offset_t v = 0; v < s.columns(); ++v) sum += s.logits(t)[v] * s.logits(t)[v];
      return sum;
    });
    return differentiable(value, [s](offset_t t, double* out) {
      for (offset_t v = 0; v < s.columns(); ++v) out[v] = s.weight(t) * 2 * s.logits(t)[v];
    });
  }
};

struct outcome {
  double value;
  std::vector<double> gradient;
};

std::vector<double> some_logits() {
  std::vector<double> logits;
  for (int k = 0; k < 35; ++k) logits.push_back(std::sin(1.0 + k * k) * 2);
  return logits;
}

template <class L>
outcome evaluate(std::vector<double>& logits, const logit_temperature& temperature) {
  const masked_text text{{4, 0, 3},
                         4,
                         {1, 2, 3, 4, 0, 0, 0, 0, 4, 0, 2, 0},
                         {1, 1, 0, 2, 1, 1, 1, 1, 1, 1, 1, 1},
                         {0.5F, 1, 2}};
  const auto layout = make_layout(text.lengths);
  self_communicator one;
  const matrix_view<double> rows(logits.data(), layout.total_tokens(), columns);
  std::vector<double> gradient(logits.size());
  const auto result = evaluate_loss(host, layout, one, one, text, L{}, rows, column_range(columns),
                                    {.counts = {6.5, 3.5}, .temperature = temperature},
                                    matrix_view<double>(gradient.data(), rows.rows, columns));
  return {result.value(), std::move(gradient)};
}

/// With a power of 2 nothing is rounded by the division.
template <class L>
void check_states() {
  auto logits = some_logits();
  const outcome in_loss = evaluate<L>(logits, 2);
  BOOST_TEST(in_loss.value != evaluate<L>(logits, 1).value);
  const matrix_view<double> rows(logits.data(), 7, columns);
  scale_logits(host, rows, 2);
  const outcome applied = evaluate<L>(logits, logit_temperature::already_applied(2));
  BOOST_TEST(applied.value == in_loss.value);
  BOOST_TEST(applied.gradient == in_loss.gradient, boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_CASE(both_states_give_the_same_loss_and_gradient) {
  check_states<nll>();
  check_states<squares>();
}

BOOST_AUTO_TEST_CASE(both_states_are_checked) {
  auto logits = some_logits();
  for (const double wrong : {0.0, -1.0, std::nan("")}) {
    for (const auto& t : {logit_temperature(wrong), logit_temperature::already_applied(wrong)}) {
      BOOST_CHECK_EXCEPTION(
          evaluate<nll>(logits, t), invalid_input,
          refused("temperature", std::to_string(wrong), "it must be finite and above 0"));
    }
  }
}
