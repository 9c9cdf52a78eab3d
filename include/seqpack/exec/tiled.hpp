/// \file
/// Operations that the threads of a block do together, a tile at a time.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// One thread that is alone with a tile: how tiles run on the host.
struct lone_thread {
  SEQPACK_HD constexpr std::int32_t rank() const noexcept { return 0; }
  SEQPACK_HD constexpr std::int32_t size() const noexcept { return 1; }
  SEQPACK_HD constexpr void sync() const noexcept {}
  /// Whether any thread says so; they have met then.
  SEQPACK_HD constexpr bool any(bool mine) const noexcept { return mine; }
  /// For how many k in [0, n) f(k) is true. It is called once for each, by any of the threads, and
  /// what it has written everyone sees.
  template <class F>
  SEQPACK_HD constexpr std::int32_t count_of(std::int32_t n, const F& f) const {
    std::int32_t count = 0;
    for (std::int32_t k = 0; k < n; ++k) count += f(k) ? 1 : 0;
    return count;
  }
};

/// What an operation may offer beside units: tiles of them, each for a block of threads with memory
/// that they share. They do the same as all units, with what neighbours have in common done once.
///
/// - `Op::scratch_type`: the shared memory, not initialised
/// - `op.tiles()`: how many there are
/// - `op.prepare(threads, scratch)`: before the first tile
/// - `op.tile(threads, scratch, number, continues)`: called by all threads; `continues` says that
///   they have just done the tile before this one
template <class Op>
concept tiled_operation =
    std::is_trivially_default_constructible_v<typename Op::scratch_type> &&
    requires(const Op& op, typename Op::scratch_type& scratch, lone_thread threads, offset_t n) {
      { op.tiles() } -> std::same_as<offset_t>;
      op.prepare(threads, scratch);
      op.tile(threads, scratch, n, true);
    };

}  // namespace seqpack
