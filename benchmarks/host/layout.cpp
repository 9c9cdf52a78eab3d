// Layout construction: against a plain inclusive scan of the lengths.
#include <numeric>
#include <vector>

#include "gates.hpp"
#include "seqpack/seqpack.hpp"

namespace {

constexpr std::size_t count = 1'000'000;

template <class Padding, class ContextParallel>
void build(benchmark::State& state, const Padding& padding, const ContextParallel& cp) {
  const auto lengths = bench::random_lengths(count, 1000);
  std::vector<int> cu(count + 2), cu_padded(count + 2);
  for (auto _ : state) {
    const auto view = seqpack::build_layout<int>(lengths, padding, cp, {cu, cu_padded});
    benchmark::DoNotOptimize(view.total);
    benchmark::ClobberMemory();
  }
}

void scan(benchmark::State& state) {
  const auto lengths = bench::random_lengths(count, 1000);
  std::vector<int> sums(count);
  for (auto _ : state) {
    std::inclusive_scan(lengths.begin(), lengths.end(), sums.begin());
    benchmark::DoNotOptimize(sums.back());
    benchmark::ClobberMemory();
  }
}

using namespace seqpack;

const bool registered =
    bench::add_gate(
        "layout of 1,000,000 lengths, no padding, against std::inclusive_scan", "layout/plain",
        [](auto& s) { build(s, no_padding{}, no_context_parallel{}); }, scan, 3.0) &&
    bench::add_gate(
        "layout of 1,000,000 lengths, each 16, CP 4", "layout/static",
        [](auto& s) { build(s, padding{each_multiple_of<16>{}}, context_parallel<4>{}); }, scan,
        3.0) &&
    bench::add_gate(
        "layout of 1,000,000 lengths, each 16 and CP 4 dynamic", "layout/dynamic",
        [](auto& s) { build(s, padding{each_multiple_of<>{16}}, context_parallel<>{4}); }, scan,
        3.0) &&
    bench::add_gate(
        "layout of 1,000,000 lengths, each 48 and CP 3 dynamic", "layout/dynamic_48",
        [](auto& s) { build(s, padding{each_multiple_of<>{48}}, context_parallel<>{3}); }, scan,
        3.0);

}  // namespace
