// Packs three sequences, shards the row over two ranks, and brings the tokens back.
#include <cstdint>
#include <iostream>
#include <seqpack/seqpack.hpp>
#include <vector>

int main(int argc, char**) {
  using namespace seqpack;
  if (argc > 1) {
    std::cerr << "quickstart takes no arguments\n";
    return 2;
  }

  // A batch [B, S] of token ids, right-padded with 0, and the real length of each row.
  const std::vector<int> lengths = {5, 3, 8};
  const std::vector<std::int64_t> ids = {11, 12, 13, 14, 15, 0,  0,  0,  //
                                         21, 22, 23, 0,  0,  0,  0,  0,  //
                                         31, 32, 33, 34, 35, 36, 37, 38};
  const batch_view batch(ids.data(), 3, 8);

  // The map: each sequence is padded to a multiple of 4 and cut in a zigzag over 2 ranks.
  const auto layout =
      make_layout(lengths, padding{each_multiple_of<4>{}}, context_parallel<2>{}, {.width = 8});

  // Each rank packs its own shard; side by side they are what an all-gather leaves.
  std::vector<std::int64_t> gathered(static_cast<std::size_t>(layout.total_tokens()));
  for (offset_t rank = 0; rank < 2; ++rank) {
    const row_view mine(gathered.data() + rank * layout.shard_tokens(), layout.shard_tokens());
    pack(host, layout, shard{rank}, field(batch, mine));
    std::cout << "rank " << rank << ":";
    for (offset_t t = 0; t < mine.rows; ++t) std::cout << ' ' << *mine.at(t);
    std::cout << '\n';
  }

  // Back to [B, S]: every position is written, those without a token with 0.
  std::vector<std::int64_t> unpacked(ids.size(), -1);
  unpack(host, layout, all_shards, field(gathered, batch_view(unpacked.data(), 3, 8)));
  std::cout << (unpacked == ids ? "round trip exact\n" : "round trip WRONG\n");
  return unpacked == ids && std::cout.flush() ? 0 : 1;
}
