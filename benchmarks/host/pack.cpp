// Packing int64 ids, B = 256, S = 8192: against memcpy of the bytes written, by as many threads.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gates.hpp"
#include "seqpack/exec/threads.hpp"
#include "seqpack/seqpack.hpp"

namespace {

using namespace seqpack;

constexpr offset_t batch = 256;
constexpr offset_t width = 8192;

auto make() {
  return make_layout(bench::random_lengths(batch, width), padding{each_multiple_of<16>{}},
                     context_parallel<4>{});
}

template <class Where, class Place>
auto pack_ids(const Where& where, Place at) {
  auto layout = std::make_shared<const decltype(make())>(make());
  std::vector<std::int64_t> packed(static_cast<std::size_t>(layout->view().rows(at)));
  return [=, ids = std::vector<std::int64_t>(batch * width, 1),
          packed = std::move(packed)]() mutable {
    pack(where, *layout, at, field(batch_view(std::as_const(ids).data(), batch, width), packed));
    benchmark::ClobberMemory();
  };
}

/// memcpy of as many bytes, in as many pieces as there are threads.
template <class Place>
auto copy_bytes(offset_t threads, Place at) {
  const auto bytes = static_cast<std::size_t>(make().view().rows(at)) * 8;
  const auto pieces = static_cast<std::size_t>(threads);
  return [=, from = std::vector<char>(bytes, 1), to = std::vector<char>(bytes)]() mutable {
    if (pieces == 1) {
      std::memcpy(to.data(), from.data(), bytes);
    } else {
      bench::in_parallel(pieces, [&](std::size_t k) {
        const std::size_t first = bytes * k / pieces;
        std::memcpy(to.data() + first, from.data() + first, bytes * (k + 1) / pieces - first);
      });
    }
    benchmark::ClobberMemory();
  };
}

template <class Place>
bool add(const char* what, const char* name, Place at) {
  const std::string text = std::string("pack int64 ids, B=256, S=8192, ") + what;
  return bench::add_gate(
             text + ", 1 thread", std::string("pack/") + name, [=] { return pack_ids(host, at); },
             [=] { return copy_bytes(1, at); }, 1.3) &&
         bench::add_gate(
             text + ", 2 threads", std::string("pack_2_threads/") + name,
             [=] { return pack_ids(host_threads{2}, at); }, [=] { return copy_bytes(2, at); }, 1.3);
}

const bool registered =
    add("full row", "full_row", full_row) && add("one shard of CP 4", "shard", shard{1});

}  // namespace
