#define BOOST_TEST_MODULE nccl_processes_conformance
#include <boost/test/unit_test.hpp>
#include <optional>

#include "seqpack/comm/subgroup.hpp"
#include "support/broadcast_suite.hpp"
#include "support/communicator_suite.hpp"
#include "support/nccl_processes.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_AUTO_TEST_CASE(conforms_and_broadcasts_tensors) {
  process_rank me;
  auto found = my_findings();
  check_communicator(me.group, found);
  check_broadcast_tensor(me.group, found);
  found.report();
}

BOOST_AUTO_TEST_CASE(over_a_part_of_the_world) {
  process_rank me;
  auto found = my_findings();
  const offset_t last = me.world.size() - 1;
  // {last, 0}: the world's ranks come along.
  mpi_communicator pair = last == 0 ? me.world.split(0, 0) : subgroup(me.world, {{last}, {0}});
  if (pair.is_member()) {
    nccl_communicator group = nccl_communicator::over(pair, me.stream, patient_nccl);
    found.equal(group.members(), pair.members(), "members");
    found.equal(group.members().to_world({0}).value, last, "world rank of rank 0");
    check_communicator(group, found);
    check_broadcast_tensor(group, found);
  }
  found.check(me.group.size() == me.world.size(), "the size of all");
  found.report();
}

BOOST_AUTO_TEST_CASE(a_reordered_group_conforms) {
  process_rank me;
  auto found = my_findings();
  nccl_communicator reversed = me.group.split(0, -me.group.rank().value);
  check_communicator(reversed, found);
  check_broadcast_tensor(reversed, found);
  found.report();
}
