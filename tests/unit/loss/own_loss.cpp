// The loss of the guide: its value by the definition, its derivative against central differences.
#define BOOST_TEST_MODULE own_loss
#include "../../../examples/own_loss/focal_loss.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "seqpack/seqpack.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

static_assert(loss_function<focal_loss>);

constexpr offset_t columns = 5;
constexpr double gamma_of_test = 1.7;

masked_text example() {
  return {{4, 0, 3},
          4,
          {1, 2, 3, 4, 0, 0, 0, 0, 4, 0, 2, 0},
          {1, 1, 0, 2, 1, 1, 1, 1, 1, 1, 1, 1},
          {0.5F, 1, 2}};
}

loss_result<host_t, focal_loss::metrics> evaluate(std::vector<double>& logits,
                                                  std::vector<double>* gradient = nullptr) {
  const masked_text text = example();
  const auto layout = make_layout(text.lengths);
  self_communicator one;
  const matrix_view<double> rows(logits.data(), layout.total_tokens(), columns);
  matrix_view<double> out;
  if (gradient != nullptr) {
    gradient->assign(logits.size(), 0);
    out = {gradient->data(), rows.rows, columns};
  }
  return evaluate_loss(host, layout, one, one, text, focal_loss{.gamma = gamma_of_test}, rows,
                       column_range(columns), {.counts = {6.5, 3.5}}, out);
}

std::vector<double> some_logits() {
  std::vector<double> logits;
  for (int k = 0; k < 35; ++k) logits.push_back(std::sin(1.0 + k * k) * 2);
  return logits;
}

}  // namespace

BOOST_AUTO_TEST_CASE(value_and_metric) {
  auto logits = some_logits();
  double loss = 0;
  double probability = 0;
  const auto add = [&](std::size_t row, std::size_t label, double weight) {
    double sum = 0;
    for (std::size_t v = 0; v < 5; ++v) sum += std::exp(logits[row * 5 + v]);
    const double p = std::exp(logits[row * 5 + label]) / sum;
    loss += weight * -std::pow(1 - p, gamma_of_test) * std::log(p);
    probability += weight * p;
  };
  add(0, 2, 0.5);  // token 2 of the sequence has mask 0
  add(2, 4, 0.5 * 2);
  add(4, 0, 2);
  add(5, 2, 2);
  const auto result = evaluate(logits);
  BOOST_TEST(std::abs(result.value() - loss / 6.5) < 1e-13);
  BOOST_TEST(std::abs(result.metrics()[target_probability{}] - probability / 6.5) < 1e-13);
}

BOOST_AUTO_TEST_CASE(derivative) {
  auto logits = some_logits();
  std::vector<double> gradient;
  evaluate(logits, &gradient);
  constexpr double step = 1e-5;
  for (std::size_t k = 0; k < logits.size(); ++k) {
    const double here = logits[k];
    logits[k] = here + step;
    const double above = evaluate(logits).value();
    logits[k] = here - step;
    const double below = evaluate(logits).value();
    logits[k] = here;
    BOOST_TEST(std::abs((above - below) / (2 * step) - gradient[k]) < 1e-9);
  }
}
