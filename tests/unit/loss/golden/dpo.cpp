// Preference losses, their metrics and gradients against those of a reference system.
#define BOOST_TEST_MODULE golden_dpo
#include <boost/test/unit_test.hpp>

#include "support/golden_suite.hpp"

using namespace seqpack::testing;

namespace {

const auto with_loss = [](const auto& c, const auto& f) { with_dpo(c, f); };

}  // namespace

BOOST_AUTO_TEST_CASE(in_double) {
  check_golden_losses<double>("dpo", 3, with_loss);
}
BOOST_AUTO_TEST_CASE(in_float) {
  check_golden_losses<float>("dpo", 3, with_loss);
}
