/// \file
/// Gates: a measured call, the floor beside it, and the largest ratio of their times.
#pragma once

#include <tbb/parallel_for.h>

#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../alternate.hpp"

namespace bench {

/// Makes what a call works on, and returns the call.
using maker = std::function<std::function<void()>()>;

/// A ratio to report. Both calls are timed in turn.
struct gate {
  std::string what;
  std::string name;  ///< of the benchmark
  maker measured;
  maker floor;  ///< the bytes that must move
  double limit;
  turn_time kind;
  double seconds;      ///< of all turns, about
  double most_ms = 0;  ///< above 0: there is no floor to time, and this is the time allowed
  side_times times = {};
};

/// All gates, in the order of the table.
inline std::vector<gate>& gates() {
  static std::vector<gate> all;
  return all;
}

/// \param seconds more for calls of many milliseconds, which other work is more likely to meet
inline bool add_gate(const std::string& what, const std::string& name, maker measured, maker floor,
                     double limit, turn_time kind = turn_time::fastest, double seconds = 2) {
  gates().push_back({what, name, std::move(measured), std::move(floor), limit, kind, seconds});
  return true;
}

/// A gate on the time itself: the call takes at most so many milliseconds.
inline bool add_time_gate(const std::string& what, const std::string& name, maker measured,
                          double most_ms, double seconds = 2) {
  const auto nothing = [] { return [] {}; };
  gates().push_back(
      {what, name, std::move(measured), nothing, 1.0, turn_time::fastest, seconds, most_ms});
  return true;
}

/// f(0) to f(pieces - 1), as the library's own threads would run them.
template <class F>
void in_parallel(std::size_t pieces, const F& f) {
  tbb::parallel_for(std::size_t{0}, pieces, f);
}

/// Lengths as batches have them: uniform between a quarter of the width and the width.
inline std::vector<int> random_lengths(std::size_t count, int width) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> length(width / 4, width);
  std::vector<int> result(count);
  for (int& l : result) l = length(random);
  return result;
}

}  // namespace bench
