// The shipped losses on pairs and policies, and a loss on logits, on a stream beside the host.
#include <boost/test/unit_test.hpp>

#include "support/losses_suite.cuh"

BOOST_AUTO_TEST_SUITE(loss_losses)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr auto by_parameters = attention_input::packed_parameters;

auto in_fours() {
  return packed(padding{each_multiple_of<4>{}});
}

}  // namespace

BOOST_AUTO_TEST_CASE(clipped_policy_gradient_of_tokens) {
  const clipped_policy_gradient<loss_level::token, kl_estimate::k3> loss(
      {.low = 0.2, .high = 0.3, .dual = 1.5, .kl_penalty = 0.1});
  check_loss<by_parameters>(loss, in_fours());
}

BOOST_AUTO_TEST_CASE(clipped_policy_gradient_of_sequences) {
  const clipped_policy_gradient<loss_level::sequence, kl_estimate::k2, ratio_level::sequence> loss(
      {.kl_penalty = 0.1, .kl_input_clamp = 1});
  check_loss<by_parameters>(loss, in_fours(), loss_pass::per_sequence);
}

BOOST_AUTO_TEST_CASE(dpo_of_pairs) {
  check_loss<by_parameters>(dpo<>({.beta = 0.5, .sft_weight = 0.3, .sft_average = true}),
                            in_fours());
}

namespace {

/// The mean of the logits of targets.
struct mean_logit {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::token;
  using metrics = no_metrics;
  template <class Sequence>
  SEQPACK_HD auto operator()(const Sequence& s) const {
    return differentiable(s.sum([&](offset_t t) {
      return s.logits(t)[static_cast<offset_t>(s.value(input_ids, t))];
    }),
                          [s](offset_t t, double* out) {
                            for (offset_t v = 0; v < s.columns(); ++v) {
                              out[v] = t < s.length() &&
                                               v == static_cast<offset_t>(s.value(input_ids, t))
                                           ? s.weight(t)
                                           : 0;
                            }
                          });
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_loss_on_logits) {
  check_loss<by_parameters>(mean_logit{}, in_fours());
}

BOOST_AUTO_TEST_SUITE_END()
