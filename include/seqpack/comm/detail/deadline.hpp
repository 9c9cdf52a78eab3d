/// \file
/// Waiting with a deadline.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "seqpack/core/error.hpp"

namespace seqpack::detail {

/// \throws invalid_input for a deadline that is not positive.
inline void require_deadline(std::chrono::milliseconds deadline) {
  if (deadline.count() <= 0) {
    reject("deadline", std::to_string(deadline.count()) + " ms", "it must be positive");
  }
}

/// Polls until done() says so.
/// \returns whether it did before the deadline passed.
///
/// It polls some times without a break, for latency, then gives way to others between the polls; in
/// the end it sleeps, so that more ranks than cores do not starve each other.
template <class Done>
bool wait_until(std::chrono::milliseconds deadline, const Done& done) {
  using clock = std::chrono::steady_clock;
  constexpr int polls_at_first = 64;  // a few microseconds
  constexpr std::chrono::microseconds spin(2000);
  constexpr std::chrono::microseconds nap(50);
  for (int k = 0; k < polls_at_first; ++k) {
    if (done()) return true;
  }
  const auto start = clock::now();
  for (;;) {
    if (done()) return true;
    const auto waited = clock::now() - start;
    // In milliseconds: the longest deadline that there is has no number of nanoseconds.
    if (std::chrono::duration_cast<std::chrono::milliseconds>(waited) >= deadline) return done();
    if (waited < spin) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(nap);
    }
  }
}

}  // namespace seqpack::detail
