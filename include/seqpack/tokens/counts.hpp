/// \file
/// How many real tokens a context-parallel rank holds, counted through the map.
#pragma once

#include <span>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/detail/checks.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/tokens/detail/count_operation.hpp"

namespace seqpack {

/// Real tokens of the sequence in one slot, in one shard: never length / CP. O(runs of the sequence in
/// the shard).
template <class View>
SEQPACK_HD constexpr offset_t real_tokens(const View& view, shard at, offset_t slot) noexcept {
  const auto cut = view.cut_of(slot);
  const offset_t base = view.share_begin(slot);
  const offset_t end = view.shard_begin(at, slot + 1);
  const offset_t length = view.length(slot);
  offset_t count = 0;
  for (offset_t row = view.shard_begin(at, slot); row < end;) {
    const shard_position p{at.rank, row - base};
    const offset_t run = min_of(view.cp.run(p, cut.length), end - row);
    const offset_t token = view.cp.to_token(p, cut.length) - cut.begin;
    count += max_of(min_of(length - token, run), 0);
    row += run;
  }
  return count;
}

/// Writes the real tokens of every slot in the shard of one rank; in the order of the slots, not of
/// the batch. One entry per slot; none for the ghost.
/// \throws invalid_input for a rank out of range or an array of the wrong size.
///
/// Allocates nothing, does not synchronise; one launch on a device. O(runs of the shard).
template <executor E, layout L, class Out>
  requires runs_on<E, L>
void real_tokens_per_sequence(const E& where, const L& layout, shard at, Out&& out) {
  const auto view = layout.view();
  view.require_place(at);
  const row_view counts(out);
  detail::require_equal(detail::alone, "counts", counts.rows, view.sequences,
                        "the sequences of the layout");
  detail::require_memory(detail::alone, "counts", counts.data, counts.rows);
  using T = typename std::remove_const_t<decltype(counts)>::element_type;
  detail::require_layout(view);
  detail::regions<0, 1> memory;
  memory.read_layout(view);
  memory.write(counts.touched(), detail::alone, "counts");
  memory.require_apart();
  detail::require_range<T>(detail::alone, "largest count", min_of(view.longest, view.rows(at)));
  execute(where, detail::count_operation<std::remove_const_t<decltype(view)>, T>{view, at, counts});
}

/// Real tokens of a shard, of a layout on the host. O(runs of the shard).
/// \throws invalid_input for a rank out of range.
template <layout L>
  requires runs_on<host_t, L>
constexpr offset_t real_tokens(const L& layout, shard at) {
  const auto view = layout.view();
  view.require_place(at);
  offset_t count = 0;
  for (offset_t slot = 0; slot < view.sequences; ++slot) count += real_tokens(view, at, slot);
  return count;
}

}  // namespace seqpack
