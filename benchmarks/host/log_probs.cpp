// Log-probabilities of [4096, 32000] float logits, by two threads: against one pass of max and one
// of sum over the same memory.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "gates.hpp"
#include "seqpack/exec/threads.hpp"
#include "seqpack/seqpack.hpp"

namespace {

using namespace seqpack;

constexpr offset_t rows = 4096;
constexpr offset_t vocabulary = 32000;
constexpr offset_t threads = 2;

/// Half a gigabyte, made once.
std::vector<float>& logits() {
  static std::vector<float> values = [] {
    std::mt19937 random(3);
    std::normal_distribution<float> value(0, 3);
    std::vector<float> row(65521);  // prime, so that rows differ
    for (float& x : row) x = value(random);
    std::vector<float> all(static_cast<std::size_t>(rows * vocabulary));
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = row[k % row.size()];
    return all;
  }();
  return values;
}

std::vector<std::int64_t> some_labels() {
  std::vector<std::int64_t> labels;
  for (offset_t t = 0; t < rows; ++t) labels.push_back(t * 7919 % vocabulary);
  return labels;
}

auto run(bool entropy, bool backward) {
  const std::vector<float> derivatives(static_cast<std::size_t>(rows), -1.0F / rows);
  return [=, labels = some_labels()] {
    const host_threads where(threads);
    const matrix_view<float> view(logits().data(), rows, vocabulary);
    self_communicator tp;
    const log_prob_state<float> result(where, rows, entropy);
    label_log_probs(where, tp, view, column_range(vocabulary), labels, result.rows());
    if (backward) {
      label_log_probs_backward(where, view, column_range(vocabulary), labels, result.rows(),
                               derivatives, view);
    }
    benchmark::ClobberMemory();
  };
}

/// Numbers side by side, so that the compiler makes vector instructions of both passes; of 16 and
/// fewer it unrolls the loop instead.
constexpr offset_t lanes = 32;
static_assert(vocabulary % lanes == 0);

float max_of_row(const float* x) {
  float most[lanes];
  for (offset_t l = 0; l < lanes; ++l) most[l] = x[l];
  for (offset_t k = 0; k < vocabulary; k += lanes) {
    for (offset_t l = 0; l < lanes; ++l) most[l] = most[l] < x[k + l] ? x[k + l] : most[l];
  }
  float result = most[0];
  for (const float m : most) result = result < m ? m : result;
  return result;
}
float sum_of_row(const float* x) {
  float sum[lanes] = {};
  for (offset_t k = 0; k < vocabulary; k += lanes) {
    for (offset_t l = 0; l < lanes; ++l) sum[l] += x[k + l];
  }
  float result = 0;
  for (const float s : sum) result += s;
  return result;
}

auto two_passes() {
  return [results = std::vector<float>(static_cast<std::size_t>(rows))]() mutable {
    const float* const x = logits().data();
    const auto pass = [&](auto row) {
      bench::in_parallel(threads, [&](std::size_t piece) {
        const offset_t first = rows * static_cast<offset_t>(piece) / threads;
        const offset_t last = rows * static_cast<offset_t>(piece + 1) / threads;
        for (offset_t t = first; t < last; ++t) {
          results[static_cast<std::size_t>(t)] = row(x + t * vocabulary);
        }
      });
      benchmark::DoNotOptimize(results.data());
      benchmark::ClobberMemory();
    };
    pass(max_of_row);
    pass(sum_of_row);
  };
}

#if defined(SEQPACK_BENCH_NATIVE)
const std::string flags = ", -march=native";
#else
const std::string flags;
#endif
const std::string what = "log-probabilities of [4096, 32000] float, 2 threads" + flags;

const bool registered =
    bench::add_gate(
        what + ", forward", "log_probs/forward", [] { return run(false, false); }, two_passes, 3.0,
        bench::turn_time::fastest, 6) &&
    bench::add_gate(
        what + ", forward with entropy", "log_probs/entropy", [] { return run(true, false); },
        two_passes, 3.0, bench::turn_time::fastest, 6) &&
    bench::add_gate(
        what + ", forward and backward in place", "log_probs/both", [] { return run(false, true); },
        two_passes, 6.0, bench::turn_time::fastest, 6);

}  // namespace
