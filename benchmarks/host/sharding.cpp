// A sharding that is chosen at run time against the same one as a type: int64 ids to all shards of CP 4,
// and back.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gates.hpp"
#include "seqpack/seqpack.hpp"

namespace {

using namespace seqpack;

constexpr offset_t ranks = 4;

/// Sequences of `width` / 4 to `width` tokens, 128 Ki tokens together: calls that are short and stay in
/// the cache, so that the arithmetic counts.
template <class ContextParallel>
auto make(offset_t width, offset_t each, const ContextParallel& cp) {
  const auto batch = static_cast<std::size_t>((offset_t{1} << 17) * 8 / (5 * width));
  return make_layout(bench::random_lengths(batch, static_cast<int>(width)),
                     padding{each_multiple_of<>{each}}, cp);
}

template <class ContextParallel>
auto pack_ids(offset_t width, offset_t each, const ContextParallel& cp) {
  auto layout = std::make_shared<const decltype(make(width, each, cp))>(make(width, each, cp));
  const offset_t batch = layout->batch_size();
  std::vector<std::int64_t> packed(static_cast<std::size_t>(layout->total_tokens()));
  return [=, ids = std::vector<std::int64_t>(static_cast<std::size_t>(batch * width), 1),
          packed = std::move(packed)]() mutable {
    pack(host, *layout, all_shards,
         field(batch_view(std::as_const(ids).data(), batch, width), packed));
    benchmark::ClobberMemory();
  };
}

template <class ContextParallel>
auto unpack_ids(offset_t width, offset_t each, const ContextParallel& cp) {
  auto layout = std::make_shared<const decltype(make(width, each, cp))>(make(width, each, cp));
  const offset_t batch = layout->batch_size();
  std::vector<std::int64_t> packed(static_cast<std::size_t>(layout->total_tokens()), 1);
  return [=, ids = std::vector<std::int64_t>(static_cast<std::size_t>(batch * width)),
          packed = std::move(packed)]() mutable {
    unpack(host, *layout, all_shards, field(packed, batch_view(ids.data(), batch, width)));
    benchmark::ClobberMemory();
  };
}

/// One gate for each direction.
template <class Sharding>
bool add(const std::string& what, const std::string& name, offset_t width, offset_t each,
         double limit) {
  const context_parallel<dynamic, Sharding> as_a_type{ranks};
  const context_parallel late{ranks, any_sharding{Sharding{}}};
  return bench::add_gate(
             "pack to all shards, " + what + ", chosen at run time against a type",
             "sharding/pack/" + name, [=] { return pack_ids(width, each, late); },
             [=] { return pack_ids(width, each, as_a_type); }, limit) &&
         bench::add_gate(
             "unpack from all shards, " + what + ", chosen at run time against a type",
             "sharding/unpack/" + name, [=] { return unpack_ids(width, each, late); },
             [=] { return unpack_ids(width, each, as_a_type); }, limit);
}

const bool registered =
    add<zigzag>("zigzag, runs of 64 to 256 tokens", "zigzag_64", 2048, 512, 1.05) &&
    add<contiguous>("contiguous, runs of 64 to 256 tokens", "contiguous_64", 1024, 256, 1.05) &&
    add<zigzag>("zigzag, runs of 2 to 8 tokens", "zigzag_2", 64, 8, 1.15) &&
    add<contiguous>("contiguous, runs of 4 to 16 tokens", "contiguous_4", 64, 4, 1.15) &&
    add<striped>("striped, runs of 1 token", "striped", 1024, 4, 1.15);

}  // namespace
