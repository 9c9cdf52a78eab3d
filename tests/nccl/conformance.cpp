#define BOOST_TEST_MODULE nccl_conformance
#include <boost/test/unit_test.hpp>

#include "support/broadcast_suite.hpp"
#include "support/communicator_suite.hpp"
#include "support/nccl.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_TEST_GLOBAL_FIXTURE(needs_nccl_device);

BOOST_AUTO_TEST_CASE(conforms) {
  for (const int n : group_sizes()) {
    run_group(n,
              [](nccl_communicator& group, findings& found) { check_communicator(group, found); });
  }
}

BOOST_AUTO_TEST_CASE(broadcasts_tensors) {
  for (const int n : group_sizes()) {
    run_group(
        n, [](nccl_communicator& group, findings& found) { check_broadcast_tensor(group, found); });
  }
}

BOOST_AUTO_TEST_CASE(a_reordered_group_conforms_and_broadcasts_tensors) {
  run_group(most_ranks(), [](nccl_communicator& all, findings& found) {
    nccl_communicator group = all.split(0, -all.rank().value);
    check_communicator(group, found);
    check_broadcast_tensor(group, found);
  });
}

// A rank that has no memory for the whole takes part piece by piece, in the same calls.
BOOST_AUTO_TEST_CASE(broadcasts_of_many_pieces) {
  run_group(most_ranks(), [](nccl_communicator& group, findings& found) {
    const offset_t n = 2 * nccl_communicator::piece + 3;
    check_broadcast<std::uint8_t>(group, found, static_cast<std::size_t>(n));
  });
}
