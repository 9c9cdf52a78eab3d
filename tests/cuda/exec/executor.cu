// Streams as executors: memory resources, errors, and what does not compile.
#include <boost/test/unit_test.hpp>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"

BOOST_AUTO_TEST_SUITE(exec_executor)

using namespace seqpack;
using testing::needs_device;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

/// Lacks half of what a resource must have.
struct no_deallocate {
  void* allocate_async(std::size_t, std::size_t, cudaStream_t) const;
};

namespace {

struct counts {
  int allocations = 0;
  int deallocations = 0;
  std::size_t bytes = 0;
  cudaStream_t stream = nullptr;
};

/// A resource of the user's own: a handle to its counts.
struct counting_memory {
  counts* seen;

  void* allocate_async(std::size_t bytes, std::size_t alignment, cudaStream_t stream) const {
    ++seen->allocations;
    seen->bytes += bytes;
    seen->stream = stream;
    return stream_ordered_memory{}.allocate_async(bytes, alignment, stream);
  }
  void deallocate_async(void* p, std::size_t bytes, std::size_t alignment,
                        cudaStream_t stream) const {
    ++seen->deallocations;
    seen->bytes -= bytes;
    stream_ordered_memory{}.deallocate_async(p, bytes, alignment, stream);
  }
};

static_assert(device_memory_resource<stream_ordered_memory>);
static_assert(device_memory_resource<counting_memory>);
static_assert(!device_memory_resource<no_deallocate>);
static_assert(!device_memory_resource<int>);

static_assert(device_executor<cuda_stream<>>);
static_assert(device_executor<cuda_stream<counting_memory>>);
static_assert(!host_executor<cuda_stream<>>);
static_assert(device_executor<std::remove_cvref_t<decltype(thrust::cuda::par)>>);
static_assert(device_executor<std::remove_cvref_t<decltype(thrust::cuda::par.on(nullptr))>>);
static_assert(device_executor<std::remove_cvref_t<decltype(thrust::cuda::par_nosync)>>);
static_assert(!executor<cudaStream_t>);

using on_host = packed_layout<no_padding, no_context_parallel>;
using on_device = device_layout<no_padding, no_context_parallel>;
static_assert(runs_on<host_t, on_host>);
static_assert(runs_on<cuda_stream<>, on_device>);
static_assert(!runs_on<host_t, on_device>);
static_assert(!runs_on<cuda_stream<>, on_host>);

static_assert(!std::is_copy_constructible_v<on_device>);
static_assert(std::is_nothrow_move_constructible_v<device_buffer<>>);

}  // namespace

BOOST_AUTO_TEST_CASE(layouts_take_their_memory_from_the_resource_and_give_it_back) {
  const testing::test_stream stream;
  counts seen;
  {
    const cuda_stream where(stream, counting_memory{&seen});
    const testing::device_array<int> lengths(std::vector<int>{3, 4});
    const auto layout = make_layout(where, std::span<const int>(lengths.data(), 2));
    BOOST_TEST(layout.total_tokens() == 7);
    BOOST_TEST(seen.allocations == 1);
    BOOST_TEST(seen.stream == static_cast<cudaStream_t>(stream));
    const auto uploaded = to_device(where, make_layout(std::vector{1, 2}));
    BOOST_TEST(seen.allocations == 2);

    // What runs over a layout allocates nothing.
    const testing::device_array<int> batch(std::vector<int>(8, 1));
    const testing::device_array<int> row(7);
    pack(where, layout, full_row,
         field(batch_view<int>(batch.data(), 2, 4), row_view<int>(row.data(), 7)));
    BOOST_TEST(seen.allocations == 2);
  }
  BOOST_TEST(seen.deallocations == 2);
  BOOST_TEST(seen.bytes == 0U);
}

BOOST_AUTO_TEST_CASE(moved_layouts_free_their_memory_once) {
  const testing::test_stream stream;
  counts seen;
  {
    const cuda_stream where(stream, counting_memory{&seen});
    auto first = to_device(where, make_layout(std::vector{1, 2}));
    auto second = std::move(first);
    first = to_device(where, make_layout(std::vector{3, 4}));
    second = std::move(first);
    BOOST_TEST(second.total_tokens() == 7);
  }
  BOOST_TEST(seen.allocations == 2);
  BOOST_TEST(seen.deallocations == 2);
}

BOOST_AUTO_TEST_CASE(errors_carry_the_code_and_the_place) {
  try {
    check_cuda(cudaErrorInvalidValue);
    BOOST_FAIL("nothing was thrown");
  } catch (const cuda_error& e) {
    BOOST_TEST(e.code() == cudaErrorInvalidValue);
    BOOST_TEST(std::string(e.where().file).find("executor.cu") != std::string::npos);
    BOOST_TEST(std::string(e.what()).find("cudaErrorInvalidValue") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_checked_layout_cannot_be_captured_and_says_so) {
  const testing::test_stream stream;
  const testing::device_array<int> lengths(std::vector<int>{3, 4});
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  BOOST_CHECK_THROW(make_layout(stream.executor(), std::span<const int>(lengths.data(), 2)),
                    cuda_error);
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream, &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
}

BOOST_AUTO_TEST_SUITE_END()
