// What a program pays that chooses among many policies: a layout, pack and unpack of one tensor for
// each of 216 combinations of 18 paddings, 3 shardings and 4 sizes of the context-parallel group.
#include <cstdint>
#include <vector>

#include "seqpack/seqpack.hpp"

using namespace seqpack;

struct buffers {
  std::vector<int> lengths;
  offset_t width = 0;
  const std::int64_t* ids = nullptr;
  std::int64_t* packed = nullptr;
  std::int64_t* unpacked = nullptr;
  offset_t each = 48;
  offset_t total = 4800;
  offset_t ranks = 2;
};

template <class Padding, class ContextParallel>
void move(const buffers& b, const Padding& how, const ContextParallel& cp) {
  const auto layout = make_layout(b.lengths, how, cp, {.width = b.width});
  const row_view mine(b.packed, layout.shard_tokens());
  pack(host, layout, shard{0}, field(batch_view(b.ids, layout.batch_size(), b.width), mine));
  unpack(host, layout, all_shards,
         field(row_view(b.packed, layout.total_tokens()),
               batch_view(b.unpacked, layout.batch_size(), b.width)));
}

template <class Padding>
void with_ranks(const buffers& b, const Padding& how) {
  const auto shardings = [&]<class Sharding>(Sharding) {
    move(b, how, context_parallel<2, Sharding>{});
    move(b, how, context_parallel<3, Sharding>{});
    move(b, how, context_parallel<4, Sharding>{});
    move(b, how, context_parallel<dynamic, Sharding>{b.ranks});
  };
  shardings(zigzag{});
  shardings(contiguous{});
  shardings(striped{});
}

template <class... Each>
void with_totals(const buffers& b, Each... each) {
  const auto tails = [&](auto tail) {
    with_ranks(b, padding{each..., tail});
    with_ranks(b, padding{each..., total_multiple_of<>{b.total}, tail});
    with_ranks(b, padding{each..., fixed_total<>{b.total}, tail});
  };
  tails(absorb_tail{});
  tails(ghost_tail{});
}

void all(const buffers& b) {
  with_totals(b);
  with_totals(b, each_multiple_of<48>{});
  with_totals(b, each_multiple_of<>{b.each});
}
