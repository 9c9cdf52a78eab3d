// The term of a preference loss where weights are no whole numbers.
#define BOOST_TEST_MODULE dpo
#include "seqpack/loss/dpo.hpp"

#include <boost/test/unit_test.hpp>

using namespace seqpack;

namespace {

/// A sequence with one target of log-probability -2, whose weights are fractions.
struct half_a_target {
  double sample = 1;
  double token = 0.5;

  double sample_weight() const { return sample; }
  double tokens() const { return token; }
  double mean_divisor() const { return 1; }
  template <class F>
  double sum(const F& f) const {
    return token * f(offset_t{1});
  }
  double logp(offset_t) const { return -2; }
  double value(reference_logprobs_t, offset_t) const { return 0; }
  template <class Metric>
  void record(Metric, double) const {}
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_average_never_divides_by_less_than_one) {
  const dpo<> loss({.preference_weight = 0, .sft_weight = 1, .sft_average = true});
  // -(0.5 * -2) / max(1, 0.5)
  BOOST_TEST(loss(half_a_target{}, half_a_target{}).value == 1);
  // -(0.5 * 3 * -2) / max(1, 0.5 * 3)
  BOOST_TEST(loss(half_a_target{.sample = 0.5, .token = 3}, half_a_target{}).value == 2);
}
