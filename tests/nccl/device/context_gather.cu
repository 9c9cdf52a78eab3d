// From shards to the batch and the row, and the gradients back, between devices.
#include <boost/test/unit_test.hpp>
#include <vector>

#include "seqpack/seqpack.cuh"
#include "support/context_gather_suite.hpp"
#include "support/nccl.hpp"

BOOST_AUTO_TEST_SUITE(device_context_gather)

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

namespace {

/// Two sequences of 4 tokens each, every rank's part of them, and the sum of the gradients.
void check_with_another_device(nccl_communicator& group, int device, findings& found) {
  const offset_t size = group.size();
  const cuda_stream<> where(group.stream());
  const auto on_host = make_layout(std::vector<offset_t>(2, 4),
                                   padding{each_multiple_of<>{8 * size}}, context_parallel{size});
  const offset_t total = on_host.total_tokens();
  const offset_t per_rank = on_host.shard_tokens();
  const std::vector<float> batch_values{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> my_shard(static_cast<std::size_t>(per_rank));
  pack(host, on_host, shard{group.rank().value},
       field(batch_view(batch_values.data(), 2, 4), row_view(my_shard.data(), per_rank)));
  std::vector<float> sums = my_shard;
  for (float& x : sums) x *= static_cast<float>(size);

  const auto layout = to_device(where, on_host);
  const group_array<float, nccl_communicator> mine(group, my_shard);
  const group_array<float, nccl_communicator> gradient(group, batch_values);
  const group_array<float, nccl_communicator> memory(group, static_cast<std::size_t>(total), -1);
  const row_view<float> workspace(memory.data(), total);
  const auto check = [&](const std::string& how, const auto&... work) {
    const group_array<float, nccl_communicator> batch(group, 8, -1);
    const group_array<float, nccl_communicator> sum(group, my_shard.size(), -1);
    const int other = (device + 1) % device_count();
    check_cuda(cudaSetDevice(other));
    all_gather_unpack(
        where, group, layout,
        field(row_view<const float>(mine.data(), per_rank), batch_view(batch.data(), 2, 4)),
        work...);
    pack_reduce_scatter(where, group, layout,
                        field(batch_view(static_cast<const float*>(gradient.data()), 2, 4),
                              row_view(sum.data(), per_rank)),
                        work...);
    int current = -1;
    check_cuda(cudaGetDevice(&current));
    check_cuda(cudaSetDevice(device));
    found.equal(current, other, "the current device" + how);
    found.equal(batch.values(), batch_values, "all_gather_unpack" + how);
    found.equal(sum.values(), sums, "pack_reduce_scatter" + how);
  };
  check("");
  check(" with a workspace", workspace);
}

}  // namespace

BOOST_AUTO_TEST_CASE(another_device_may_be_current) {
  if (device_count() < 2) return;
  for (const int n : group_sizes()) {
    for (const bool legacy : {false, true}) {
      run_ranks(n, [&](rank_place place, findings& found) {
        if (legacy) place.stream = nullptr;
        nccl_communicator group = make_group(place);
        check_with_another_device(group, place.device, found);
      });
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
