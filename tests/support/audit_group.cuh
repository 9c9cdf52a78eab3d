/// \file
/// Collective calls on streams against the list of what they cost, and captured against eager.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "support/audit.cuh"
#include "support/nccl.hpp"

namespace seqpack::testing {

/// Sizes of groups that the audit goes through.
inline std::vector<int> audited_groups() {
  std::vector<int> sizes;
  for (const offset_t n : audited_ranks) {
    if (n <= most_ranks()) sizes.push_back(static_cast<int>(n));
  }
  return sizes;
}

/// audited_call for one rank of several.
template <class Call>
decltype(auto) audited_call(std::string_view name, cudaStream_t stream, findings& found,
                            const Call& call) {
  const auto check = [&](const runtime_calls& calls) {
    const std::string wrong = differences(name, calls, stream);
    found.check(wrong.empty(), wrong);
  };
  const runtime_audit audit;
  if constexpr (std::is_void_v<std::invoke_result_t<const Call&>>) {
    call();
    check(audit.found());
  } else {
    auto result = call();
    check(audit.found());
    return result;
  }
}

/// check_replay for one rank of several, all of which make it.
template <class Call, class Change, class T>
void check_replay(const char* name, nccl_communicator& group, findings& found, const Call& call,
                  const Change& change, const device_array<T>& output) {
  const cudaStream_t stream = group.stream();
  const auto read = [&] {
    group.wait();
    found.check(output.guards_intact(), std::string(name) + ": written outside");
    auto all = bytes_of_array(output);
    poison(output);
    return all;
  };
  audited_calls::add(audited_as::captured, cost_of(name).call);
  change(0);
  call();  // connections are made
  auto before = read();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t program = nullptr;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  call();
  check_cuda(cudaStreamEndCapture(stream, &graph));
  check_cuda(cudaGraphInstantiate(&program, graph, 0));
  for (int round = 1; round <= 3; ++round) {
    change(round);
    check_cuda(cudaGraphLaunch(program, stream));
    const auto replayed = read();
    call();
    found.check(read() == replayed, std::string(name) + ": a replay is not what is eager");
    found.check(replayed != before, std::string(name) + ": a replay has not changed");
    before = replayed;
  }
  check_cuda(cudaGraphExecDestroy(program));
  check_cuda(cudaGraphDestroy(graph));
}

/// check_captured for one rank of several, all of which make it.
template <class Call>
void check_captured(const char* name, nccl_communicator& group, findings& found, const Call& call) {
  const call_cost& cost = cost_of(name);
  audited_calls::add(audited_as::captured, cost.call);
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamBeginCapture(group.stream(), cudaStreamCaptureModeRelaxed));
  {
    const runtime_audit audit;
    call();
    found.equal(audit.found().count(runtime_call::launch), cost.launches, name);
    found.equal(audit.found().waits(), 0, std::string(name) + ": waits in a capture");
  }
  check_cuda(cudaStreamEndCapture(group.stream(), &graph));
  check_cuda(cudaGraphDestroy(graph));
}

/// check_refused for one rank of several.
template <class Call>
void check_refused(const char* name, nccl_communicator& group, findings& found, const Call& call) {
  audited_calls::add(audited_as::refused, cost_of(name).call);
  check_cuda(cudaStreamBeginCapture(group.stream(), cudaStreamCaptureModeRelaxed));
  found.throws<cuda_error>(call, "cudaErrorStreamCaptureUnsupported", name, true);
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamEndCapture(group.stream(), &graph));
  check_cuda(cudaGraphDestroy(graph));
}

/// Most rows of these need several ranks, each with a device.
inline void require_all_measured_by_ranks(std::string_view source) {
  if (most_ranks() > 1) {
    require_all_measured(source);
  } else {
    BOOST_TEST_MESSAGE("one device: what several ranks do was not measured");
  }
}

}  // namespace seqpack::testing
