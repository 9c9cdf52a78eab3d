// broadcast_tensor of bytes over MPI, against bare calls of MPI on the same bytes. Run by mpirun;
// rank 0 prints the rows of the table. The exit status is 1 where a gate is missed; --quick judges
// nothing.
//
// Both sides are timed in turn inside of one benchmark: what the machine does meanwhile meets both.
// A time is the fastest of all turns, of the slowest rank.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../table.hpp"
#include "seqpack/comm/broadcast.hpp"
#include "seqpack/comm/mpi.hpp"

namespace {

using namespace seqpack;

struct broadcast_case {
  std::string size;
  offset_t bytes;
  int calls;  ///< in one turn, so that a clock can see them
  int turns;
  double limit;        ///< 0: no gate
  int broadcasts = 1;  ///< of the bytes, in the floor
  int gathers = 0;     ///< of 256 bytes of each rank, in the floor

  std::string floor() const {
    return (broadcasts > 1 ? std::to_string(broadcasts) + " " : "") + "MPI_Bcast" +
           (gathers > 0 ? " + MPI_Allgather" : "");
  }
  std::string name() const { return size + " against " + floor(); }
};

constexpr offset_t kib = 1024;
constexpr offset_t mib = 1024 * kib;
const std::vector<broadcast_case> cases{
    {"1 KiB", kib, 200, 200, 1.0, 2, 1},
    {"1 KiB", kib, 200, 200, 0, 1, 1},
    {"16 KiB", 16 * kib, 100, 100, 0},
    {"256 KiB", 256 * kib, 20, 50, 0},
    {"1 MiB", mib, 5, 50, 0},
    {"16 MiB", 16 * mib, 1, 30, 0},
    {"64 MiB", 64 * mib, 1, 25, 1.05},
    {"256 MiB", 256 * mib, 1, 15, 1.05},
    {"1 GiB", 1024 * mib, 1, 9, 1.05},
};

/// Seconds that a number of calls take, on the slowest rank.
template <class F>
double seconds(int calls, const F& f) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int k = 0; k < calls; ++k) f();
  const double mine = MPI_Wtime() - start;
  double slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

void broadcast(benchmark::State& state, const broadcast_case& c) {
  auto world = mpi_communicator::duplicate(MPI_COMM_WORLD);
  std::vector<std::uint8_t> data(static_cast<std::size_t>(c.bytes), 1);
  std::vector<std::uint8_t> header(256);
  std::vector<std::uint8_t> headers(256 * static_cast<std::size_t>(world.size()));
  const auto bare_broadcast = [&] {
    MPI_Bcast(data.data(), static_cast<int>(c.bytes), MPI_BYTE, 0, MPI_COMM_WORLD);
  };
  double ours = 1e30;
  double floor = 1e30;
  for (auto _ : state) {
    const double bare = seconds(c.calls, [&] {
      for (int k = 0; k < c.broadcasts; ++k) bare_broadcast();
      for (int k = 0; k < c.gathers; ++k) {
        MPI_Allgather(header.data(), 256, MPI_BYTE, headers.data(), 256, MPI_BYTE, MPI_COMM_WORLD);
      }
    });
    const double seqpack =
        seconds(c.calls, [&] { broadcast_tensor(tensor_view(data), group_rank{0}, world); });
    floor = std::min(floor, bare / c.calls);
    ours = std::min(ours, seqpack / c.calls);
    state.SetIterationTime(seqpack);
  }
  state.counters["seqpack_ms"] = ours * 1e3;
  state.counters["floor_ms"] = floor * 1e3;
}

/// Rows of the table, from rank 0.
class rows : public benchmark::BenchmarkReporter {
 public:
  rows(bool prints, bench::table& table) : prints_(prints), table_(table) {}
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const auto found = std::find_if(cases.begin(), cases.end(), [&](const broadcast_case& c) {
        return run.run_name.function_name == c.name();
      });
      if (!prints_ || found == cases.end()) continue;
      table_.print(
          {.what = "broadcast_tensor over MPI, " + found->size + ", against " + found->floor(),
           .measured = run.counters.at("seqpack_ms"),
           .floor = run.counters.at("floor_ms"),
           .limit = found->limit,
           .decimals = 4});
    }
  }

 private:
  bool prints_;
  bench::table& table_;
};

}  // namespace

int main(int argc, char** argv) {
  mpi_environment mpi;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // All ranks do the same in the same order: the numbers are fixed.
  const bool quick = argc == 2 && std::string(argv[1]) == "--quick";
  for (const broadcast_case& c : cases) {
    benchmark::RegisterBenchmark(c.name().c_str(), [&c](benchmark::State& s) { broadcast(s, c); })
        ->Iterations(quick ? 1 : c.turns)
        ->UseManualTime();
  }
  int count = 1;
  benchmark::Initialize(&count, argv);
  bench::table table(!quick);
  rows reporter(rank == 0, table);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return table.status();
}
