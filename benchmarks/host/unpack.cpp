// Unpacking float rows of D = 4096: against memcpy of the real rows and memset of the rest.
#include <benchmark/benchmark.h>

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

constexpr offset_t batch = 16;
constexpr offset_t width = 512;
constexpr offset_t payload = 4096;

auto make() {
  return make_layout(bench::random_lengths(batch, width), padding{each_multiple_of<16>{}},
                     context_parallel<4>{});
}

template <class Where, class Place>
auto unpack_rows(const Where& where, Place at) {
  auto layout = std::make_shared<const decltype(make())>(make());
  std::vector<float> packed(static_cast<std::size_t>(layout->total_tokens() * payload), 1.0F);
  return [=, packed = std::move(packed),
          rows = std::vector<float>(batch * width * payload)]() mutable {
    unpack(where, *layout, at,
           field(row_view(std::as_const(packed).data(), layout->total_tokens(), payload),
                 batch_view(rows.data(), batch, width, payload)));
    benchmark::ClobberMemory();
  };
}

auto copy_and_set(offset_t threads) {
  const auto real = static_cast<std::size_t>(make().real_tokens() * payload) * sizeof(float);
  const auto pieces = static_cast<std::size_t>(threads);
  return [=, from = std::vector<char>(real, 1),
          to = std::vector<char>(batch * width * payload * sizeof(float))]() mutable {
    const std::size_t rest = to.size() - real;
    const auto piece = [&](std::size_t k) {
      const std::size_t first = real * k / pieces;
      std::memcpy(to.data() + first, from.data() + first, real * (k + 1) / pieces - first);
      const std::size_t behind = rest * k / pieces;
      std::memset(to.data() + real + behind, 0, rest * (k + 1) / pieces - behind);
    };
    if (pieces == 1) {
      piece(0);
    } else {
      bench::in_parallel(pieces, piece);
    }
    benchmark::ClobberMemory();
  };
}

template <class Place>
bool add(const char* what, const char* name, Place at) {
  const std::string text = std::string("unpack float rows, D=4096, ") + what;
  return bench::add_gate(
             text + ", 1 thread", std::string("unpack/") + name,
             [=] { return unpack_rows(host, at); }, [] { return copy_and_set(1); }, 1.2,
             bench::turn_time::fastest, 6) &&
         bench::add_gate(
             text + ", 2 threads", std::string("unpack_2_threads/") + name,
             [=] { return unpack_rows(host_threads{2}, at); }, [] { return copy_and_set(2); }, 1.2,
             bench::turn_time::fastest, 6);
}

const bool registered =
    add("full row", "full_row", full_row) && add("all shards of CP 4", "all_shards", all_shards);

}  // namespace
