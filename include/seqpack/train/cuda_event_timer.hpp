/// \file
/// A step timer of a CUDA stream. Needs the CUDA runtime, and no CUDA compiler.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/train/step_timer.hpp"

namespace seqpack {

/// Time that a stream spends in each phase, by events in it. Nothing waits until a time is asked
/// for. The events of phases that were not asked about are kept: ask, or reset, now and then.
class cuda_event_timer {
 public:
  using duration = std::chrono::duration<double>;

  explicit cuda_event_timer(cudaStream_t stream) : stream_(stream) {}
  cuda_event_timer(const cuda_event_timer&) = delete;
  cuda_event_timer& operator=(const cuda_event_timer&) = delete;
  ~cuda_event_timer() {
    for (auto& phase : open_) destroy(phase);
  }

  /// \throws cuda_error
  void start(step_phase phase) {
    span s;
    check_cuda(cudaEventCreate(&s.begin));
    open_[index(phase)].push_back(s);
    check_cuda(cudaEventCreate(&open_[index(phase)].back().end));
    check_cuda(cudaEventRecord(s.begin, stream_));
  }
  /// A failure shows when the time is asked for.
  void stop(step_phase phase) noexcept {
    if (!open_[index(phase)].empty()) cudaEventRecord(open_[index(phase)].back().end, stream_);
  }

  /// Time in a phase, of all steps so far, in seconds. Waits for the stream to be through them.
  /// \throws cuda_error
  duration total(step_phase phase) {
    auto& spans = open_[index(phase)];
    for (const span& s : spans) {
      float milliseconds = 0;
      check_cuda(cudaEventSynchronize(s.end));
      check_cuda(cudaEventElapsedTime(&milliseconds, s.begin, s.end));
      spent_[index(phase)] += std::chrono::duration<double, std::milli>(milliseconds);
      ++count_[index(phase)];
    }
    destroy(spans);
    return spent_[index(phase)];
  }
  /// How many phases total() has added up.
  offset_t count(step_phase phase) const noexcept { return count_[index(phase)]; }
  /// From the beginning.
  void reset() {
    for (auto& phase : open_) destroy(phase);
    spent_ = {};
    count_ = {};
  }

 private:
  struct span {
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
  };
  static std::size_t index(step_phase phase) { return static_cast<std::size_t>(phase); }
  static void destroy(std::vector<span>& spans) noexcept {
    for (const span& s : spans) {
      if (s.begin != nullptr) cudaEventDestroy(s.begin);
      if (s.end != nullptr) cudaEventDestroy(s.end);
    }
    spans.clear();
  }

  cudaStream_t stream_;
  std::array<std::vector<span>, step_phases> open_;
  std::array<duration, step_phases> spent_{};
  std::array<offset_t, step_phases> count_{};
};

static_assert(step_timer<cuda_event_timer>);

}  // namespace seqpack
