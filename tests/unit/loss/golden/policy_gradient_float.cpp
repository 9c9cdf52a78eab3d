// Clipped policy gradients, their metrics and gradients against those of a reference system, from
// logits in float.
#define BOOST_TEST_MODULE golden_policy_gradient_float
#include <boost/test/unit_test.hpp>

#include "support/golden_suite.hpp"

using namespace seqpack::testing;

BOOST_AUTO_TEST_CASE(in_float) {
  check_golden_losses<float>("clipped_pg", 5,
                             [](const auto& c, const auto& f) { with_policy_gradient(c, f); });
}
