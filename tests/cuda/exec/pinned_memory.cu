// Pinned memory that is used again once the stream has got there.
#include "seqpack/exec/pinned_memory.cuh"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <thread>
#include <vector>

#include "seqpack/layout/device_layout.cuh"
#include "support/device.cuh"

BOOST_AUTO_TEST_SUITE(exec_pinned_memory)

using namespace seqpack;
using testing::needs_device;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

BOOST_AUTO_TEST_CASE(blocks_are_used_again) {
  const testing::test_stream stream;
  const pinned_pool pool;
  const pinned_pool same = pool;
  void* const first = pool.allocate_async(100, 16, stream);
  void* const second = same.allocate_async(100, 16, stream);
  BOOST_TEST(first != second);
  BOOST_TEST(pool.size() == 2);
  std::memset(first, 1, 100);  // memory of the host
  pool.deallocate_async(first, 100, 16, stream);
  stream.wait();
  BOOST_TEST(pool.allocate_async(1 << 20, 16, stream) == first);
  BOOST_TEST(pool.size() == 2);
  pool.deallocate_async(second, 100, 16, stream);
  stream.wait();
  // Too small for this one, which is there afterwards.
  void* const large = pool.allocate_async(3 << 20, 16, stream);
  BOOST_TEST(pool.size() == 3);
  pool.deallocate_async(large, 3 << 20, 16, stream);
  stream.wait();
  BOOST_TEST(same.allocate_async(4 << 20, 16, stream) == large);
}

BOOST_AUTO_TEST_CASE(nothing_is_pageable) {
  const testing::test_stream stream;
  const pinned_pool pool;
  cudaPointerAttributes found{};
  check_cuda(cudaPointerGetAttributes(&found, pool.allocate_async(100, 16, stream)));
  BOOST_TEST(found.type == cudaMemoryTypeHost);
}

BOOST_AUTO_TEST_CASE(captures_of_others_go_on) {
  const testing::test_stream captured;
  const testing::test_stream stream;
  const pinned_pool pool;
  pool.deallocate_async(pool.allocate_async(1, 1, stream), 1, 1, stream);
  stream.wait();
  check_cuda(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
  void* const again = pool.allocate_async(1, 1, stream);  // asks an event
  void* const more = pool.allocate_async(1, 1, stream);   // takes memory
  BOOST_TEST(again != more);
  BOOST_TEST(pool.size() == 2);
  cudaGraph_t graph = nullptr;
  BOOST_TEST(cudaStreamEndCapture(captured, &graph) == cudaSuccess);
  cudaGraphDestroy(graph);
}

BOOST_AUTO_TEST_CASE(a_pool_of_the_callers_own) {
  const testing::test_stream stream;
  const pinned_pool pool;
  const cuda_stream where(stream, stream_ordered_memory{}, pool);
  const std::vector<int> lengths(20'000, 3);
  const auto layout = make_layout(lengths);
  const auto placed = to_device(where, layout);
  BOOST_TEST(pool.size() == 1);
  stream.wait();
  const auto cu = testing::read_device(placed.cu_seqlens());
  const auto expected = layout.cu_seqlens();
  BOOST_TEST(cu == std::vector<int>(expected.begin(), expected.end()),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
