#define BOOST_TEST_MODULE comm_self
#include "seqpack/comm/self.hpp"

#include <boost/test/unit_test.hpp>

#include "support/broadcast_suite.hpp"
#include "support/communicator_suite.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_AUTO_TEST_CASE(conforms) {
  self_communicator group;
  findings found;
  check_communicator(group, found);
  check_broadcast_tensor(group, found);
  found.report();
}
