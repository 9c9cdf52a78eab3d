// Streams as executors: memory resources, errors, and what does not compile.
#include <thrust/execution_policy.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <cuda/stream_ref>
#include <memory>
#include <tuple>
#include <vector>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"

namespace exec_executor {

/// A user-defined executor of a device: a stream that counts what it runs.
struct counting_stream {
  seqpack::cuda_stream<> stream;
  int* runs;
};

}  // namespace exec_executor

template <>
struct seqpack::executor_traits<exec_executor::counting_stream> {
  using stream_traits = executor_traits<cuda_stream<>>;
  static constexpr bool on_device = true;
  template <class Op>
  static void run(const exec_executor::counting_stream& where, const Op& op) {
    ++*where.runs;
    stream_traits::run(where.stream, op);
  }
  static std::shared_ptr<void> allocate(const exec_executor::counting_stream& where,
                                        offset_t bytes) {
    return stream_traits::allocate(where.stream, bytes);
  }
  static void read(const exec_executor::counting_stream& where, void* to, const void* from,
                   offset_t bytes) {
    stream_traits::read(where.stream, to, from, bytes);
  }
  template <class Fill>
  static void write(const exec_executor::counting_stream& where, void* to, offset_t bytes,
                    const Fill& fill) {
    stream_traits::write(where.stream, to, bytes, fill);
  }
};

BOOST_AUTO_TEST_SUITE(exec_executor)

using namespace seqpack;
using testing::needs_device;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

/// Lack half of what a resource must have.
struct no_deallocate {
  void* allocate_async(std::size_t, std::size_t, cudaStream_t) const;
};
struct half_of_each {
  void* allocate(cudaStream_t, std::size_t, std::size_t) const;
  void deallocate_async(void*, std::size_t, std::size_t, cudaStream_t) const;
};
/// The form of CCCL 3.0, which does not link where it is used.
struct undefined_older_form {
  void* allocate_async(std::size_t, std::size_t, cudaStream_t) const;
  void deallocate_async(void*, std::size_t, std::size_t, cudaStream_t) const;
};
/// A resource that knows no streams.
struct no_stream {
  void* allocate(std::size_t, std::size_t) const;
  void deallocate(void*, std::size_t, std::size_t) const;
};

namespace {

struct counts {
  int allocations = 0;
  int deallocations = 0;
  std::size_t bytes = 0;
  cudaStream_t stream = nullptr;
};

/// A user-defined resource, a handle to its counts, in the form of CCCL 3.0.
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

/// The same in the form of CCCL 3.1, whose streams are converted.
struct stream_first_memory {
  counts* seen;

  void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment) const {
    return counting_memory{seen}.allocate_async(bytes, alignment, stream.get());
  }
  void deallocate(cuda::stream_ref stream, void* p, std::size_t bytes,
                  std::size_t alignment) const {
    counting_memory{seen}.deallocate_async(p, bytes, alignment, stream.get());
  }
};

/// Both, of which the newer form is taken.
struct memory_of_both_forms : stream_first_memory, undefined_older_form {};

/// Pinned memory in the newer form.
struct stream_first_pinned {
  counts* seen;

  void* allocate(cudaStream_t stream, std::size_t bytes, std::size_t alignment) const {
    ++seen->allocations;
    return process_pinned_memory{}.allocate_async(bytes, alignment, stream);
  }
  void deallocate(cudaStream_t stream, void* p, std::size_t bytes, std::size_t alignment) const {
    ++seen->deallocations;
    process_pinned_memory{}.deallocate_async(p, bytes, alignment, stream);
  }
};

static_assert(device_memory_resource<stream_ordered_memory>);
static_assert(device_memory_resource<counting_memory>);
static_assert(device_memory_resource<stream_first_memory>);
static_assert(device_memory_resource<memory_of_both_forms>);
static_assert(pinned_memory_resource<stream_first_pinned>);
static_assert(pinned_memory_resource<process_pinned_memory>);
static_assert(!device_memory_resource<no_deallocate>);
static_assert(!device_memory_resource<half_of_each>);
static_assert(!device_memory_resource<no_stream>);
static_assert(!device_memory_resource<int>);

static_assert(device_executor<cuda_stream<>>);
static_assert(device_executor<cuda_stream<counting_memory>>);
static_assert(device_executor<cuda_stream<stream_first_memory, stream_first_pinned>>);
static_assert(!host_executor<cuda_stream<>>);
static_assert(memory_executor<cuda_stream<>>);
static_assert(!memory_executor<std::remove_cvref_t<decltype(thrust::cuda::par)>>);
static_assert(device_executor<std::remove_cvref_t<decltype(thrust::cuda::par)>>);
static_assert(device_executor<std::remove_cvref_t<decltype(thrust::cuda::par.on(nullptr))>>);
static_assert(device_executor<std::remove_cvref_t<decltype(thrust::cuda::par_nosync)>>);
static_assert(!executor<cudaStream_t>);

using on_host = packed_layout<no_context_parallel>;
using on_device = device_layout<no_context_parallel>;
using with_capacity = capacity_layout<no_context_parallel>;
static_assert(runs_on<host_t, on_host>);
static_assert(runs_on<cuda_stream<>, on_device>);
static_assert(!runs_on<host_t, on_device>);
static_assert(!runs_on<cuda_stream<>, on_host>);

static_assert(std::is_copy_constructible_v<on_device>);
static_assert(std::is_nothrow_move_constructible_v<on_device>);
static_assert(!std::is_copy_constructible_v<with_capacity>);
static_assert(std::is_nothrow_move_constructible_v<with_capacity>);

}  // namespace

using resources = std::tuple<counting_memory, stream_first_memory, memory_of_both_forms>;
BOOST_AUTO_TEST_CASE_TEMPLATE(layouts_take_their_memory_from_the_resource_and_give_it_back, Memory,
                              resources) {
  const testing::test_stream stream;
  counts seen;
  {
    const cuda_stream where(stream, Memory{&seen});
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

BOOST_AUTO_TEST_CASE_TEMPLATE(workspaces_take_their_memory_from_the_resource, Memory, resources) {
  const testing::test_stream stream;
  counts seen;
  counts pinned;
  {
    const cuda_stream where(stream, Memory{&seen}, stream_first_pinned{&pinned});
    executor_array<float> kept;
    {
      const executor_array<float> numbers(where, 1000);
      fill(where, numbers, 2.5F);
      kept = numbers;
    }
    BOOST_TEST(seen.allocations == 1);
    BOOST_TEST(seen.deallocations == 0);
    BOOST_TEST(seen.bytes == 4000U);
    std::vector<float> read(1000);
    read_back(where, read.data(), kept.data(), 1000);
    BOOST_TEST((read == std::vector<float>(1000, 2.5F)));
    const executor_array<int> nothing(where, 0);
    BOOST_TEST(seen.allocations == 1);
  }
  BOOST_TEST(seen.deallocations == 1);
  BOOST_TEST(seen.bytes == 0U);
  BOOST_TEST(pinned.allocations == 1);
  BOOST_TEST(pinned.deallocations == 1);
}

// Up to 32,000 bytes travel with a launch, more through pinned memory.
BOOST_AUTO_TEST_CASE(values_are_written_in_the_order_of_the_stream) {
  const testing::test_stream stream;
  counts pinned;
  const cuda_stream where(stream, stream_ordered_memory{}, stream_first_pinned{&pinned});
  using traits = executor_traits<std::remove_cvref_t<decltype(where)>>;
  for (const offset_t bytes : {1, 15, 16, 17, 1000, 1024, 4001, 31999, 32000, 32001, 100000}) {
    const executor_array<unsigned char> to(where, bytes + 1);
    fill(where, to, static_cast<unsigned char>(200));
    std::vector<unsigned char> wanted;
    for (offset_t k = 0; k < bytes; ++k) wanted.push_back(static_cast<unsigned char>(k * 7 % 199));
    traits::write(where, to.data(), bytes,
                  [&](void* p) { std::memcpy(p, wanted.data(), wanted.size()); });
    std::vector<unsigned char> found(wanted.size() + 1);
    pinned = {};
    read_back(where, found.data(), to.data(), bytes + 1);
    wanted.push_back(200);
    BOOST_TEST((found == wanted));
  }
  const executor_array<unsigned char> to(where, 32001);
  pinned = {};
  traits::write(where, to.data(), 32000, [](void* p) { std::memset(p, 1, 32000); });
  BOOST_TEST(pinned.allocations == 0);
  traits::write(where, to.data(), 32001, [](void* p) { std::memset(p, 1, 32001); });
  BOOST_TEST(pinned.allocations == 1);
  BOOST_TEST(pinned.deallocations == 1);
  stream.wait();
}

// executor_traits is all that it takes, layouts and workspaces included.
BOOST_AUTO_TEST_CASE(executors_of_ones_own_on_a_device) {
  static_assert(memory_executor<counting_stream> && device_executor<counting_stream>);
  const testing::test_stream stream;
  int runs = 0;
  const counting_stream where{stream.executor(), &runs};
  const auto layout = place_on(where, make_layout(std::vector{2, 1}));
  const executor_array<int> batch(where, 6);
  const executor_array<int> row(where, 3);
  fill(where, batch, 5);
  fill(where, row, 0);
  pack(where, layout, full_row, field(batch_view<int>(batch.data(), 2, 3), row.rows()));
  BOOST_TEST(runs == 3);
  std::vector<int> found(3);
  read_back(where, found.data(), row.data(), 3);
  BOOST_TEST((found == std::vector{5, 5, 5}));
}

// Thrust's policies run the kernels of a cuda_stream, on their own stream.
BOOST_AUTO_TEST_CASE(policies_of_thrust_run_every_form_of_an_operation) {
  const testing::test_stream stream;
  const auto on_host = make_layout(std::vector{3, 0, 2}, padding{each_multiple_of<4>{}});
  const auto layout = to_device(stream.executor(), on_host);
  std::vector<int> ids;
  for (int k = 0; k < 12; ++k) ids.push_back(100 + k);
  const testing::device_array<int> batch(ids);
  const batch_view<int> source(batch.data(), 3, 4);
  const auto check = [&](const auto& policy) {
    const testing::device_array<int> row(8);
    pack(policy, layout, full_row, field(source, row_view<int>(row.data(), 8), -1));  // tiles
    const testing::device_array<float> logits(std::vector<float>{1, 2, 3, 4, 5, 6});
    scale_logits(policy, matrix_view<float>(logits.data(), 2, 3), 0.5);  // teams
    const testing::device_array<int> counts(3);
    real_tokens_per_sequence(policy, layout, shard{0}, row_view<int>(counts.data(), 3));  // rows
    stream.wait();
    BOOST_TEST((row.values() == std::vector{100, 101, 102, -1, 108, 109, -1, -1}));
    BOOST_TEST((logits.values() == std::vector<float>{2, 4, 6, 8, 10, 12}));
    BOOST_TEST((counts.values() == std::vector{3, 0, 2}));
    BOOST_TEST(row.guards_intact());
  };
  check(thrust::cuda::par.on(stream));
  check(thrust::cuda::par_nosync.on(stream));
  check(thrust::device);

  const testing::device_array<int> row(8);
  const testing::captured_call call(stream, [&] {
    pack(thrust::cuda::par_nosync.on(stream), layout, full_row,
         field(source, row_view<int>(row.data(), 8), -1));
  });
  BOOST_TEST(call.launches == 1);
  BOOST_TEST(call.memsets + call.others == 0);
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
