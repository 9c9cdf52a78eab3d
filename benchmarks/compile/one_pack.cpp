// What a program pays that packs one tensor: a layout and one call of pack.
#include <cstdint>
#include <vector>

#include "seqpack/seqpack.hpp"

using namespace seqpack;

void pack_one(const std::vector<int>& lengths, const std::int64_t* ids, std::int64_t* packed) {
  const auto layout = make_layout(lengths, padding{each_multiple_of<8>{}}, context_parallel<4>{});
  pack(host, layout, shard{1},
       field(batch_view(ids, layout.batch_size(), 1024), row_view(packed, layout.shard_tokens())));
}
