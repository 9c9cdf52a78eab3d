// Unpacking float rows of D = 4096: against memcpy of the real rows and memset of the rest.
#include <cstring>
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
void unpack_rows(benchmark::State& state, const Where& where, Place at) {
  const auto layout = make();
  const std::vector<float> packed(static_cast<std::size_t>(layout.total_tokens() * payload), 1.0F);
  std::vector<float> rows(batch * width * payload);
  const row_view source(packed.data(), layout.total_tokens(), payload);
  const batch_view target(rows.data(), batch, width, payload);
  for (auto _ : state) {
    unpack(where, layout, at, field(source, target));
    benchmark::ClobberMemory();
  }
}

void copy_and_set(benchmark::State& state, offset_t threads) {
  const auto layout = make();
  const auto real = static_cast<std::size_t>(layout.real_tokens() * payload) * sizeof(float);
  const std::vector<char> from(real, 1);
  std::vector<char> to(batch * width * payload * sizeof(float));
  const auto pieces = static_cast<std::size_t>(threads);
  const std::size_t rest = to.size() - real;
  for (auto _ : state) {
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
  }
}

template <class Place>
bool add(const char* what, const char* name, Place at) {
  const std::string text = std::string("unpack float rows, D=4096, ") + what;
  return bench::add_gate(
             text + ", 1 thread", std::string("unpack/") + name,
             [=](auto& s) { unpack_rows(s, host, at); }, [](auto& s) { copy_and_set(s, 1); },
             1.2) &&
         bench::add_gate(
             text + ", 2 threads", std::string("unpack_2_threads/") + name,
             [=](auto& s) { unpack_rows(s, host_threads{2}, at); },
             [](auto& s) { copy_and_set(s, 2); }, 1.2);
}

const bool registered =
    add("full row", "full_row", full_row) && add("all shards of CP 4", "all_shards", all_shards);

}  // namespace
