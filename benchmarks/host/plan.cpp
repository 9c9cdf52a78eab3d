// Plans: the time that they may take, on one core, and that they take no more rows than
// first-fit-decreasing.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "gates.hpp"
#include "seqpack/plan/plan_rows.hpp"
#include "seqpack/plan/plan_steps.hpp"

namespace {

constexpr int capacity = 8192;

/// Log-normal lengths, the median at 665 tokens, as text has them; none above a row.
std::vector<int> lengths_of_text(std::size_t count) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> length(6.5, 1.0);
  std::vector<int> result(count);
  for (int& l : result) l = std::clamp(static_cast<int>(length(random)), 1, capacity);
  return result;
}

/// As it is written in a few lines: each of the longest first into the first row with room.
/// Rows that have no room for the shortest sequence are not looked at again.
seqpack::offset_t rows_of_first_fit_decreasing(std::vector<int> lengths) {
  std::sort(lengths.rbegin(), lengths.rend());
  std::vector<int> room;
  std::size_t open = 0;
  for (const int length : lengths) {
    while (open < room.size() && room[open] < lengths.back()) ++open;
    std::size_t row = open;
    while (row < room.size() && room[row] < length) ++row;
    if (row == room.size()) room.push_back(capacity);
    room[row] -= length;
  }
  return static_cast<seqpack::offset_t>(room.size());
}

auto rows(std::size_t count) {
  std::vector<int> lengths = lengths_of_text(count);
  const seqpack::offset_t planned = seqpack::plan_rows(lengths, capacity).rows();
  // The plain one takes O(n * rows): for the larger list it would be minutes.
  if (count <= 32'768 && planned > rows_of_first_fit_decreasing(lengths)) {
    std::fprintf(stderr, "%td rows are more than first-fit-decreasing takes\n", planned);
    std::exit(2);
  }
  return [lengths = std::move(lengths)] {
    const seqpack::row_plan plan = seqpack::plan_rows(lengths, capacity);
    benchmark::DoNotOptimize(plan.sequences().data());
  };
}

auto steps(std::size_t count, seqpack::offset_t budget) {
  return [lengths = lengths_of_text(count), budget] {
    const seqpack::step_plan plan = seqpack::plan_steps(lengths, budget, 8);
    benchmark::DoNotOptimize(plan.micro_batches().sequences().data());
  };
}

const bool registered =
    bench::add_time_gate(
        "plan of 32,768 log-normal lengths into rows of 8,192, against 5 ms", "plan/rows_32768",
        [] { return rows(32'768); }, 5) &&
    bench::add_time_gate(
        "plan of 1,000,000 log-normal lengths into rows of 8,192, against 150 ms",
        "plan/rows_1000000", [] { return rows(1'000'000); }, 150, 4) &&
    bench::add_time_gate(
        "micro-batches of 32,768 log-normal lengths for 8 ranks, against 20 ms", "plan/steps_32768",
        [] { return steps(32'768, capacity); }, 20) &&
    bench::add_time_gate(
        "32,768 log-normal lengths over 8 ranks in one step, against 20 ms", "plan/one_step_32768",
        [] { return steps(32'768, seqpack::max_tokens); }, 20);

}  // namespace
