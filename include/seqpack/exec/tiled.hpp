/// \file
/// Tiled operations: blocks of threads do them together, a tile at a time.
#pragma once

#include <concepts>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/team.hpp"

namespace seqpack {

/// A bulk operation that a device runs as tiles, each for a block of threads with memory that they
/// share: what neighbouring rows have in common is done once. All tiles together do what
/// `op.process(0, op.rows())` does.
///
/// - `Op::scratch_type`: the shared memory, not initialised
/// - `op.tiles()`: the number of tiles
/// - `op.prepare(threads, scratch)`: called by all threads before the first tile
/// - `op.tile(threads, scratch, number, continues)`: called by all threads; `continues` says that
///   they have just done the tile `number - 1`
///
/// The threads have rank() and size(), and sync(), any() and count_of() as single_thread has them.
template <class Op>
concept tiled_operation =
    std::is_trivially_default_constructible_v<typename Op::scratch_type> &&
    requires(const Op& op, typename Op::scratch_type& scratch, single_thread threads, offset_t n) {
      { op.tiles() } -> std::same_as<offset_t>;
      op.prepare(threads, scratch);
      op.tile(threads, scratch, n, true);
    };

}  // namespace seqpack
