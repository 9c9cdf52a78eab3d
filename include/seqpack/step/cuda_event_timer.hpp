/// \file
/// A step timer of a CUDA stream. Needs the CUDA runtime, and no CUDA compiler.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/step/step_timer.hpp"

namespace seqpack {

/// Time that a stream spends in each phase, by events in it. Nothing waits until a time is asked
/// for. The events of phases that were not asked about are kept: ask, or reset, now and then.
class cuda_event_timer {
 public:
  using duration = std::chrono::duration<double>;

  explicit cuda_event_timer(cudaStream_t stream) : stream_(stream) {}
  cuda_event_timer(const cuda_event_timer&) = delete;
  cuda_event_timer& operator=(const cuda_event_timer&) = delete;
  ~cuda_event_timer() { clear(); }

  /// \throws cuda_error
  void start(step_phase phase) {
    span s;
    try {
      check_cuda(cudaEventCreate(&s.begin));
      check_cuda(cudaEventCreate(&s.end));
      check_cuda(cudaEventRecord(s.begin, stream_));
      running_[index(phase)].push_back(s);
    } catch (...) {
      destroy(s);
      throw;
    }
  }
  /// A phase whose end cannot be recorded is not counted.
  void stop(step_phase phase) noexcept {
    auto& running = running_[index(phase)];
    if (running.empty()) return;
    running.back().ended = cudaEventRecord(running.back().end, stream_) == cudaSuccess;
  }

  /// Time in a phase, of all steps so far that have ended, in seconds. Waits for the stream to be
  /// through them.
  /// \throws cuda_error
  duration total(step_phase phase) {
    auto& spans = running_[index(phase)];
    while (!spans.empty() && spans.front().ended) {
      float milliseconds = 0;
      check_cuda(cudaEventSynchronize(spans.front().end));
      check_cuda(cudaEventElapsedTime(&milliseconds, spans.front().begin, spans.front().end));
      spent_[index(phase)] += std::chrono::duration<double, std::milli>(milliseconds);
      ++count_[index(phase)];
      destroy(spans.front());
      spans.pop_front();
    }
    return spent_[index(phase)];
  }
  /// How many phases total() has added up.
  offset_t count(step_phase phase) const noexcept { return count_[index(phase)]; }
  /// From the beginning.
  void reset() {
    clear();
    spent_ = {};
    count_ = {};
  }

 private:
  struct span {
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
    bool ended = false;
  };
  static std::size_t index(step_phase phase) { return static_cast<std::size_t>(phase); }
  static void destroy(const span& s) noexcept {
    if (s.begin != nullptr) cudaEventDestroy(s.begin);
    if (s.end != nullptr) cudaEventDestroy(s.end);
  }
  void clear() noexcept {
    for (auto& spans : running_) {
      for (const span& s : spans) destroy(s);
      spans.clear();
    }
  }

  cudaStream_t stream_;
  std::array<std::deque<span>, step_phases> running_;
  std::array<duration, step_phases> spent_{};
  std::array<offset_t, step_phases> count_{};
};

static_assert(step_timer<cuda_event_timer>);

}  // namespace seqpack
