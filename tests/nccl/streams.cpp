#define BOOST_TEST_MODULE nccl_streams
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "support/communicator_suite.hpp"
#include "support/nccl.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_TEST_GLOBAL_FIXTURE(needs_nccl_device);

namespace {

constexpr std::size_t count = 5000;

/// Bytes that cudaMallocAsync has given on a device, and that are in use.
std::uint64_t used_memory(int device) {
  cudaMemPool_t pool = nullptr;
  std::uint64_t bytes = 0;
  check_cuda(cudaDeviceGetDefaultMemPool(&pool, device));
  check_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &bytes));
  return bytes;
}

/// One step: the rank's numbers are copied and gathered; the last rank's part of them is summed
/// over the ranks, and sent to all.
struct step {
  nccl_communicator& group;
  group_array<std::int32_t, nccl_communicator> input;
  group_array<std::int32_t, nccl_communicator> copy;
  group_array<std::int32_t, nccl_communicator> gathered;
  group_array<std::int32_t, nccl_communicator> own_part;
  group_array<std::int32_t, nccl_communicator> sum;

  explicit step(nccl_communicator& g)
      : group(g),
        input(g, count, 0),
        copy(g, count, 0),
        gathered(g, count * size(), 0),
        own_part(g, count, 0),
        sum(g, count, 0) {}

  std::size_t size() const { return static_cast<std::size_t>(group.size()); }
  void copy_elements(std::int32_t* to, const std::int32_t* from) const {
    check_cuda(cudaMemcpyAsync(to, from, count * sizeof(std::int32_t), cudaMemcpyDeviceToDevice,
                               group.stream()));
  }
  /// Everything is ordered by the stream alone.
  void run() {
    copy_elements(copy.data(), input.data());
    group.all_gather(static_cast<const std::int32_t*>(copy.data()), gathered.data(), count);
    check_cuda(cudaMemsetAsync(copy.data(), 0xFF, count * sizeof(std::int32_t), group.stream()));
    copy_elements(own_part.data(), gathered.data() + count * (size() - 1));
    group.all_reduce(static_cast<const std::int32_t*>(own_part.data()), sum.data(), count,
                     reduction::sum);
    group.broadcast(own_part.data(), count, group_rank{0});
  }
  void set_input(std::int32_t base) {
    std::vector<std::int32_t> values;
    for (std::size_t k = 0; k < count; ++k) values.push_back(value(base, group.rank().value, k));
    group_copies<nccl_communicator>::upload(group, input.data(), values.data(),
                                            values.size() * sizeof(std::int32_t));
  }
  void check(std::int32_t base, findings& found, const std::string& what) {
    std::vector<std::int32_t> all, last, sums;
    for (offset_t r = 0; r < group.size(); ++r) {
      for (std::size_t k = 0; k < count; ++k) all.push_back(value(base, r, k));
    }
    for (std::size_t k = 0; k < count; ++k) {
      last.push_back(value(base, group.size() - 1, k));
      sums.push_back(static_cast<std::int32_t>(group.size()) * last.back());
    }
    found.equal(gathered.values(), all, what + ", gathered");
    found.equal(own_part.values(), last, what + ", of the last rank");
    found.equal(sum.values(), sums, what + ", sum");
    found.equal(copy.values(), std::vector<std::int32_t>(count, -1), what + ", overwritten after");
  }
  static std::int32_t value(std::int32_t base, offset_t rank, std::size_t k) {
    return base + 1000 * static_cast<std::int32_t>(rank) + static_cast<std::int32_t>(k % 777);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(work_keeps_its_order) {
  for (const int n : group_sizes()) {
    run_group(n, [](nccl_communicator& group, findings& found) {
      step s(group);
      for (const std::int32_t base : {5, 100000}) {
        s.set_input(base);
        s.run();
        s.set_input(-1);  // behind what has been issued
        s.check(base, found, "order");
      }
    });
  }
}

// A rank that returns from its calls before any other rank makes them has not waited for one.
BOOST_AUTO_TEST_CASE(calls_return_before_the_others_come) {
  const int n = most_ranks();
  if (n < 2) return;
  for (int first = 0; first < 2; ++first) {
    meeting started(n);
    run_group(n, [&](nccl_communicator& group, findings& found) {
      step s(group);
      s.set_input(3);
      s.run();  // connections are made
      s.check(3, found, "before");
      s.set_input(7);
      const bool leads = group.rank().value == first;
      if (leads) s.run();
      found.check(started.arrive_and_wait(), "the first rank has returned from its calls");
      if (!leads) s.run();
      s.check(7, found, "one rank first");
    });
  }
}

BOOST_AUTO_TEST_CASE(a_captured_graph_can_be_replayed) {
  for (const int n : group_sizes()) {
    run_group(n, [&](nccl_communicator& group, findings& found) {
      step s(group);
      s.set_input(3);
      s.run();  // connections are made
      s.check(3, found, "before");

      cudaGraph_t graph = nullptr;
      cudaGraphExec_t program = nullptr;
      check_cuda(cudaStreamBeginCapture(group.stream(), cudaStreamCaptureModeRelaxed));
      s.run();
      // What waits is refused, and the capture is as it was.
      found.throws<cuda_error>([&] { group.wait(); }, "cudaErrorStreamCaptureUnsupported",
                               "wait in a capture", true);
      std::byte byte{};
      found.throws<cuda_error>([&] { group.exchange(&byte, &byte, 1); },
                               "cudaErrorStreamCaptureUnsupported", "exchange in a capture", true);
      check_cuda(cudaStreamEndCapture(group.stream(), &graph));
      check_cuda(cudaGraphInstantiate(&program, graph, 0));
      s.check(3, found, "nothing has run");

      for (const std::int32_t base : {40, 50000, 7}) {
        s.set_input(base);
        check_cuda(cudaGraphLaunch(program, group.stream()));
        s.check(base, found, "replay");
      }
      check_cuda(cudaGraphExecDestroy(program));
      check_cuda(cudaGraphDestroy(graph));
      s.set_input(9);
      s.run();
      s.check(9, found, "outside of the graph again");
    });
  }
}

// Neither the end of the group nor that of its memory is the end of the capture.
BOOST_AUTO_TEST_CASE(a_group_goes_while_its_stream_is_captured) {
  for (const auto mode : {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    run_ranks(most_ranks(), [&](const rank_place& place, findings& found) {
      auto group = std::make_unique<nccl_communicator>(make_group(place));
      check_exchange(*group, found);
      const auto target = group->allocate(4);
      group->wait();
      const std::uint64_t before = used_memory(place.device);
      auto memory = group->allocate(1 << 20);
      check_cuda(cudaMemsetAsync(memory.get(), 5, 4, place.stream));
      group->broadcast(static_cast<std::int32_t*>(memory.get()), 1, group_rank{0});
      group->wait();

      cudaGraph_t graph = nullptr;
      cudaGraphExec_t program = nullptr;
      std::size_t nodes = 0;
      check_cuda(cudaStreamBeginCapture(place.stream, mode));
      check_cuda(cudaMemsetAsync(target.get(), 1, 2, place.stream));
      const auto took = time_of([&] { group.reset(); });
      memory.reset();
      check_cuda(cudaMemsetAsync(static_cast<char*>(target.get()) + 2, 2, 2, place.stream));
      check_cuda(cudaStreamEndCapture(place.stream, &graph));
      found.check(took < patient_nccl.deadline / 2, "the destructor waited");
      check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes));
      found.equal(nodes, std::size_t{2}, "nodes");
      check_cuda(cudaGraphInstantiate(&program, graph, 0));
      check_cuda(cudaGraphLaunch(program, place.stream));
      found.equal(read_device(place.stream, static_cast<const unsigned char*>(target.get()), 4),
                  std::vector<unsigned char>{1, 1, 2, 2}, "the graph has run");
      found.check(used_memory(place.device) > before, "what was in use is kept until here");
      check_releases(place.stream);
      check_cuda(cudaStreamSynchronize(place.stream));
      found.check(used_memory(place.device) < before, "freed, as is what the group had");
      check_cuda(cudaGraphExecDestroy(program));
      check_cuda(cudaGraphDestroy(graph));
      found.check(cudaPeekAtLastError() == cudaSuccess, "no error is left behind");
    });
  }
}

BOOST_AUTO_TEST_CASE(memory_of_a_capture_is_the_graphs) {
  run_group(most_ranks(), [](nccl_communicator& group, findings& found) {
    step s(group);
    s.set_input(3);
    s.run();  // connections are made
    s.check(3, found, "before");
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t program = nullptr;
    check_cuda(cudaStreamBeginCapture(group.stream(), cudaStreamCaptureModeRelaxed));
    {
      const auto memory = group.allocate(count * sizeof(std::int32_t));
      auto* const between = static_cast<std::int32_t*>(memory.get());
      s.copy_elements(between, s.input.data());
      group.broadcast(between, count, group_rank{0});
      s.copy_elements(s.copy.data(), between);
    }
    check_cuda(cudaStreamEndCapture(group.stream(), &graph));
    check_cuda(cudaGraphInstantiate(&program, graph, 0));
    s.set_input(40);
    check_cuda(cudaGraphLaunch(program, group.stream()));
    found.equal(s.copy.values()[1], step::value(40, 0, 1), "sent by the graph");
    check_cuda(cudaGraphExecDestroy(program));
    check_cuda(cudaGraphDestroy(graph));
    found.check(cudaPeekAtLastError() == cudaSuccess, "no error is left behind");
  });
}

BOOST_AUTO_TEST_CASE(wait_is_for_the_callers_work_too) {
  run_group(most_ranks(), [](nccl_communicator& group, findings& found) {
    void* pinned = nullptr;
    check_cuda(cudaMallocHost(&pinned, sizeof(std::int32_t)));
    auto* const number = static_cast<std::int32_t*>(pinned);
    *number = -1;
    group_array<std::int32_t, nccl_communicator> source(group, {77});
    check_cuda(cudaMemcpyAsync(number, source.data(), sizeof *number, cudaMemcpyDeviceToHost,
                               group.stream()));
    group.wait();
    found.equal(*number, 77, "copied");
    check_cuda(cudaFreeHost(pinned));
  });
}

// Two groups with the same ranks on streams of their own do not wait for each other.
BOOST_AUTO_TEST_CASE(groups_on_two_streams) {
  run_ranks(most_ranks(), [](const rank_place& place, findings& found) {
    const rank_stream second;
    nccl_communicator a = make_group(place);
    nccl_communicator b = nccl_communicator::over(a, second, patient_nccl);
    step in_a(a);
    step in_b(b);
    in_a.set_input(11);
    in_b.set_input(22);
    in_a.run();
    in_b.run();
    in_b.check(22, found, "second");
    in_a.check(11, found, "first");
  });
}
