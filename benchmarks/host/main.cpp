// Runs all host benchmarks with interleaved repetitions and prints one table: gate, measured,
// limit.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "gates.hpp"

namespace {

/// Keeps the time of every repetition, in milliseconds.
class collector : public benchmark::ConsoleReporter {
 public:
  collector() : ConsoleReporter(OO_Tabular) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Iteration) {
        times_[run.run_name.function_name].push_back(run.GetAdjustedRealTime());
      }
    }
  }

  /// The fastest repetition: what the code costs when nothing else runs. 0 if there is none.
  double fastest(const std::string& name) const {
    const auto found = times_.find(name);
    return found == times_.end() ? 0
                                 : *std::min_element(found->second.begin(), found->second.end());
  }

 private:
  std::map<std::string, std::vector<double>> times_;
};

/// \returns whether every gate that was measured is met.
bool print_table(const collector& results) {
  bool all_met = true;
  std::printf("\n| gate | seqpack | floor | measured | limit | |\n|---|--:|--:|--:|--:|---|\n");
  for (const bench::gate& gate : bench::gates()) {
    const double measured = results.fastest(gate.measured);
    const double floor = results.fastest(gate.floor);
    if (measured == 0 || floor == 0) continue;
    const double ratio = measured / floor;
    all_met = all_met && ratio <= gate.limit;
    std::printf("| %s | %.3f ms | %.3f ms | %.2f | %.2f | %s |\n", gate.what.c_str(), measured,
                floor, ratio, gate.limit, ratio <= gate.limit ? "met" : "missed");
  }
  return all_met;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  std::string repetitions = "--benchmark_repetitions=9";
  arguments.insert(arguments.begin() + 1, {interleave.data(), repetitions.data()});
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  collector results;
  benchmark::RunSpecifiedBenchmarks(&results);
  print_table(results);
}
