// Numbers at the ends of their ranges: what overflows, and what has no share, in the shipped losses.
#define BOOST_TEST_MODULE numbers
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "seqpack/seqpack.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// One sequence of 3 tokens over a vocabulary of 2, whose logits are all 0: each log-probability is
/// -log 2.
struct policy_text {
  std::vector<int> lengths{3};
  std::vector<int> ids{0, 1, 1};
  std::vector<double> previous;   ///< [1, 3]
  std::vector<double> gains;      ///< [1, 3]
  std::vector<double> reference;  ///< [1, 3]
  auto fields() const {
    const auto table = [](const auto& values) { return batch_view(values.data(), 1, 3); };
    return field_list(
        token_field(input_ids, table(ids)), token_field(prev_logprobs, table(previous)),
        token_field(advantages, table(gains)), token_field(reference_logprobs, table(reference)));
  }
};
const double half = -std::log(2.0);

struct outcome {
  double value;
  double largest_ratio;
  std::vector<double> gradient;
};
template <class Loss>
outcome evaluate(const policy_text& text, const Loss& loss, const global_counts& counts = {2, 1}) {
  std::vector<double> gradient(6);
  self_communicator one;
  const matrix_view<double> rows(gradient.data(), 3, 2);
  const auto result = evaluate_loss(host, make_layout(text.lengths), one, one, text, loss, rows,
                                    column_range(2), {.counts = counts}, rows);
  return {result.value(), result.metrics()[probs_ratio_max{}], gradient};
}
void check_gradient(const std::vector<double>& found, const std::vector<double>& wanted) {
  BOOST_TEST(found == wanted, boost::test_tools::tolerance(1e-14)
                                  << boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_advantage_of_0_has_no_share_whatever_its_ratio_is) {
  for (const double far : {-2000.0, -infinity, infinity}) {
    const policy_text text{{3}, {0, 1, 1}, {0, far, half}, {0, 0, 3}, {0, 0, 0}};
    // The other term is -3 * 1 with derivative -3, over two tokens.
    const outcome found = evaluate(text, clipped_policy_gradient<>{});
    BOOST_TEST(found.value == -1.5);
    BOOST_TEST(found.largest_ratio == (far < 0 ? infinity : 1));  // the metrics see it
    check_gradient(found.gradient, {0, 0, 0.75, -0.75, 0, 0});
  }
  const policy_text of_negative_0{{3}, {0, 1, 1}, {0, -2000, half}, {0, -0.0, 3}, {0, 0, 0}};
  BOOST_TEST(evaluate(of_negative_0, clipped_policy_gradient<>{}).value == -1.5);
}

BOOST_AUTO_TEST_CASE(the_divergence_of_an_advantage_of_0_counts) {
  const policy_text text{{3}, {0, 1, 1}, {0, -2000, half}, {0, 0, 3}, {0, half - 1, half}};
  // k1 is -e: 1 and 0, with derivative 1 each.
  const clipped_policy_gradient<loss_level::token, kl_estimate::k1> loss({.kl_penalty = 0.5});
  const outcome found = evaluate(text, loss);
  BOOST_TEST(std::abs(found.value - (-3 + 0.5) / 2) < 1e-15);
  check_gradient(found.gradient, {-0.125, 0.125, 0.625, -0.625, 0, 0});
}

BOOST_AUTO_TEST_CASE(a_sequence_of_advantages_of_0) {
  const policy_text text{{3}, {0, 1, 1}, {0, -2000, -2000}, {0, 0, 0}, {0, 0, 0}};
  const clipped_policy_gradient<loss_level::sequence, kl_estimate::none, ratio_level::sequence>
      loss;
  const outcome found = evaluate(text, loss);
  BOOST_TEST(found.value == 0);
  BOOST_TEST(found.largest_ratio == infinity);
  check_gradient(found.gradient, {0, 0, 0, 0, 0, 0});
}

BOOST_AUTO_TEST_CASE(a_clipped_ratio_that_overflows_has_derivative_0) {
  const policy_text text{{3}, {0, 1, 1}, {0, -2000, half}, {0, 2, 3}, {0, 0, 0}};
  const outcome of_tokens = evaluate(text, clipped_policy_gradient<>{});
  BOOST_TEST(std::abs(of_tokens.value - (-2 * 1.2 - 3) / 2) < 1e-15);
  check_gradient(of_tokens.gradient, {0, 0, 0.75, -0.75, 0, 0});
  const clipped_policy_gradient<loss_level::token, kl_estimate::none, ratio_level::sequence> loss;
  const outcome of_sequences = evaluate(text, loss);  // both have the same ratio
  BOOST_TEST(std::abs(of_sequences.value - -5 * 1.2 / 2) < 1e-15);
  check_gradient(of_sequences.gradient, {0, 0, 0, 0, 0, 0});
}

BOOST_AUTO_TEST_CASE(a_dual_clip_bounds_a_ratio_that_overflows) {
  const policy_text text{{3}, {0, 1, 1}, {0, -2000, half}, {0, -2, 3}, {0, 0, 0}};
  const outcome found = evaluate(text, clipped_policy_gradient<>({.dual = 1.5}));
  BOOST_TEST(found.value == (2 * 1.5 - 3) / 2);
  check_gradient(found.gradient, {0, 0, 0.75, -0.75, 0, 0});
}

BOOST_AUTO_TEST_CASE(counts_without_a_reciprocal_are_refused_before_anything_is_written) {
  const policy_text text{{1}, {0, 1, 1}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}};  // no target
  std::vector<double> gradient(2, 7);
  self_communicator one;
  const matrix_view<double> rows(gradient.data(), 1, 2);
  const auto call = [&](const auto& loss, const global_counts& counts) {
    return evaluate_loss(host, make_layout(text.lengths), one, one, text, loss, rows,
                         column_range(2), {.counts = counts}, rows)
        .value();
  };
  BOOST_CHECK_EXCEPTION(call(nll{}, {1e-310, 1}), invalid_input,
                        refused("global_valid_toks", "1e-310", "it must be 0, or at least 1e-300"));
  BOOST_CHECK_EXCEPTION(call(nll{}, {1, 1e-310}), invalid_input,
                        refused("global_valid_seqs", "1e-310", "it must be 0, or at least 1e-300"));
  BOOST_TEST((gradient == std::vector<double>(2, 7)));
  BOOST_TEST(call(nll{}, {1e-300, 1e-300}) == 0);
  BOOST_TEST((gradient == std::vector<double>(2, 0)));
}

namespace {

/// A sequence with one target: its log-probability, and that of the reference.
struct one_target {
  double log_prob;
  double reference;

  double sample_weight() const { return 1; }
  double tokens() const { return 1; }
  double mean_divisor() const { return 1; }
  template <class F>
  double sum(const F& f) const {
    return f(offset_t{1});
  }
  double logp(offset_t) const { return log_prob; }
  double value(reference_logprobs_t, offset_t) const { return reference; }
  template <class Metric>
  void record(Metric, double) const {}
};

struct preference {
  double value;
  double of_chosen;
  double of_rejected;
};
template <reward_over Reward = reward_over::sum>
preference prefer(const dpo_options& options, const one_target& chosen,
                  const one_target& rejected) {
  const auto term = dpo<Reward>(options)(chosen, rejected);
  return {term.value, term.derivative(1), term.rest.derivative(1)};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_preference_with_a_large_margin_is_exact) {
  const preference lost = prefer({.beta = 1000}, {-2, 0}, {-1, 0});
  BOOST_TEST(lost.value == 1000);
  BOOST_TEST(lost.of_chosen == -1000);
  BOOST_TEST(lost.of_rejected == 1000);
  const preference won = prefer({.beta = 1000}, {-1, 0}, {-2, 0});
  BOOST_TEST(won.value == 0);
  BOOST_TEST(won.of_chosen == 0);
  BOOST_TEST(won.of_rejected == 0);
}

BOOST_AUTO_TEST_CASE(an_impossible_chosen_sequence_is_an_infinite_loss) {
  const preference found = prefer({.beta = 1}, {-infinity, 0}, {-1, 0});
  BOOST_TEST(found.value == infinity);
  BOOST_TEST(found.of_chosen == -1);
  BOOST_TEST(found.of_rejected == 1);
}

BOOST_AUTO_TEST_CASE(a_preference_of_weight_0_is_none) {
  const dpo_options options{.beta = 1, .preference_weight = 0, .sft_weight = 1};
  const preference found = prefer(options, {-2, infinity}, {-1, 0});
  BOOST_TEST(found.value == 2);
  BOOST_TEST(found.of_chosen == -1);
  BOOST_TEST(found.of_rejected == 0);
  // Where not even the margin is a number.
  const preference without = prefer(options, {-2, infinity}, {-1, infinity});
  BOOST_TEST(without.value == 2);
  BOOST_TEST(without.of_chosen == -1);
  BOOST_TEST(without.of_rejected == 0);
}

BOOST_AUTO_TEST_CASE(a_preference_with_beta_0_is_log_2_without_a_derivative) {
  const preference found = prefer({.beta = 0}, {-2, 0}, {-1, 0});
  BOOST_TEST(found.value == std::log(2.0));
  BOOST_TEST(found.of_chosen == 0);
  BOOST_TEST(found.of_rejected == 0);
  const preference far = prefer<reward_over::mean>(
      {.beta = 0, .preference_weight = 3, .sft_weight = 0.5}, {-2, -infinity}, {-1, 0});
  BOOST_TEST(std::abs(far.value - (3 * std::log(2.0) + 1)) < 1e-15);
  BOOST_TEST(far.of_chosen == -0.5);
  BOOST_TEST(far.of_rejected == 0);
}
