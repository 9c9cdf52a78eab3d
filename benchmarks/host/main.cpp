// Runs all host benchmarks and prints one table: gate, measured, limit. The exit status is 1 where a
// gate is missed.
//
// Gates on a time itself show the time allowed as their floor, and a limit of 1.
//
// Each benchmark times both sides of a gate in short turns, of which the fastest counts, so that what
// else the machine does meets both, and mostly neither. --quick is one turn of each, to see that it
// works; it judges nothing.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

#include "../table.hpp"
#include "gates.hpp"

namespace {

void run(benchmark::State& state, bench::gate& gate, bool quick) {
  const bool mean = gate.kind == bench::turn_time::mean;
  const double seconds = quick ? 0 : mean ? 0.25 : 0.01;  // of a turn
  const auto floor = gate.floor();
  const auto measured = gate.measured();
  for (auto _ : state) {
    state.SetIterationTime(
        bench::take_turns(gate.times, measured, floor, gate.kind, seconds, bench::steady_seconds));
  }
  if (gate.most_ms > 0) gate.times.floor = gate.most_ms * 1e-3;
  state.counters["seqpack_ms"] = gate.times.measured * 1e3;
  state.counters["floor_ms"] = gate.times.floor * 1e3;
}

void register_all(bool quick) {
  for (bench::gate& gate : bench::gates()) {
    auto* const registered = benchmark::RegisterBenchmark(
        gate.name.c_str(), [&gate, quick](benchmark::State& state) { run(state, gate, quick); });
    registered->UseManualTime()->Unit(benchmark::kMillisecond);
    if (quick) {
      registered->Iterations(1);
    } else {
      registered->MinTime(gate.seconds);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const bool quick = argc == 2 && std::string_view(argv[1]) == "--quick";
  if (!quick && benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  register_all(quick);
  benchmark::RunSpecifiedBenchmarks();
  bench::table table(!quick);
  std::puts("");
  table.print_header();
  for (const bench::gate& gate : bench::gates()) {
    if (std::isinf(gate.times.measured)) continue;  // left out by a filter
    table.print({gate.what, gate.times.measured * 1e3, gate.times.floor * 1e3, gate.limit});
  }
  return table.status();
}
