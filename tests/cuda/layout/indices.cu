// Thrust's algorithms over the lazy indices, on a device.
#include <thrust/count.h>
#include <thrust/execution_policy.h>
#include <thrust/gather.h>
#include <thrust/scatter.h>

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <vector>

#include "seqpack/layout/indices.hpp"
#include "seqpack/seqpack.cuh"
#include "support/device.cuh"

BOOST_AUTO_TEST_SUITE(layout_indices)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr offset_t sequences = 40;
constexpr offset_t width = 64;

/// Lengths from 0 to 64.
std::vector<int> some_lengths() {
  std::vector<int> lengths;
  for (int b = 0; b < sequences; ++b) lengths.push_back(b * 29 % 65);
  return lengths;
}

template <class Policy, class Layout, class HostLayout, class Place>
void check(const Policy& policy, cudaStream_t stream, const Layout& layout,
           const HostLayout& on_host, Place at) {
  std::vector<int> ids;
  for (int k = 0; k < sequences * width; ++k) ids.push_back(1000 + k);
  ids.push_back(-7);  // what padding gathers
  const auto rows = static_cast<std::size_t>(layout.view().rows(at));
  std::vector<int> packed(rows);
  pack(host, on_host, at, field(batch_view(ids.data(), sequences, width), packed, -7));
  std::vector<int> unpacked(sequences * width);
  unpack(host, on_host, at, field(packed, batch_view(unpacked.data(), sequences, width), -1));

  const auto from = batch_indices(layout, at, width);
  const auto to = packed_indices(layout, at, width);
  const auto padded = batch_indices(layout, at, width, sequences * width);
  const device_array<int> source(ids);
  const device_array<int> row(packed);
  const device_array<int> gathered(std::vector<int>(rows, -7));
  thrust::gather_if(policy, from.begin(), from.end(), from.begin(), source.data(), gathered.data(),
                    is_index{});
  const device_array<int> all(rows);
  thrust::gather(policy, padded.begin(), padded.end(), source.data(), all.data());
  const device_array<int> back(std::vector<int>(sequences * width, -1));
  thrust::gather_if(policy, to.begin(), to.end(), to.begin(), row.data(), back.data(), is_index{});
  const device_array<int> scattered(std::vector<int>(sequences * width, -1));
  thrust::scatter_if(policy, row.data(), row.data() + rows, from.begin(), from.begin(),
                     scattered.data(), is_index{});
  const device_array<int> scattered_rows(std::vector<int>(rows, -7));
  thrust::scatter_if(policy, source.data(), source.data() + sequences * width, to.begin(),
                     to.begin(), scattered_rows.data(), is_index{});
  const device_array<int> with_pad(std::vector<int>(sequences * width + 1, -1));
  thrust::scatter(policy, row.data(), row.data() + rows, padded.begin(), with_pad.data());
  check_cuda(cudaStreamSynchronize(stream));

  BOOST_TEST((gathered.values() == packed && all.values() == packed));
  BOOST_TEST((scattered_rows.values() == packed));
  BOOST_TEST((back.values() == unpacked && scattered.values() == unpacked));
  std::vector<int> without_pad = with_pad.values();
  without_pad.pop_back();
  BOOST_TEST((without_pad == unpacked));
  BOOST_TEST((gathered.guards_intact() && back.guards_intact() && with_pad.guards_intact()));
  BOOST_TEST(thrust::count_if(policy, from.begin(), from.end(), is_index{}) ==
             thrust::count_if(policy, to.begin(), to.end(), is_index{}));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_layout_of_the_host_that_was_copied) {
  const test_stream stream;
  const auto on_host = make_layout(
      some_lengths(), padding{each_multiple_of<8>{}, total_multiple_of<64>{}, ghost_tail{}},
      context_parallel<4>{});
  const auto layout = to_device(stream.executor(), on_host);
  const auto policy = thrust::cuda::par_nosync.on(stream);
  check(policy, stream, layout, on_host, full_row);
  check(policy, stream, layout, on_host, shard{3});
  check(thrust::cuda::par.on(stream), stream, layout, on_host, all_shards);
}

BOOST_AUTO_TEST_CASE(an_order_that_leaves_sequences_out) {
  const test_stream stream;
  std::vector<offset_t> order;
  for (offset_t k = 0; k < 17; ++k) order.push_back(k * 11 % sequences);
  const auto on_host = make_layout(some_lengths(), padding{each_multiple_of<8>{}},
                                   context_parallel{4, striped{}}, {.order = order});
  const auto layout = to_device(stream.executor(), on_host);
  check(thrust::cuda::par_nosync.on(stream), stream, layout, on_host, full_row);
  check(thrust::cuda::par_nosync.on(stream), stream, layout, on_host, shard{1});
}

BOOST_AUTO_TEST_CASE(a_layout_that_the_device_made) {
  const test_stream stream;
  const auto on_host = make_layout(some_lengths());
  const device_array<int> lengths(some_lengths());
  const auto layout =
      make_layout(stream.executor(), std::span<const int>(lengths.data(), lengths.size()));
  check(thrust::cuda::par_nosync.on(stream), stream, layout, on_host, full_row);
}

BOOST_AUTO_TEST_SUITE_END()
