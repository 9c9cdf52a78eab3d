#define BOOST_TEST_MODULE mpi_conformance
#include <boost/test/unit_test.hpp>

#include "support/broadcast_suite.hpp"
#include "support/communicator_suite.hpp"
#include "support/mpi.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_AUTO_TEST_CASE(conforms) {
  auto group = world();
  auto found = my_findings();
  check_communicator(group, found);
  found.report();
}

BOOST_AUTO_TEST_CASE(conforms_where_every_operation_is_split) {
  // A number that divides nothing, so that there are rests.
  auto group = world({.deadline = patient.deadline, .largest_count = 997});
  auto found = my_findings();
  check_communicator(group, found);
  found.report();
}

BOOST_AUTO_TEST_CASE(broadcasts_tensors) {
  auto group = world();
  auto found = my_findings();
  check_broadcast_tensor(group, found);
  found.report();
}

BOOST_AUTO_TEST_CASE(broadcasts_tensors_in_a_reordered_group) {
  auto all = world();
  auto group = all.split(0, -all.rank().value);
  auto found = my_findings();
  check_communicator(group, found);
  check_broadcast_tensor(group, found);
  found.report();
}
