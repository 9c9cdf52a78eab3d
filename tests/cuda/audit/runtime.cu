// The audit of calls of the CUDA runtime has a test of its own: a known sequence of calls.
#include <dlfcn.h>

#include <boost/test/unit_test.hpp>
#include <thread>
#include <vector>

#include "support/device.cuh"
#include "support/runtime_audit.hpp"

BOOST_AUTO_TEST_SUITE(audit_runtime)

using namespace seqpack::testing;
using seqpack::check_cuda;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

template <int Value>
static __global__ void write(int* to) {
  *to = Value;
}

template <int Value>
void launch(cudaStream_t stream, int* to) {
  write<Value><<<1, 1, 0, stream>>>(to);
  check_cuda(cudaGetLastError());
}

struct memory {
  int* device = nullptr;
  int* pinned = nullptr;
  std::vector<int> pageable = std::vector<int>(16, 3);

  memory() {
    check_cuda(cudaMalloc(&device, 64));
    check_cuda(cudaMallocHost(&pinned, 64));
    *pinned = 4;
  }
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory() {
    cudaFree(device);
    cudaFreeHost(pinned);
  }
};

/// The only call that was found must be this one.
void check_call(const runtime_audit& audit, const recorded_call& expected) {
  const auto& all = audit.found().all;
  BOOST_TEST(audit.found().of_libraries.empty());
  BOOST_TEST_REQUIRE(all.size() == 1U, audit.found().text());
  BOOST_TEST((all[0].what == expected.what), audit.found().text());
  BOOST_TEST((all[0].direction == expected.direction), audit.found().text());
  BOOST_TEST(all[0].has_stream == expected.has_stream);
  BOOST_TEST(all[0].stream == expected.stream);
  BOOST_TEST(all[0].waits == expected.waits, audit.found().text());
  BOOST_TEST(all[0].bytes == expected.bytes);
}

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_that_the_program_calls_is_missed) {
  for (const std::string& name : runtime_audit::unknown_functions()) BOOST_TEST(false, name);
}

BOOST_AUTO_TEST_CASE(launches_and_what_they_write) {
  const test_stream stream;
  const memory m;
  {
    const runtime_audit audit;
    launch<5>(stream, m.device);
    check_call(audit, {.what = runtime_call::launch, .stream = stream, .has_stream = true});
  }
  {
    const runtime_audit audit;
    int* to = m.device + 1;
    void* arguments[] = {&to};
    check_cuda(cudaLaunchKernel(write<6>, 1, 1, arguments, 0, stream));
    check_call(audit, {.what = runtime_call::launch, .stream = stream, .has_stream = true});
  }
  {
    const runtime_audit audit;
    cudaLaunchConfig_t config{};
    config.gridDim = 1;
    config.blockDim = 1;
    config.stream = stream;
    check_cuda(cudaLaunchKernelEx(&config, write<7>, m.device + 2));
    check_call(audit, {.what = runtime_call::launch, .stream = stream, .has_stream = true});
  }
  int found[3];
  check_cuda(cudaMemcpyAsync(found, m.device, sizeof found, cudaMemcpyDeviceToHost, stream));
  stream.wait();
  BOOST_TEST(found[0] == 5);
  BOOST_TEST(found[1] == 6);
  BOOST_TEST(found[2] == 7);
}

BOOST_AUTO_TEST_CASE(copies_by_direction_and_kind_of_memory) {
  const test_stream stream;
  memory m;
  struct direction {
    void* to;
    const void* from;
    copy_kind kind;
    bool waits_in_stream;
    bool waits;
  };
  for (const direction& d : {
           direction{m.device, m.pageable.data(), copy_kind::to_device_pageable, true, true},
           {m.device, m.pinned, copy_kind::to_device_pinned, false, true},
           {m.pageable.data(), m.device, copy_kind::to_host_pageable, true, true},
           {m.pinned, m.device, copy_kind::to_host_pinned, false, true},
           {m.device + 8, m.device, copy_kind::device, false, false},
           {m.pinned, m.pageable.data(), copy_kind::host, true, true},
       }) {
    {
      const runtime_audit in_stream;
      check_cuda(cudaMemcpyAsync(d.to, d.from, 12, cudaMemcpyDefault, stream));
      check_call(in_stream, {.what = runtime_call::copy,
                             .direction = d.kind,
                             .stream = stream,
                             .has_stream = true,
                             .waits = d.waits_in_stream,
                             .bytes = 12});
    }
    stream.wait();
    const runtime_audit blocking;
    check_cuda(cudaMemcpy(d.to, d.from, 8, cudaMemcpyDefault));
    check_call(blocking, {.what = runtime_call::copy,
                          .direction = d.kind,
                          .stream = nullptr,
                          .has_stream = true,
                          .waits = d.waits,
                          .bytes = 8});
  }
  // They copy, too: the 3 to the device, then the 4, which then went everywhere.
  BOOST_TEST(m.pageable[0] == 4);
}

BOOST_AUTO_TEST_CASE(memsets_events_and_queries) {
  const test_stream stream;
  const memory m;
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const auto check = [&](runtime_call what, bool waits, bool has_stream, std::size_t bytes,
                         auto&& call) {
    const runtime_audit audit;
    check_cuda(call());
    check_call(audit, {.what = what,
                       .stream = has_stream ? static_cast<cudaStream_t>(stream) : nullptr,
                       .has_stream = has_stream,
                       .waits = waits,
                       .bytes = bytes});
  };
  check(runtime_call::memset, false, true, 16,
        [&] { return cudaMemsetAsync(m.device, 1, 16, stream); });
  check(runtime_call::record_event, false, true, 0, [&] { return cudaEventRecord(event, stream); });
  check(runtime_call::wait_event, false, true, 0,
        [&] { return cudaStreamWaitEvent(stream, event); });
  check(runtime_call::synchronise, true, true, 0, [&] { return cudaStreamSynchronize(stream); });
  check(runtime_call::query, false, true, 0, [&] { return cudaStreamQuery(stream); });
  check(runtime_call::query, false, false, 0, [&] { return cudaEventQuery(event); });
  check(runtime_call::synchronise, true, false, 0, [&] { return cudaEventSynchronize(event); });
  check(runtime_call::synchronise, true, false, 0, [] { return cudaDeviceSynchronize(); });
  const runtime_audit audit;
  check_cuda(cudaMemset(m.device, 2, 8));
  check_call(audit, {.what = runtime_call::memset, .has_stream = true, .bytes = 8});
  check_cuda(cudaEventDestroy(event));
}

BOOST_AUTO_TEST_CASE(allocations_and_what_gives_them_back) {
  const test_stream stream;
  const auto check = [&](runtime_call what, bool waits, bool has_stream, std::size_t bytes,
                         auto&& call) {
    const runtime_audit audit;
    check_cuda(call());
    check_call(audit, {.what = what,
                       .stream = has_stream ? static_cast<cudaStream_t>(stream) : nullptr,
                       .has_stream = has_stream,
                       .waits = waits,
                       .bytes = bytes});
  };
  void* p = nullptr;
  check(runtime_call::allocate, false, true, 32, [&] { return cudaMallocAsync(&p, 32, stream); });
  check(runtime_call::release, false, true, 0, [&] { return cudaFreeAsync(p, stream); });
  check(runtime_call::allocate_device, false, false, 32, [&] { return cudaMalloc(&p, 32); });
  check(runtime_call::release_device, true, false, 0, [&] { return cudaFree(p); });
  check(runtime_call::release_device, false, false, 0, [] { return cudaFree(nullptr); });
  check(runtime_call::allocate_pinned, true, false, 32, [&] { return cudaMallocHost(&p, 32); });
  check(runtime_call::release_pinned, true, false, 0, [&] { return cudaFreeHost(p); });
  check(runtime_call::allocate_pinned, true, false, 32,
        [&] { return cudaHostAlloc(&p, 32, cudaHostAllocPortable); });
  check(runtime_call::release_pinned, true, false, 0, [&] { return cudaFreeHost(p); });
}

BOOST_AUTO_TEST_CASE(graphs_are_one_call_whatever_is_in_them) {
  const test_stream stream;
  const memory m;
  const captured_call graph(stream, [&] {
    const runtime_audit audit;
    launch<8>(stream, m.device);
    launch<9>(stream, m.device + 1);
    BOOST_TEST(audit.found().count(runtime_call::launch) == 2);
  });
  const runtime_audit audit;
  graph.replay(stream);
  check_call(audit, {.what = runtime_call::graph_launch, .stream = stream, .has_stream = true});
}

BOOST_AUTO_TEST_CASE(another_stream_shows) {
  const test_stream first, second;
  const memory m;
  const runtime_audit audit;
  launch<1>(first, m.device);
  BOOST_TEST(audit.found().all_in(first));
  launch<1>(second, m.device);
  BOOST_TEST(!audit.found().all_in(first));
  BOOST_TEST(!audit.found().all_in(second));
  BOOST_TEST(audit.found().waits() == 0);
  check_cuda(cudaDeviceSynchronize());
  BOOST_TEST(audit.found().waits() == 1);
}

BOOST_AUTO_TEST_CASE(each_audit_sees_its_own_thread_while_it_lives) {
  const test_stream stream;
  const memory m;
  const runtime_audit outer;
  launch<1>(stream, m.device);
  {
    const runtime_audit inner;
    launch<2>(stream, m.device);
    launch<3>(stream, m.device);
    std::thread([&] { launch<4>(stream, m.device); }).join();
    BOOST_TEST(inner.found().count(runtime_call::launch) == 2);
  }
  launch<5>(stream, m.device);
  BOOST_TEST(outer.found().count(runtime_call::launch) == 2);
}

BOOST_AUTO_TEST_CASE(calls_of_other_libraries_are_apart) {
  const runtime_audit audit;
  void* const elsewhere = dlsym(RTLD_DEFAULT, "strlen");
  BOOST_TEST_REQUIRE(elsewhere != nullptr);
  runtime_audit::add({.what = runtime_call::launch}, elsewhere);
  BOOST_TEST(audit.found().all.empty());
  BOOST_TEST(audit.found().of_libraries.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
