// Clipped policy gradients, their metrics and gradients against those of a reference system, from
// logits in double.
#define BOOST_TEST_MODULE golden_policy_gradient
#include <boost/test/unit_test.hpp>

#include "support/golden_suite.hpp"

using namespace seqpack::testing;

BOOST_AUTO_TEST_CASE(in_double) {
  check_golden_losses<double>("clipped_pg", 5,
                              [](const auto& c, const auto& f) { with_policy_gradient(c, f); });
}
