// Packs a batch with a user-defined sharding.
#include "sharding.hpp"

#include <cstdint>
#include <iostream>
#include <seqpack/seqpack.hpp>
#include <vector>

using namespace seqpack;

/// Whether to_token is the inverse of to_shard. Policies are constexpr, so the compiler can tell.
constexpr bool is_a_bijection(block_cyclic how, offset_t length, offset_t cp) {
  for (offset_t token = 0; token < length; ++token) {
    if (how.to_token(how.to_shard(token, length, cp), length, cp) != token) return false;
  }
  return true;
}
static_assert(is_a_bijection({.size = 2}, 24, 3) && is_a_bijection({.size = 5}, 40, 4));

int main() {
  const std::vector<int> lengths = {8, 3};
  const std::vector<std::int32_t> ids = {10, 11, 12, 13, 14, 15, 16, 17,  //
                                         20, 21, 22, 0,  0,  0,  0,  0};
  const context_parallel ranks{2, block_cyclic{.size = 2}};
  const auto layout = make_layout(lengths, padding{each_multiple_of<>{ranks.divisor()}}, ranks);

  std::vector<std::int32_t> shards(static_cast<std::size_t>(layout.total_tokens()));
  const batch_view batch(ids.data(), 2, 8);
  pack(host, layout, all_shards, field(batch, shards));
  const std::vector<std::int32_t> expected = {10, 11, 14, 15, 20, 21,  // rank 0
                                              12, 13, 16, 17, 22, 0};  // rank 1

  std::vector<std::int32_t> back(ids.size(), -1);
  unpack(host, layout, all_shards, field(shards, batch_view(back.data(), 2, 8)));

  const bool right = shards == expected && back == ids;
  std::cout << "sharding: blocks of 2 tokens, " << (right ? "as expected" : "WRONG") << '\n';
  return right && std::cout.flush() ? 0 : 1;
}
