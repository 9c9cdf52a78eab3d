/// \file
/// Timers of the phases of a step: none, and the wall clock. NVTX ranges are in
/// seqpack/step/nvtx_timer.hpp, CUDA events in seqpack/step/cuda_event_timer.hpp.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// The phases of a forward step.
enum class step_phase {
  batch_data,  ///< taking the batch, packing and sharding it
  forward      ///< the model
};
/// The number of phases.
inline constexpr std::size_t step_phases = 2;

/// The name of a phase in errors and profiles.
constexpr const char* phase_name(step_phase phase) {
  return phase == step_phase::batch_data ? "batch-data" : "forward";
}

/// A timer of a step: start and stop are called where a phase begins and ends, stop also where it
/// ends with an error. Phases do not overlap.
///
///     struct loud_timer {
///       void start(seqpack::step_phase phase) { std::cout << phase_name(phase) << '\n'; }
///       void stop(seqpack::step_phase) noexcept {}
///     };
template <class T>
concept step_timer = requires(T& timer, step_phase phase) {
  timer.start(phase);
  { timer.stop(phase) } noexcept;
};

/// Measures nothing, and costs nothing.
struct no_timer {
  constexpr void start(step_phase) const noexcept {}
  constexpr void stop(step_phase) const noexcept {}
};

/// Wall-clock time on the host: what the calls take, not what a stream does later.
class wall_clock_timer {
 public:
  using duration = std::chrono::duration<double>;

  void start(step_phase phase) { begun_[index(phase)] = clock::now(); }
  void stop(step_phase phase) noexcept {
    spent_[index(phase)] += clock::now() - begun_[index(phase)];
    ++count_[index(phase)];
  }

  /// Time in a phase, of all steps so far, in seconds.
  duration total(step_phase phase) const noexcept { return spent_[index(phase)]; }
  /// How often the phase has ended.
  offset_t count(step_phase phase) const noexcept { return count_[index(phase)]; }
  /// From the beginning.
  void reset() { *this = {}; }

 private:
  using clock = std::chrono::steady_clock;
  static std::size_t index(step_phase phase) { return static_cast<std::size_t>(phase); }

  std::array<clock::time_point, step_phases> begun_{};
  std::array<duration, step_phases> spent_{};
  std::array<offset_t, step_phases> count_{};
};

/// A phase that lasts as long as the object lives.
template <step_timer Timer>
class timed_phase {
 public:
  timed_phase(Timer& timer, step_phase phase) : timer_(timer), phase_(phase) {
    timer_.start(phase_);
  }
  timed_phase(const timed_phase&) = delete;
  timed_phase& operator=(const timed_phase&) = delete;
  ~timed_phase() { timer_.stop(phase_); }

 private:
  Timer& timer_;
  step_phase phase_;
};

}  // namespace seqpack
