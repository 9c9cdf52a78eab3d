/// \file
/// Allocation and release in the order of a stream, and what has not been freed yet. Needs the headers of
/// the CUDA toolkit, but no CUDA compiler.
// For the folders above too.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "seqpack/core/source_location.hpp"
#include "seqpack/exec/cuda_error.hpp"

namespace seqpack::detail::releasing {

/// Lets a thread make the calls, for as long as the object lives, that could disturb the captures
/// of others.
class relaxed_capture {
 public:
  relaxed_capture() noexcept { cudaThreadExchangeStreamCaptureMode(&mode_); }
  relaxed_capture(const relaxed_capture&) = delete;
  relaxed_capture& operator=(const relaxed_capture&) = delete;
  ~relaxed_capture() { cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// The capture that a stream is in, if any.
struct stream_capture {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaError_t code = cudaSuccess;

  explicit stream_capture(cudaStream_t stream) noexcept {
    code = cudaStreamGetCaptureInfo(stream, &status, &id);
    detail::forget(code);
  }
  bool is_active() const noexcept {
    return code == cudaSuccess && status == cudaStreamCaptureStatusActive;
  }
  /// Nothing but what a capture itself has allocated can be freed in the stream now. For the legacy
  /// stream, the capture may be that of another one.
  bool holds_up() const noexcept {
    return detail::is_of_capture(code) ||
           (code == cudaSuccess && status != cudaStreamCaptureStatusNone);
  }
};

/// What the process has not freed yet: memory that was given back during a capture of its stream,
/// and could not be recorded there, since a graph frees only what it has allocated; and memory that
/// could not be freed at all, of which the next call on the same stream tells.
class open_releases {
 public:
  /// Never destroyed: memory is given back until the process ends.
  static open_releases& of_process() {
    static open_releases& all = *new open_releases;
    return all;
  }

  /// The memory is a graph's own, which the capture with this number makes.
  void add_to_graph(void* memory, unsigned long long capture) {
    const std::lock_guard lock(mutex_);
    of_graphs_.insert_or_assign(memory, capture);
    in_graphs_ = of_graphs_.size();
  }
  /// \returns the capture that the memory was allocated in, 0 for none, and forgets it.
  unsigned long long take_from_graph(void* memory) noexcept {
    if (in_graphs_ == 0) return 0;
    const std::lock_guard lock(mutex_);
    const auto found = of_graphs_.find(memory);
    if (found == of_graphs_.end()) return 0;
    const unsigned long long capture = found->second;
    of_graphs_.erase(found);
    in_graphs_ = of_graphs_.size();
    return capture;
  }

  /// Frees the memory as soon as a call on the stream finds it free of captures. Memory of a graph
  /// that was never launched is none, and no failure.
  void hold(void* memory, cudaStream_t stream, bool of_graph) noexcept {
    add({location_of(stream), memory, cudaSuccess, {}, of_graph});
  }
  void add_failure(cudaError_t code, cudaStream_t stream, source_location where) noexcept {
    add({location_of(stream), nullptr, code, where, false});
  }
  /// For memory of the host, which belongs to no stream.
  void add_host_failure(cudaError_t code, source_location where) noexcept {
    add({{}, nullptr, code, where, false});
  }

  /// Frees what is held for a stream that is not being captured any more.
  void free_held(cudaStream_t stream) noexcept {
    if (open_ == 0) return;
    const location here = location_of(stream);
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](entry& e) {
      if (e.memory == nullptr || e.at != here) return false;
      const source_location where = source_location::current();
      const cudaError_t code = cudaFreeAsync(std::exchange(e.memory, nullptr), stream);
      detail::forget(code);
      e.code = code;
      e.where = where;
      return code == cudaSuccess || e.of_graph;
    });
    open_ = entries_.size() + lost_;
  }

  /// \throws cuda_error for the first release on the stream that failed since it was asked last.
  void check(cudaStream_t stream) {
    if (open_ > 0) check_at(location_of(stream));
  }
  void check_host() {
    if (open_ > 0) check_at({});
  }

 private:
  /// A stream has a device; the legacy ones have one handle for all devices.
  struct location {
    cudaStream_t stream = nullptr;
    int device = -1;
    friend bool operator==(const location&, const location&) = default;
  };
  struct entry {
    location at;
    void* memory = nullptr;  ///< held, or null where a release has failed
    cudaError_t code = cudaSuccess;
    source_location where;
    bool of_graph = false;
  };

  static location location_of(cudaStream_t stream) noexcept {
    location here{stream, 0};
    detail::forget(cudaGetDevice(&here.device));
    return here;
  }
  void add(const entry& e) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      entries_.push_back(e);
    } catch (const std::bad_alloc&) {
      ++lost_;  // the next call that checks any stream throws
    }
    open_ = entries_.size() + lost_;
  }
  void check_at(const location& here) {
    const std::lock_guard lock(mutex_);
    entry first;
    const auto failed = [&](const entry& e) { return e.memory == nullptr && e.at == here; };
    for (const entry& e : entries_) {
      if (failed(e) && first.code == cudaSuccess) first = e;
    }
    std::erase_if(entries_, failed);
    if (std::exchange(lost_, 0) > 0 && first.code == cudaSuccess) {
      first.code = cudaErrorMemoryAllocation;
    }
    open_ = entries_.size();
    if (first.code != cudaSuccess) {
      throw cuda_error(first.code, "memory that was given back before could not be freed",
                       first.where);
    }
  }

  std::mutex mutex_;
  std::vector<entry> entries_;
  std::unordered_map<void*, unsigned long long> of_graphs_;
  std::size_t lost_ = 0;
  std::atomic<std::size_t> open_ = 0;
  std::atomic<std::size_t> in_graphs_ = 0;
};

/// Allocates with `call(&memory)`, in the order of the stream, and frees what is held for it.
template <class Call>
void* allocate(cudaStream_t stream, const Call& call, source_location where) {
  open_releases& open = open_releases::of_process();
  const stream_capture now(stream);
  if (!now.holds_up()) open.free_held(stream);
  void* memory = nullptr;
  const cudaError_t code = call(&memory);
  detail::forget(code);
  check_cuda(code, where);
  if (!now.is_active() || memory == nullptr) {
    open.take_from_graph(memory);  // of a graph that is gone, whose address this is now
    return memory;
  }
  try {
    open.add_to_graph(memory, now.id);
  } catch (...) {
    cudaFreeAsync(memory, stream);
    throw;
  }
  return memory;
}

/// Frees what allocate() gave, in the order of the stream; at once, or as soon as a capture of the
/// stream is over.
inline void release(void* memory, cudaStream_t stream) noexcept {
  open_releases& open = open_releases::of_process();
  const stream_capture now(stream);
  const unsigned long long capture = open.take_from_graph(memory);
  if (now.holds_up()) {
    const bool of_this = capture != 0 && capture == now.id;
    if (of_this && !now.is_active()) return;  // the graph is not made, and has no memory
    if (!of_this) return open.hold(memory, stream, capture != 0);
  } else {
    open.free_held(stream);
  }
  const cudaError_t code = cudaFreeAsync(memory, stream);
  detail::forget(code);
  // A graph that was never launched has nothing that could be freed.
  if (code != cudaSuccess && capture == 0)
    open.add_failure(code, stream, source_location::current());
}

}  // namespace seqpack::detail::releasing
