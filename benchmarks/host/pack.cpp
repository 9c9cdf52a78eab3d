// Packing int64 ids, B = 256, S = 8192: against memcpy of the bytes written, by as many threads.
#include <cstdint>
#include <cstring>
#include <vector>

#include "gates.hpp"
#include "seqpack/exec/threads.hpp"
#include "seqpack/seqpack.hpp"

namespace {

using namespace seqpack;

constexpr offset_t batch = 256;
constexpr offset_t width = 8192;

template <class Where, class Place>
void pack_ids(benchmark::State& state, const Where& where, Place at) {
  const auto layout = make_layout(bench::random_lengths(batch, width),
                                  padding{each_multiple_of<16>{}}, context_parallel<4>{});
  const std::vector<std::int64_t> ids(batch * width, 1);
  const auto rows = layout.view().rows(at);
  std::vector<std::int64_t> packed(static_cast<std::size_t>(rows));
  const batch_view source(ids.data(), batch, width);
  for (auto _ : state) {
    pack(where, layout, at, field(source, packed));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * rows * 8);
}

/// memcpy of as many bytes, in as many pieces as there are threads.
template <class Place>
void copy_bytes(benchmark::State& state, offset_t threads, Place at) {
  const auto layout = make_layout(bench::random_lengths(batch, width),
                                  padding{each_multiple_of<16>{}}, context_parallel<4>{});
  const auto bytes = static_cast<std::size_t>(layout.view().rows(at)) * 8;
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes);
  const auto pieces = static_cast<std::size_t>(threads);
  for (auto _ : state) {
    if (threads == 1) {
      std::memcpy(to.data(), from.data(), bytes);
    } else {
      bench::in_parallel(pieces, [&](std::size_t k) {
        const std::size_t first = bytes * k / pieces;
        std::memcpy(to.data() + first, from.data() + first, bytes * (k + 1) / pieces - first);
      });
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

template <class Place>
bool add(const char* what, const char* name, Place at) {
  const std::string text = std::string("pack int64 ids, B=256, S=8192, ") + what;
  return bench::add_gate(
             text + ", 1 thread", std::string("pack/") + name,
             [=](auto& s) { pack_ids(s, host, at); }, [=](auto& s) { copy_bytes(s, 1, at); },
             1.3) &&
         bench::add_gate(
             text + ", 2 threads", std::string("pack_2_threads/") + name,
             [=](auto& s) { pack_ids(s, host_threads{2}, at); },
             [=](auto& s) { copy_bytes(s, 2, at); }, 1.3);
}

const bool registered =
    add("full row", "full_row", full_row) && add("one shard of CP 4", "shard", shard{1});

}  // namespace
