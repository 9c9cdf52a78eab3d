// A user-defined sharding: blocks of tokens are dealt to the ranks in turn.
#pragma once

#include <seqpack/policy/sharding.hpp>

/// Block k of each sequence belongs to rank k mod cp; a block has `size` tokens.
struct block_cyclic {
  seqpack::offset_t size = 1;

  SEQPACK_HD constexpr seqpack::offset_t divisor(seqpack::offset_t cp) const { return cp * size; }

  SEQPACK_HD constexpr seqpack::shard_position to_shard(seqpack::offset_t token,
                                                        seqpack::offset_t /*length*/,
                                                        seqpack::offset_t cp) const {
    const seqpack::offset_t block = token / size;
    return {block % cp, block / cp * size + token % size};
  }

  SEQPACK_HD constexpr seqpack::offset_t to_token(seqpack::shard_position p,
                                                  seqpack::offset_t /*length*/,
                                                  seqpack::offset_t cp) const {
    return (p.index / size * cp + p.rank) * size + p.index % size;
  }

  /// The rest of the block: the next one is another rank's.
  SEQPACK_HD constexpr seqpack::offset_t run(seqpack::shard_position p,
                                             seqpack::offset_t /*length*/,
                                             seqpack::offset_t /*cp*/) const {
    return size - p.index % size;
  }
};

static_assert(seqpack::sharding<block_cyclic>);
