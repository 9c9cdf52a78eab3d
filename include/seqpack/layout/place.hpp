/// \file
/// The vocabulary of places: what a packed operation reads from or writes to.
#pragma once

#include <concepts>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// The whole packed row: [T, D].
struct full_row_t {};
/// Names the whole packed row.
inline constexpr full_row_t full_row{};

/// The shard of one context-parallel rank: [T / CP, D].
struct shard {
  offset_t rank = 0;
};

/// The shards of all ranks in rank-major order, as an all-gather leaves them: [CP, T / CP, D].
struct all_shards_t {};
/// Names the shards of all ranks.
inline constexpr all_shards_t all_shards{};

/// full_row, shard{rank} or all_shards.
template <class P>
concept place =
    std::same_as<P, full_row_t> || std::same_as<P, shard> || std::same_as<P, all_shards_t>;

}  // namespace seqpack
