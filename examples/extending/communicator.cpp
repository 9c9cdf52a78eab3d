// Four ranks of a user-defined communicator: a context-parallel gather, a split, a broadcast, and a
// rank that does not come.
#include "communicator.hpp"

#include <algorithm>
#include <atomic>
#include <iostream>
#include <optional>
#include <seqpack/seqpack.hpp>
#include <vector>

#include "thread_engine.hpp"

using namespace seqpack;

/// Each rank packs its shard, and gets the batch back from the shards of all.
bool gathers(callback_communicator& world) {
  const std::vector<int> ids = {1, 2, 3, 4, 5, 0, 0, 0, 11, 12, 13, 14, 15, 16, 17, 18};
  const auto layout = make_layout(std::vector{5, 8}, padding{each_multiple_of<8>{}},
                                  context_parallel<4>{}, {.width = 8});
  std::vector<int> mine(static_cast<std::size_t>(layout.shard_tokens()));
  pack(host, layout, shard{world.rank().value}, field(batch_view(ids.data(), 2, 8), mine));
  std::vector<int> back(ids.size(), -1);
  all_gather_unpack(host, world, layout,
                    field(row_view<const int>(mine), batch_view(back.data(), 2, 8)));
  return back == ids;
}

/// Ranks 0 and 2, 1 and 3: each pair adds up its numbers.
bool splits(callback_communicator& world) {
  const offset_t me = world.rank().value;
  callback_communicator pair = world.split(me % 2, -me);
  const offset_t mine = 10 + me;
  offset_t sum = 0;
  pair.all_reduce(&mine, &sum, 1, reduction::sum);
  return sum == 20 + 2 * (me % 2) + 2 && pair.rank().value == (me < 2 ? 1 : 0);
}

/// The ranks that bring no tensor get one.
bool broadcasts(callback_communicator& world) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  std::optional<tensor_view<float>> mine;
  if (world.rank().value == 2) mine = tensor_view(values);
  const tensor<float> all = broadcast_tensor(mine, group_rank{2}, world);
  return std::equal(values.begin(), values.end(), all.data());
}

/// Where rank 3 does not come, the others get an error, and the group is not used any more.
bool refuses(callback_communicator& world) {
  if (world.rank().value == 3) return true;
  const auto fails = [&] {
    try {
      agree(world, 1, "step");
      return false;
    } catch (const communication_error&) {
      return true;
    }
  };
  const bool first = fails();
  return first && fails();
}

int main() {
  std::atomic<int> right = 0;
  thread_engine::run(4, std::chrono::seconds(60), [&](callback_communicator& world) {
    right += gathers(world) && splits(world) && broadcasts(world);
  });
  thread_engine::run(4, std::chrono::milliseconds(50),
                     [&](callback_communicator& world) { right += refuses(world); });
  std::cout << "communicator: " << right << " of 8 checks as expected\n";
  return right == 8 && std::cout.flush() ? 0 : 1;
}
