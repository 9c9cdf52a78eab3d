// The sharding of docs/extending.md: what every sharding must do.
#define BOOST_TEST_MODULE extending_sharding
#include "../../../examples/extending/sharding.hpp"

#include <boost/test/unit_test.hpp>

#include "support/sharding_suite.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_AUTO_TEST_CASE(conforms) {
  for (const offset_t size : {1, 2, 3, 5}) check_sharding(block_cyclic{.size = size}, true);
}
