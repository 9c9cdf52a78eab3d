/// \file
/// Calls on a stream against the list of what they cost, and captured against eager.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "seqpack/core/error.hpp"
#include "seqpack/exec/cuda.cuh"
#include "seqpack/layout/layout.hpp"
#include "support/audited_calls.hpp"
#include "support/device.cuh"
#include "support/runtime_audit.hpp"

namespace seqpack::testing {

/// What the list says of a call.
inline const call_cost& cost_of(std::string_view call) {
  for (const audited_program& program : audited_programs) {
    for (const call_cost& cost : program.calls) {
      if (cost.call == call) return cost;
    }
  }
  throw std::logic_error("no such call in the list: " + std::string(call));
}

/// What this program has seen of the calls of the list.
enum class audited_as { measured, captured, refused };
class audited_calls {
 public:
  static void add(audited_as what, std::string_view call) {
    const std::scoped_lock lock(mutex());
    calls().emplace(what, call);
  }
  static bool contains(audited_as what, std::string_view call) {
    const std::scoped_lock lock(mutex());
    return calls().contains({what, call});
  }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::set<std::pair<audited_as, std::string_view>>& calls() {
    static std::set<std::pair<audited_as, std::string_view>> all;
    return all;
  }
};

/// The list's form of what was measured.
inline call_cost as_cost(const call_cost& expected, const runtime_calls& found) {
  return {
      .call = expected.call,
      .launches = found.count(runtime_call::launch),
      .memsets = found.count(runtime_call::memset),
      .to_device_pinned = found.count(copy_kind::to_device_pinned),
      .to_device_pageable = found.count(copy_kind::to_device_pageable),
      .to_host = found.count(copy_kind::to_host_pinned) + found.count(copy_kind::to_host_pageable),
      .allocations = found.count(runtime_call::allocate),
      .waits = found.waits(),
      .polls = found.polls(),
      .captured = expected.captured};
}

/// What is wrong with what a call has asked of the runtime; nothing, if all is as the list has it.
inline std::string differences(std::string_view call, const runtime_calls& found,
                               cudaStream_t stream) {
  const call_cost& expected = cost_of(call);
  audited_calls::add(audited_as::measured, expected.call);
  const call_cost measured = as_cost(expected, found);
  std::string wrong;
  if (measured != expected) {
    wrong += "\nexpected " + table_row(expected) + "\nmeasured " + table_row(measured) + "\n";
  }
  if (!found.all_in(stream)) wrong += "\na call in another stream\n";
  const auto nowhere = [&](int count, const char* what) {
    if (count > 0) wrong += "\n" + std::to_string(count) + " " + what + "\n";
  };
  nowhere(found.count(copy_kind::device), "copies on the device");
  nowhere(found.count(copy_kind::host), "copies on the host");
  nowhere(found.count(runtime_call::graph_launch), "graphs");
  nowhere(found.count(runtime_call::host_function), "host functions");
  nowhere(found.count(runtime_call::allocate_device), "allocations outside of streams");
  nowhere(found.count(runtime_call::release_device), "releases outside of streams");
  nowhere(found.count(runtime_call::allocate_pinned), "allocations of pinned memory");
  nowhere(found.count(runtime_call::release_pinned), "releases of pinned memory");
  nowhere(found.count(runtime_call::allocate_managed), "allocations of managed memory");
  // Behind each copy through pinned memory one says when that may be used again.
  nowhere(found.count(runtime_call::record_event) - found.count(copy_kind::to_device_pinned) -
              found.count(copy_kind::to_host_pinned),
          "events that no pinned copy needs");
  nowhere(found.count(runtime_call::wait_event), "waits for events");
  if (found.count(runtime_call::release) > found.count(runtime_call::allocate)) {
    wrong += "\nreleases of memory that it has not allocated\n";
  }
  return wrong.empty() ? wrong : std::string(call) + ": " + wrong + found.text();
}

/// Small pinned memory is there from now on: that a pool grows is not what a call costs.
inline void warm_pinned_memory(cudaStream_t stream) {
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &capturing));
  if (capturing != cudaStreamCaptureStatusNone) return;  // where it is not used
  constexpr process_pinned_memory pool;
  pool.deallocate_async(pool.allocate_async(1, 1, stream), 1, 1, stream);
  check_cuda(cudaStreamSynchronize(stream));
}

/// Makes a call, and compares what it asks of the runtime with the list.
/// \returns what the call returns
template <class Call>
decltype(auto) audited_call(std::string_view name, cudaStream_t stream, Call&& call) {
  const auto check = [&](const runtime_calls& found) {
    const std::string wrong = differences(name, found, stream);
    BOOST_TEST(wrong.empty(), wrong);
  };
  warm_pinned_memory(stream);
  if constexpr (std::is_void_v<std::invoke_result_t<Call&>>) {
    runtime_audit audit;
    call();
    check(audit.found());
  } else {
    runtime_audit audit;
    auto result = call();
    check(audit.found());
    return result;
  }
}

/// Every call that the list gives to this program has been measured, and captured or refused in a
/// capture, as the list says. The last test of each.
inline void require_all_measured(std::string_view source) {
  const auto program = std::ranges::find(audited_programs, source, &audited_program::source);
  BOOST_TEST_REQUIRE((program != audited_programs.end()));
  for (const call_cost& cost : program->calls) {
    const auto seen = [&](audited_as what) { return audited_calls::contains(what, cost.call); };
    BOOST_TEST(seen(audited_as::measured), cost.call << " was not measured");
    BOOST_TEST(seen(audited_as::captured) == (cost.captured == capture::yes),
               cost.call << " was not captured, or is not listed as that");
    BOOST_TEST(seen(audited_as::refused) == (cost.captured == capture::refused),
               cost.call << " was not refused in a capture, or is not listed as that");
  }
}

/// Elements that nobody has written.
template <class T>
void poison(const device_array<T>& array) {
  check_cuda(cudaMemset(array.data(), 0xA5, array.size() * sizeof(T)));
  check_cuda(cudaDeviceSynchronize());
}

template <class T>
std::vector<unsigned char> bytes_of_array(const device_array<T>& array) {
  std::vector<unsigned char> result(array.size() * sizeof(T));
  check_cuda(cudaMemcpy(result.data(), array.data(), result.size(), cudaMemcpyDeviceToHost));
  return result;
}

/// A call of the list, with what a test captures behind it.
struct captured_name {
  std::string_view call;
  int further_launches = 0;

  constexpr captured_name(const char* name, int further = 0)
      : call(name), further_launches(further) {}
};

/// Captures a call of which nothing is seen afterwards but the kernels and memsets in the graph.
template <class Call>
void check_captured(const captured_name& name, const test_stream& stream, const Call& call) {
  const call_cost& cost = cost_of(name.call);
  audited_calls::add(audited_as::captured, cost.call);
  const captured_call graph(stream, call);
  BOOST_TEST(graph.launches == cost.launches + name.further_launches,
             name.call << ": kernels in the graph");
  BOOST_TEST(graph.memsets == cost.memsets, name.call << ": memsets in the graph");
}

/// Captures a call, and replays it with other values in the same memory: each time the outputs are
/// those of the call made eagerly, and not those of the time before.
/// \param change sets the inputs for a round
/// \param outputs written by the call
template <class Call, class Change, class... T>
void check_replay(const captured_name& name, const test_stream& stream, const Call& call,
                  const Change& change, const device_array<T>&... outputs) {
  const call_cost& cost = cost_of(name.call);
  audited_calls::add(audited_as::captured, cost.call);
  const auto read = [&] {
    stream.wait();
    BOOST_TEST((outputs.guards_intact() && ...));
    std::vector<unsigned char> all;
    const auto add = [&](const std::vector<unsigned char>& bytes) {
      all.insert(all.end(), bytes.begin(), bytes.end());
    };
    (add(bytes_of_array(outputs)), ...);
    (poison(outputs), ...);
    return all;
  };
  change(0);
  stream.wait();
  (poison(outputs), ...);
  std::vector<unsigned char> before = read();
  const captured_call graph(stream, call);
  BOOST_TEST(graph.launches == cost.launches + name.further_launches,
             name.call << ": kernels in the graph");
  BOOST_TEST(graph.memsets == cost.memsets, name.call << ": memsets in the graph");
  BOOST_TEST((read() == before), name.call << ": a capture does nothing");
  for (int round = 1; round <= 3; ++round) {
    change(round);
    stream.wait();
    graph.replay(stream);
    const std::vector<unsigned char> replayed = read();
    call();
    BOOST_TEST((read() == replayed), name.call << ": replay " << round << " is not what is eager");
    BOOST_TEST((replayed != before), name.call << ": replay " << round << " has not changed");
    before = replayed;
  }
}

/// A call that may not be captured throws, with the stream as it was.
template <class Call>
void check_refused(std::string_view name, cudaStream_t stream, const Call& call) {
  audited_calls::add(audited_as::refused, cost_of(name).call);
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  bool refused = false;
  try {
    call();
  } catch (const cuda_error&) {
    refused = true;
  } catch (const invalid_input&) {
    refused = true;
  }
  BOOST_TEST(refused, name << " may not be captured, and does not say so");
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream, &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
  check_cuda(cudaStreamSynchronize(stream));
}

/// Numbers of sequences and of context-parallel ranks that calls are made with.
inline constexpr int audited_batches[] = {1, 64, 1000};
inline constexpr offset_t audited_ranks[] = {1, 2, 4};

/// Lengths from 0 to `longest`, other ones for each round.
inline std::vector<int> audit_lengths(int batch, int longest, int round = 0) {
  std::vector<int> lengths;
  for (int b = 0; b < batch; ++b) lengths.push_back((b * 5 + round * 3 + 4) % (longest + 1));
  return lengths;
}

/// A view of a layout on the device whose lengths can be set anew in the same memory: padded to
/// multiples of 8, to a total that always suffices, which the last sequence takes.
class changing_layout {
  using padding_type = padding<each_multiple_of<>, fixed_total<>, absorb_tail>;
  using cp_type = context_parallel<dynamic, zigzag>;

 public:
  static constexpr int longest = 6;
  using view_type = layout_view<cp_type>;

  changing_layout(int batch, offset_t cp)
      : batch_(batch),
        policy_(each_multiple_of<>{8}, fixed_total<>{8 * (batch + 1)}, absorb_tail{}),
        cp_(cp),
        cu_(static_cast<std::size_t>(batch) + 1),
        cu_padded_(static_cast<std::size_t>(batch) + 1) {
    set(0);
  }

  /// Other lengths.
  void set(int round) {
    const auto layout = on_host(round);
    const auto view = layout.view();
    cu_.upload({view.cu, view.cu + batch_ + 1});
    cu_padded_.upload({view.cu_padded, view.cu_padded + batch_ + 1});
    view_ = view;
    view_.cu = cu_.data();
    view_.cu_padded = cu_padded_.data();
    view_.longest = longest;
    view_.longest_padded = view_.total;
    view_.padded = true;
  }
  packed_layout<cp_type> on_host(int round) const {
    return make_layout(audit_lengths(batch_, longest, round), policy_, cp_);
  }

  const view_type& view() const { return view_; }
  offset_t batch() const { return batch_; }
  offset_t total() const { return view_.total; }
  offset_t shard_tokens() const { return view_.shard_tokens(); }
  /// Elements of a batch.
  std::size_t positions(offset_t payload = 1) const {
    return static_cast<std::size_t>(batch_ * longest * payload);
  }
  std::size_t rows(offset_t payload = 1) const {
    return static_cast<std::size_t>(total() * payload);
  }
  std::size_t shard_rows(offset_t payload = 1) const {
    return static_cast<std::size_t>(shard_tokens() * payload);
  }

 private:
  int batch_;
  padding_type policy_;
  cp_type cp_;
  device_array<std::int32_t> cu_;
  device_array<std::int32_t> cu_padded_;
  view_type view_{};
};

/// Elements that are different, and other ones for each round.
template <class T>
std::vector<T> audit_values(std::size_t count, int round, int modulus = 120) {
  std::vector<T> values(count);
  for (std::size_t k = 0; k < count; ++k) {
    values[k] = static_cast<T>(static_cast<int>((k * 11 + static_cast<std::size_t>(round) * 37) %
                                                static_cast<std::size_t>(modulus)));
  }
  return values;
}
template <class T>
void set_values(device_array<T>& array, int round, int modulus = 120) {
  array.upload(audit_values<T>(array.size(), round, modulus));
}

/// A fill that depends on the column.
struct column_number {
  SEQPACK_HD offset_t operator()(offset_t column) const { return column; }
};

/// Memory of the device that is so large that nothing ever touches it: an address for calls that
/// are captured and not launched.
template <class T>
T* untouched_memory(int k) {
  return reinterpret_cast<T*>((static_cast<std::uintptr_t>(k) + 1) << 44);
}

}  // namespace seqpack::testing
