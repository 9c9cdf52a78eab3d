// Packs three sequences into one row, shards the row over two ranks, and brings the tokens back.
#include <cstdint>
#include <iostream>
#include <seqpack/seqpack.hpp>
#include <vector>

int main() {
  using namespace seqpack;
  // A batch [3, 8] of token ids, right-padded with 0, and the real length of each sequence.
  const std::vector<std::int64_t> ids = {11, 12, 13, 14, 15, 0,  0,  0,  //
                                         21, 22, 23, 0,  0,  0,  0,  0,  //
                                         31, 32, 33, 34, 35, 36, 37, 38};
  const std::vector<int> lengths = {5, 3, 8};

  // Each sequence is padded to a multiple of 4 and cut in a zigzag over 2 ranks.
  const auto layout = make_layout(lengths, padding{each_multiple_of<4>{}}, context_parallel<2>{});

  // Both shards, one after the other, as an all-gather leaves them. A rank packs its own: shard{rank}.
  std::vector<std::int64_t> shards(static_cast<std::size_t>(layout.total_tokens()));
  pack(host, layout, all_shards, field(batch_view(ids.data(), 3, 8), shards));
  for (const std::int64_t id : shards) std::cout << id << ' ';

  // Back to [3, 8]: every position is written, those without a token with 0.
  std::vector<std::int64_t> unpacked(ids.size());
  unpack(host, layout, all_shards, field(shards, batch_view(unpacked.data(), 3, 8)));
  std::cout << (unpacked == ids ? "\nround trip exact\n" : "\nround trip WRONG\n");
  return unpacked == ids ? 0 : 1;
}
