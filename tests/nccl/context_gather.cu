// From shards to the batch and the row, and the gradients back, between devices.
#define BOOST_TEST_MODULE nccl_context_gather
#include <boost/test/unit_test.hpp>
#include <vector>

#include "seqpack/seqpack.cuh"
#include "support/context_gather_suite.hpp"
#include "support/nccl.hpp"

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_nccl_device);

namespace {

/// Copies a layout of the host to the device of the rank.
struct to_rank {
  cuda_stream<> where;
  template <class L>
  auto operator()(const L& layout) const {
    return to_device(where, layout);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(conforms) {
  for (const int n : group_sizes()) {
    run_group(n, [](nccl_communicator& group, findings& found) {
      const cuda_stream<> where(group.stream());
      check_context_gather(where, group, found, to_rank{where}, 3);
    });
  }
}

BOOST_AUTO_TEST_CASE(no_unpack_in_another_stream) {
  run_group(1, [](nccl_communicator& group, findings& found) {
    const cuda_stream<> where(group.stream());
    const auto layout = to_device(where, make_layout(std::vector{4}));
    const group_array<float, nccl_communicator> mine(group, {1, 2, 3, 4});
    const group_array<float, nccl_communicator> batch(group, 4, -1);
    const rank_stream other;
    const auto f = field(row_view<const float>(mine.data(), 4), batch_view(batch.data(), 1, 4));
    found.throws<invalid_input>(
        [&] { all_gather_unpack(cuda_stream<>(other), group, layout, f); },
        "stream of the executor is another one than the group's: both must put their work into the "
        "same stream",
        "another stream");
    found.equal(batch.values(), std::vector<float>(4, -1), "nothing was written");
    all_gather_unpack(where, group, layout, f);
    found.equal(batch.values(), std::vector<float>{1, 2, 3, 4}, "the group's stream");
  });
}
