// The clipped policy gradient, in all its forms, against its formula in long double, and its
// gradient against central differences of that.
#define BOOST_TEST_MODULE policy_derivatives
#include <boost/test/unit_test.hpp>

#include "support/derivatives.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

/// All options of one form of the clipped policy gradient.
/// \returns how many samples were far enough from a kink
template <loss_level Level, kl_estimate Kl, ratio_level Ratio>
int check_policy(unsigned seed, branch_counts& branches) {
  int checked = 0;
  constexpr double penalty = Kl == kl_estimate::none ? 0 : 0.3;
  const clip_options all_options[] = {
      {.low = 0.1, .high = 0.25, .kl_penalty = penalty},
      {.low = 0.2, .high = 0.2, .dual = 1.15, .kl_penalty = penalty},
      {.low = 0.15,
       .high = 0.1,
       .dual = 1.3,
       .kl_penalty = -penalty,
       .kl_input_clamp = 0.9,
       .kl_output_clamp = 0.35}};
  for (const clip_options& options : all_options) {
    for_each_sample(seed++, 5, [&](const loss_sample& c) {
      const auto formula = [&](const loss_sample& moved) {
        return policy_by_formula(moved, options, Level, Kl, Ratio, counts.tokens, counts.sequences,
                                 branches);
      };
      // At a kink there is no derivative to compare with; few samples are that near to one.
      if (formula(c).nearest < 1e-4L) return;
      check_loss(c, clipped_policy_gradient<Level, Kl, Ratio>(options), formula);
      ++checked;
    });
  }
  return checked;
}

template <kl_estimate Kl>
void check_policies(unsigned seed) {
  branch_counts branches;
  int checked = 0;
  checked += check_policy<loss_level::token, Kl, ratio_level::token>(seed, branches);
  checked += check_policy<loss_level::sequence, Kl, ratio_level::token>(seed + 10, branches);
  checked += check_policy<loss_level::token, Kl, ratio_level::sequence>(seed + 20, branches);
  checked += check_policy<loss_level::sequence, Kl, ratio_level::sequence>(seed + 30, branches);
  BOOST_TEST(checked > 100);  // of 108
  // The samples have been everywhere.
  BOOST_TEST(branches.plain > 0);
  BOOST_TEST(branches.clipped > 0);
  BOOST_TEST(branches.dual > 0);
  BOOST_TEST((branches.clamped_in > 0) == (Kl != kl_estimate::none));
  BOOST_TEST((branches.clamped_out > 0) == (Kl != kl_estimate::none));
}

}  // namespace

BOOST_AUTO_TEST_CASE(policy_gradient_without_divergence) {
  check_policies<kl_estimate::none>(100);
}
BOOST_AUTO_TEST_CASE(policy_gradient_with_k1) {
  check_policies<kl_estimate::k1>(200);
}
BOOST_AUTO_TEST_CASE(policy_gradient_with_k2) {
  check_policies<kl_estimate::k2>(300);
}
BOOST_AUTO_TEST_CASE(policy_gradient_with_k3) {
  check_policies<kl_estimate::k3>(400);
}
