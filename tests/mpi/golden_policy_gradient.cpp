// Clipped policy gradients, their metrics and gradients against those of a reference system, on
// grids of context-parallel and tensor-parallel ranks.
#define BOOST_TEST_MODULE mpi_golden_policy_gradient
#include <boost/test/unit_test.hpp>

#include "support/golden_grid.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_AUTO_TEST_CASE(policy_gradients) {
  on_every_grid("clipped_pg", 5, [](grid_checks& checks, const auto& c, const std::string& which) {
    with_policy_gradient(c, [&](const auto& loss) {
      for_each_sharding(
          [&](const auto& sharding) { checks.check<double>(c, which, loss, sharding); });
    });
  });
}
