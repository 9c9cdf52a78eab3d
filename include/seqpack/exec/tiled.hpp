/// \file
/// Operations that the threads of a block do together, a tile at a time.
#pragma once

#include <concepts>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/team.hpp"

namespace seqpack {

/// What an operation may offer beside units: tiles of them, each for a block of threads with memory
/// that they share. They do the same as all units, with what neighbours have in common done once.
///
/// - `Op::scratch_type`: the shared memory, not initialised
/// - `op.tiles()`: how many there are
/// - `op.prepare(threads, scratch)`: before the first tile
/// - `op.tile(threads, scratch, number, continues)`: called by all threads; `continues` says that
///   they have just done the tile before this one
///
/// Threads have, beside rank() and size(), what single_thread has under the same names.
template <class Op>
concept tiled_operation =
    std::is_trivially_default_constructible_v<typename Op::scratch_type> &&
    requires(const Op& op, typename Op::scratch_type& scratch, single_thread threads, offset_t n) {
      { op.tiles() } -> std::same_as<offset_t>;
      op.prepare(threads, scratch);
      op.tile(threads, scratch, n, true);
    };

}  // namespace seqpack
