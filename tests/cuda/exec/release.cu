// Memory that is given back: beside captures, where that fails, and into pools of one's own.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "seqpack/exec/cuda_release.hpp"
#include "seqpack/layout/capacity_layout.cuh"
#include "seqpack/layout/device_layout.cuh"
#include "support/device.cuh"

BOOST_AUTO_TEST_SUITE(exec_release)

using namespace seqpack;
using testing::needs_device;
using testing::test_stream;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

std::uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
  std::uint64_t value = 0;
  check_cuda(cudaMemPoolGetAttribute(pool, which, &value));
  return value;
}
/// Bytes of the default pool that are in use once the device is done.
std::uint64_t used() {
  check_cuda(cudaDeviceSynchronize());
  cudaMemPool_t pool = nullptr;
  check_cuda(cudaDeviceGetDefaultMemPool(&pool, 0));
  return attribute(pool, cudaMemPoolAttrUsedMemCurrent);
}

/// What becomes of a capture in which `call` is made: the number of nodes beside one memset.
template <class Call>
std::size_t nodes_of(cudaStream_t stream, const Call& call) {
  const testing::device_array<int> written(1);
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  check_cuda(cudaMemsetAsync(written.data(), 1, 4, stream));
  call();
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamEndCapture(stream, &graph));
  std::size_t nodes = 0;
  check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes));
  cudaGraphExec_t program = nullptr;
  check_cuda(cudaGraphInstantiate(&program, graph, 0));
  check_cuda(cudaGraphLaunch(program, stream));
  check_cuda(cudaStreamSynchronize(stream));
  check_cuda(cudaGraphExecDestroy(program));
  check_cuda(cudaGraphDestroy(graph));
  return nodes - 1;
}

const std::vector<int> host_lengths(1000, 3);

/// Ends an object in a capture of the stream, and compares the memory in use.
template <class Make>
void check_freed_after_capture(const Make& make) {
  const test_stream stream;
  make(stream);  // the program is on the device now
  const std::uint64_t before = used();
  auto object = std::make_optional(make(stream));
  const std::uint64_t with = used();
  BOOST_TEST(with > before);
  BOOST_TEST(nodes_of(stream, [&] { object.reset(); }) == 0U);
  BOOST_TEST(used() == with);  // nothing was called for the stream since
  const auto next = to_device(stream.executor(), make_layout(std::vector{1}));
  BOOST_TEST(used() < with);
  object = make(stream);
  BOOST_TEST(nodes_of(stream, [&] { object.reset(); }) == 0U);
  const std::uint64_t held = used();
  check_releases(stream);
  BOOST_TEST(used() == held - (with - before));
  BOOST_TEST((cudaPeekAtLastError() == cudaSuccess));
}

constexpr const char* lost =
    "memory that was given back before could not be freed: CUDA error cudaErrorInvalidValue "
    "(invalid argument) at ";

bool names_the_loss(const cuda_error& e) {
  BOOST_TEST(std::string(e.what()).starts_with(lost), e.what());
  BOOST_TEST((e.code() == cudaErrorInvalidValue));
  return true;
}

/// Gives back what nobody has allocated.
void fail_to_free(cudaStream_t stream) {
  int on_host = 0;
  stream_ordered_memory{}.deallocate_async(&on_host, 4, 4, stream);
  BOOST_TEST((cudaPeekAtLastError() == cudaSuccess));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_layout_that_is_destroyed_in_a_capture_is_freed_after_it) {
  check_freed_after_capture([](const test_stream& stream) {
    return to_device(stream.executor(), make_layout(host_lengths));
  });
  check_freed_after_capture([](const test_stream& stream) {
    return capacity_layout(stream.executor(), capacity{.sequences = 500, .width = 10},
                           padding{each_multiple_of<4>{}, fixed_total<5000>{}},
                           context_parallel<1>{});
  });
}

BOOST_AUTO_TEST_CASE(memory_of_a_capture_is_freed_by_its_graph) {
  const test_stream stream;
  const std::uint64_t before = used();
  const std::size_t nodes = nodes_of(
      stream, [&] { const auto layout = to_device(stream.executor(), make_layout(host_lengths)); });
  BOOST_TEST(nodes == 3U);  // allocated, written, freed
  check_releases(stream);
  BOOST_TEST(used() == before);
}

BOOST_AUTO_TEST_CASE(memory_of_a_capture_that_came_to_nothing_is_no_failure) {
  const test_stream stream;
  const test_stream other;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  auto layout =
      std::make_optional(to_device(stream.executor(), make_layout(std::vector<int>(9, 3))));
  BOOST_TEST((cudaStreamSynchronize(stream) != cudaSuccess));  // the end of the capture
  layout.reset();
  cudaGraph_t graph = nullptr;
  BOOST_TEST((cudaStreamEndCapture(stream, &graph) != cudaSuccess));
  cudaGetLastError();
  check_releases(stream);
}

BOOST_AUTO_TEST_CASE(a_release_that_fails_is_told_by_the_next_allocation_in_the_stream) {
  const test_stream stream;
  const test_stream other;
  const stream_ordered_memory memory;
  fail_to_free(stream);
  memory.deallocate_async(memory.allocate_async(16, 16, other), 16, 16, other);
  check_releases(other);
  BOOST_CHECK_EXCEPTION(memory.allocate_async(16, 16, stream), cuda_error, names_the_loss);
  memory.deallocate_async(memory.allocate_async(16, 16, stream), 16, 16, stream);

  fail_to_free(stream);
  const device_pool pool;
  BOOST_CHECK_EXCEPTION(pool.allocate_async(16, 16, stream), cuda_error, names_the_loss);

  fail_to_free(stream);
  fail_to_free(stream);
  BOOST_CHECK_EXCEPTION(check_releases(stream), cuda_error, names_the_loss);
  check_releases(stream);
}

BOOST_AUTO_TEST_CASE(a_layout_of_a_stream_that_lost_memory_is_not_made) {
  const test_stream stream;
  fail_to_free(stream);
  const auto layout = make_layout(host_lengths);
  BOOST_CHECK_EXCEPTION(to_device(stream.executor(), layout), cuda_error, names_the_loss);
  BOOST_TEST(to_device(stream.executor(), layout).total_tokens() == 3000);
}

BOOST_AUTO_TEST_CASE(pinned_memory_goes_beside_captures_of_others) {
  const test_stream stream;
  const test_stream captured;
  auto pool = std::make_optional<pinned_pool>();
  pool->deallocate_async(pool->allocate_async(16, 16, stream), 16, 16, stream);
  stream.wait();
  BOOST_TEST(nodes_of(captured, [&] { pool.reset(); }) == 0U);
  pinned_pool().allocate_async(16, 16, stream);  // has nothing to tell
}

BOOST_AUTO_TEST_CASE(pinned_memory_that_is_given_back_in_a_capture_is_used_again_after_it) {
  const test_stream stream;
  const pinned_pool pool;
  void* const block = pool.allocate_async(16, 16, stream);
  BOOST_TEST(nodes_of(stream, [&] { pool.deallocate_async(block, 16, 16, stream); }) == 0U);
  pool.deallocate_async(pool.allocate_async(16, 16, stream), 16, 16, stream);
  stream.wait();
  BOOST_TEST(pool.allocate_async(16, 16, stream) == block);
}

BOOST_AUTO_TEST_CASE(pinned_memory_that_cannot_be_freed_is_told_by_the_next_allocation) {
  const test_stream stream;
  {
    const pinned_pool pool;
    check_cuda(cudaFreeHost(pool.allocate_async(16, 16, stream)));
  }
  BOOST_TEST((cudaPeekAtLastError() == cudaSuccess));
  const pinned_pool pool;
  BOOST_CHECK_EXCEPTION(pool.allocate_async(16, 16, stream), cuda_error, names_the_loss);
  pool.allocate_async(16, 16, stream);
}

BOOST_AUTO_TEST_CASE(a_pool_of_ones_own_keeps_what_it_is_told_to) {
  static_assert(device_memory_resource<device_pool>);
  const auto threshold = [](const device_pool& pool) {
    return attribute(pool.handle(), cudaMemPoolAttrReleaseThreshold);
  };
  const device_pool all;
  BOOST_TEST(threshold(all) == std::numeric_limits<std::uint64_t>::max());
  const device_pool some({.release_threshold = 1 << 20});
  BOOST_TEST(threshold(some) == 1U << 20);
  const device_pool copy = some;
  BOOST_TEST(copy.handle() == some.handle());
  BOOST_TEST(copy.handle() != all.handle());
}

BOOST_AUTO_TEST_CASE(layouts_from_a_pool_of_ones_own) {
  const test_stream stream;
  std::optional<device_layout<no_context_parallel>> kept;
  {
    const cuda_stream where(stream, device_pool{});
    kept = to_device(where, make_layout(std::vector{2, 3}));
    BOOST_TEST(attribute(where.memory.handle(), cudaMemPoolAttrUsedMemCurrent) > 0U);
  }
  stream.wait();
  BOOST_TEST((testing::read_device(kept->cu_seqlens()) == std::vector<int>{0, 2, 5}));
  BOOST_TEST(nodes_of(stream, [&] { kept.reset(); }) == 0U);
  check_releases(stream);
}

BOOST_AUTO_TEST_SUITE_END()
