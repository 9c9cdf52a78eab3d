// Layout construction: against a plain inclusive scan of the lengths.
#include <benchmark/benchmark.h>

#include <numeric>
#include <vector>

#include "gates.hpp"
#include "seqpack/seqpack.hpp"

namespace {

constexpr std::size_t count = 1'000'000;

template <class Padding, class ContextParallel>
auto build(const Padding& padding, const ContextParallel& cp) {
  return [=, lengths = bench::random_lengths(count, 1000), cu = std::vector<int>(count + 2),
          cu_padded = std::vector<int>(count + 2)]() mutable {
    const auto view = seqpack::build_layout<int>(lengths, padding, cp, {cu, cu_padded});
    benchmark::DoNotOptimize(view.total);
    benchmark::ClobberMemory();
  };
}

auto scan() {
  return [lengths = bench::random_lengths(count, 1000), sums = std::vector<int>(count)]() mutable {
    std::inclusive_scan(lengths.begin(), lengths.end(), sums.begin());
    benchmark::DoNotOptimize(sums.back());
    benchmark::ClobberMemory();
  };
}

using namespace seqpack;

const bool registered =
    bench::add_gate(
        "layout of 1,000,000 lengths, no padding, against std::inclusive_scan", "layout/plain",
        [] { return build(no_padding{}, no_context_parallel{}); }, scan, 3.0) &&
    bench::add_gate(
        "layout of 1,000,000 lengths, each 16, CP 4", "layout/static",
        [] { return build(padding{each_multiple_of<16>{}}, context_parallel<4>{}); }, scan, 3.0) &&
    bench::add_gate(
        "layout of 1,000,000 lengths, each 16 and CP 4 dynamic", "layout/dynamic",
        [] { return build(padding{each_multiple_of<>{16}}, context_parallel<>{4}); }, scan, 3.0) &&
    bench::add_gate(
        "layout of 1,000,000 lengths, each 48 and CP 3 dynamic", "layout/dynamic_48",
        [] { return build(padding{each_multiple_of<>{48}}, context_parallel<>{3}); }, scan, 3.0);

}  // namespace
