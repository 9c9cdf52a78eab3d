#define BOOST_TEST_MODULE nccl_processes_dead_peer
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "support/broadcast_suite.hpp"
#include "support/nccl_processes.hpp"

using namespace seqpack;
using namespace seqpack::testing;
using namespace std::chrono_literals;

// The last rank never calls again; the others must not wait for it for ever, and everybody ends as
// usual.
BOOST_AUTO_TEST_CASE(a_rank_that_stops_for_good) {
  process_rank me;
  auto found = my_findings();
  const bool stops = me.world.rank().value == me.world.size() - 1;
  ncclUniqueId id{};
  if (my_world_rank() == 0) id = new_id();
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  rank_place place{my_world_rank(), world_size(), me.device, me.stream, id};
  {
    nccl_communicator group = make_hasty_group(place);
    if (!stops) {
      group_array<float, nccl_communicator> buffer(group, 12, untouched);
      const auto took = time_of([&] {
        found.throws<communication_error>(
            [&] {
              broadcast_tensor(tensor_view<float>(buffer.data(), {12}), group_rank{0}, group);
              group.wait();
            },
            "", "broadcast_tensor", true);
      });
      found.check(took < hasty.deadline + 30s, "in time");
      found.equal(read_device(me.stream, buffer.data(), 12), std::vector<float>(12, untouched),
                  "receiver");
      found.throws<communication_error>([&] { group.wait(); },
                                        "the communicator cannot be used any more: ", "wait", true);
    } else {
      std::this_thread::sleep_for(hasty.deadline + 500ms);
    }
  }
  // The other groups of these ranks are as they were.
  check_exchange(me.world, found);
  check_still_usable(me.group, found, "the end of another group");
  found.report();
}
