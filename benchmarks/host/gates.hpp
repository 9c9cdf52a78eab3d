/// \file
/// Gates: a measured benchmark, the floor beside it, and the largest ratio of their times.
#pragma once

#include <benchmark/benchmark.h>

#include <tbb/parallel_for.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

namespace bench {

/// A ratio to report. Both benchmarks run in the same process, their repetitions interleaved.
struct gate {
  std::string what;
  std::string measured;  ///< name of a benchmark
  std::string floor;     ///< name of the benchmark of the bytes that must move
  double limit;
};

/// All gates, in the order of the table.
inline std::vector<gate>& gates() {
  static std::vector<gate> all;
  return all;
}

/// Registers both benchmarks of a gate.
inline bool add_gate(const std::string& what, const std::string& name,
                     std::function<void(benchmark::State&)> measured,
                     std::function<void(benchmark::State&)> floor, double limit) {
  for (const auto& [suffix, run] : {std::pair{"/seqpack", measured}, std::pair{"/floor", floor}}) {
    benchmark::RegisterBenchmark((name + suffix).c_str(), run)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
  gates().push_back({what, name + "/seqpack", name + "/floor", limit});
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
