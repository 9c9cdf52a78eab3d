/// \file
/// Teams of threads that work on one row together, and the calling thread as a team, so that the same
/// function runs on a device and on the host.
#pragma once

#include <concepts>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/detail/team.hpp"
#include "seqpack/exec/executor.hpp"

namespace seqpack {

/// Threads of a device that work on one row together, or one thread. All of them call the members
/// that say so, in the same order and with the same sizes.
///
/// - `threads.rank()`: which one this is, from 0 to `threads.size()` - 1
/// - `threads.reduce(value, combine)`: what all threads' values combine to, on every thread the same
///   bits; the order of combining depends on size() alone. Called by all threads
/// - `threads.read_row(x, n, chunk, rest)`: x[0], ..., x[n - 1] as chunks of neighbours, the last of
///   which may be shorter: with those of this thread, rising, calls chunk(pointer to
///   detail::elements_per_chunk<T> elements) or, for any of them, rest(pointer, how many they are). Chunk c
///   is thread c % size()'s, wherever in memory the row is. Called by all threads
/// - `threads.rewrite_row(x, out, n, f)`: out[first + k] = f(first, k, x[first + k]), each element
///   read and written by one thread, so that out may be x; k is small. Called by all threads
/// - `threads.fill_row(out, n, value)`: out[0], ..., out[n - 1] = value. Called by all threads
template <class T>
concept team = requires(const T& threads, double value, double (*combine)(double, double),
                        const float* x, float* out, offset_t n, detail::archetype f) {
  { threads.rank() } -> std::same_as<int>;
  { threads.size() } -> std::same_as<int>;
  { threads.reduce(value, combine) } -> std::same_as<double>;
  threads.read_row(x, n, f, f);
  threads.rewrite_row(x, out, n, f);
  threads.fill_row(out, n, *x);
};

/// The calling thread, alone.
struct single_thread {
  SEQPACK_HD constexpr int rank() const noexcept { return 0; }
  SEQPACK_HD constexpr int size() const noexcept { return 1; }

  // For tiles. All threads call these.

  /// What the others have written before is seen after it.
  SEQPACK_HD constexpr void sync() const noexcept {}
  /// Whether any thread says so; a sync too.
  SEQPACK_HD constexpr bool any(bool mine) const noexcept { return mine; }
  /// For how many k in [0, n) f(k) is true: called once for each, by one of the threads; a sync too.
  template <class F>
  SEQPACK_HD constexpr int count_of(int n, const F& f) const {
    int count = 0;
    for (int k = 0; k < n; ++k) count += f(k) ? 1 : 0;
    return count;
  }

  // For rows.

  template <class V, class Combine>
  SEQPACK_HD V reduce(const V& value, const Combine&) const {
    return value;
  }
  template <class T, class Chunk, class Rest>
  SEQPACK_HD void read_row(const T* x, offset_t n, const Chunk& chunk, const Rest& rest) const {
    constexpr int length = detail::elements_per_chunk<T>;
    offset_t first = 0;
    for (; first + length <= n; first += length) chunk(x + first);
    if (first < n) rest(x + first, static_cast<int>(n - first));
  }
  template <class T, class G, class F>
  SEQPACK_HD void rewrite_row(const T* x, G* out, offset_t n, const F& f) const {
    for (offset_t first = 0; first < n; ++first) out[first] = f(first, 0, x[first]);
  }
  template <class G>
  SEQPACK_HD void fill_row(G* out, offset_t n, const G& value) const {
    for (offset_t k = 0; k < n; ++k) out[k] = value;
  }
};

/// A bulk operation that a device runs with a team to a row.
///
/// - `op(threads, row)`, SEQPACK_HD: does one row on all threads of a team; with a team of one it does
///   what `op.process(row, row + 1)` does, apart from rounding
/// - `op.row_work()`: about how many bytes a team moves for one row. The size of a team depends on it
///   alone, so it must not depend on anything that may not change a result
/// - `Op::registers`, optional: how many a thread may have on a device; 128 where there is none
template <class Op>
concept cooperative_operation =
    bulk_operation<Op> && requires(const Op& op, const single_thread& alone, offset_t row) {
      { op.row_work() } -> std::same_as<offset_t>;
      op(alone, row);
    };

}  // namespace seqpack
