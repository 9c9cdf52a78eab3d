// Thrust's algorithms over the lazy indices, with its policies of the host.
#define BOOST_TEST_MODULE indices_thrust
#include <thrust/count.h>
#include <thrust/execution_policy.h>
#include <thrust/gather.h>
#include <thrust/scatter.h>
#include <thrust/system/cpp/execution_policy.h>
#include <thrust/system/omp/execution_policy.h>
#include <thrust/system/tbb/execution_policy.h>

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "seqpack/layout/indices.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/policy/any_sharding.hpp"
#include "support/layouts.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

constexpr offset_t batch = 40;
constexpr offset_t width = 64;

template <class Policy, class Layout, class Place>
void check(const Policy& policy, const Layout& layout, Place at, std::vector<int> ids) {
  const auto rows = static_cast<std::size_t>(layout.view().rows(at));
  const auto from = batch_indices(layout, at, width);
  const auto to = packed_indices(layout, at, width);

  std::vector<int> packed(rows, -7);
  thrust::gather_if(policy, from.begin(), from.end(), from.begin(), ids.begin(), packed.begin(),
                    is_index{});
  std::vector<int> wanted(rows);
  pack(host, layout, at, field(batch_view(ids.data(), batch, width), wanted, -7));
  BOOST_TEST((packed == wanted));

  std::vector<int> unpacked(batch * width);
  unpack(host, layout, at, field(packed, batch_view(unpacked.data(), batch, width), -1));
  std::vector<int> gathered(batch * width, -1);
  thrust::gather_if(policy, to.begin(), to.end(), to.begin(), packed.begin(), gathered.begin(),
                    is_index{});
  BOOST_TEST((gathered == unpacked));
  std::vector<int> scattered(batch * width, -1);
  thrust::scatter_if(policy, packed.begin(), packed.end(), from.begin(), from.begin(),
                     scattered.begin(), is_index{});
  BOOST_TEST((scattered == unpacked));
  std::vector<int> scattered_rows(rows, -7);
  thrust::scatter_if(policy, ids.begin(), ids.end(), to.begin(), to.begin(), scattered_rows.begin(),
                     is_index{});
  BOOST_TEST((scattered_rows == wanted));

  // Without a condition: padding gathers from an element behind the batch.
  ids.push_back(-7);
  const auto with_pad = batch_indices(layout, at, width, batch * width);
  std::vector<int> all(rows, 0);
  thrust::gather(policy, with_pad.begin(), with_pad.end(), ids.begin(), all.begin());
  BOOST_TEST((all == wanted));
  std::vector<int> all_scattered(batch * width + 1, -1);
  thrust::scatter(policy, packed.begin(), packed.end(), with_pad.begin(), all_scattered.begin());
  all_scattered.pop_back();
  BOOST_TEST((all_scattered == unpacked));

  BOOST_TEST(thrust::count_if(policy, from.begin(), from.end(), is_index{}) ==
             thrust::count_if(policy, to.begin(), to.end(), is_index{}));
}

/// One type of layout, whose sharding is chosen at run time: what Thrust sees are iterators over places.
template <class Policy>
void check(const Policy& policy) {
  std::mt19937 random(83);
  const oracle::numbers lengths = random_lengths(random, batch, width);
  const oracle::numbers order = random_order(random, batch);
  std::vector<int> ids;
  for (int k = 0; k < batch * width; ++k) ids.push_back(1000 + k);
  const std::vector<offset_t> slots(order.begin(), order.end());
  for (const any_sharding& sharding : {any_sharding{zigzag{}}, any_sharding{contiguous{}},
                                       any_sharding{striped{}}, any_sharding{row_contiguous{}}}) {
    for (const offset_t cp : {1, 2, 3, 5}) {
      const auto layout = make_layout(
          lengths, padding{each_multiple_of<>{2 * cp}, total_multiple_of<>{6 * cp}, ghost_tail{}},
          context_parallel{cp, sharding}, {.order = slots});
      check(policy, layout, full_row, ids);
      check(policy, layout, shard{cp - 1}, ids);
      check(policy, layout, all_shards, ids);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(seq) {
  check(thrust::seq);
}
BOOST_AUTO_TEST_CASE(cpp_par) {
  check(thrust::cpp::par);
}
BOOST_AUTO_TEST_CASE(omp_par) {
  check(thrust::omp::par);
}
BOOST_AUTO_TEST_CASE(tbb_par) {
  check(thrust::tbb::par);
}

// Without a policy, the iterators are taken for the host's.
BOOST_AUTO_TEST_CASE(no_policy) {
  const auto layout = make_layout(std::vector{2, 1}, padding{each_multiple_of<4>{}});
  const auto from = batch_indices(layout, full_row, 3, 6);
  const std::vector<int> ids{10, 11, 0, 20, 0, 0, -1};
  std::vector<int> row(8);
  thrust::gather(from.begin(), from.end(), ids.begin(), row.begin());
  BOOST_TEST((row == std::vector{10, 11, -1, -1, 20, -1, -1, -1}));
}
