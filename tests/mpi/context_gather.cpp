// From shards to the batch and the row, and the gradients back, between processes.
#define BOOST_TEST_MODULE mpi_context_gather
#include <boost/test/unit_test.hpp>

#include "support/context_gather_suite.hpp"
#include "support/mpi.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

const auto on_the_host = [](const auto& layout) { return layout; };

}  // namespace

BOOST_AUTO_TEST_CASE(conforms) {
  auto group = world();
  auto found = my_findings();
  check_context_gather(host, group, found, on_the_host, 9);
  found.report();
}

BOOST_AUTO_TEST_CASE(conforms_in_a_reordered_group) {
  auto all = world();
  auto group = all.split(0, -all.rank().value);
  auto found = my_findings();
  gather_frame<host_t, mpi_communicator, decltype(on_the_host)> frame{host, group, on_the_host,
                                                                      found};
  check_random_layouts(frame, 3);
  found.report();
}
