/// \file
/// Two calls timed in turn, so that what else the machine does meets both.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace bench {

/// What a turn says: the fastest of its calls, which other work has not met; or their mean, where
/// the other work is what is measured.
enum class turn_time { fastest, mean };

/// The times of two sides, in seconds: of each the least of all turns.
struct side_times {
  double measured = std::numeric_limits<double>::infinity();
  double floor = std::numeric_limits<double>::infinity();
};

/// Calls f again and again for some time, at least once.
template <class F, class Now>
double time_turn(const F& f, turn_time kind, double seconds, const Now& now) {
  double fastest = std::numeric_limits<double>::infinity();
  double sum = 0;
  int calls = 0;
  while (calls == 0 || sum < seconds) {
    const double start = now();
    f();
    const double took = now() - start;
    fastest = std::min(fastest, took);
    sum += took;
    ++calls;
  }
  return kind == turn_time::fastest ? fastest : sum / calls;
}

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A turn of the floor, then one of what is measured.
/// \param seconds of a turn: short, so that many fall between what else the machine does
/// \returns the seconds that both have taken
template <class Measured, class Floor, class Now>
double take_turns(side_times& times, const Measured& measured, const Floor& floor, turn_time kind,
                  double seconds, const Now& now) {
  const double start = now();
  times.floor = std::min(times.floor, time_turn(floor, kind, seconds, now));
  times.measured = std::min(times.measured, time_turn(measured, kind, seconds, now));
  return now() - start;
}

}  // namespace bench
