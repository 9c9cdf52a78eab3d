/// \file
/// The one map: batch (b, s) <-> row t <-> shard (rank, index).
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_status.hpp"
#include "seqpack/layout/order.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/policy/detail/visit.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

/// The integer type of cu_seqlens.
template <class I>
concept layout_index = std::same_as<I, std::int32_t> || std::same_as<I, std::int64_t>;

/// A token of a packed layout, named by its slot.
struct token_ref {
  offset_t slot;    ///< of the packed row; the ghost's is the number of sequences
  offset_t index;   ///< position in the sequence, padding counted on
  offset_t length;  ///< real tokens of the sequence

  SEQPACK_HD constexpr bool real() const noexcept { return index < length; }
};

/// Consecutive tokens of one sequence that are consecutive in a place too.
struct token_run {
  token_ref first;
  offset_t count;
};

/// All the arithmetic of a packed layout, for host and device alike. It owns nothing: the arrays
/// belong to a packed_layout, a device_layout or the caller, and live in host or device memory.
///
/// A layout has `sequences` slots in the packed row and `segments` entries in its bounds: one more
/// where there is a ghost. The padding is in the bounds; the policy that made it is not kept. Without
/// an order, slot k holds sequence k of the batch.
///
/// The functions that look at the bounds must be called where the arrays live. Complexity: O(1),
/// but O(log segments) for `slot_at` and the `token_at` functions. Nothing here allocates,
/// throws or synchronises, except `require_place`, which throws.
template <context_parallel_policy ContextParallel, layout_index Index = std::int32_t>
struct layout_view {
  using context_parallel_type = ContextParallel;
  using index_type = Index;

  const Index* cu = nullptr;         ///< segments + 1 prefix sums of the real lengths
  const Index* cu_padded = nullptr;  ///< segments + 1 prefix sums of the padded lengths
  const Index* order = nullptr;      ///< slot -> sequence; null: the same
  const Index* slot_of = nullptr;    ///< sequence -> slot, -1 for a sequence that is not packed
  offset_t sequences = 0;            ///< packed sequences, which is the number of slots
  offset_t segments = 0;             ///< slots and the ghost
  offset_t batch = 0;                ///< B, sequences of the batch
  offset_t total = 0;                ///< T
  offset_t longest = 0;              ///< the longest real length, or a bound of it
  offset_t longest_padded = 0;       ///< max_seqlen, or a bound of it
  bool padded = false;               ///< whether there is padding, or can be
  ContextParallel cp{};
  offset_t dropped = 0;         ///< real tokens at the end of every sequence that count as padding
  offset_t first_segment = 0;   ///< what entry 0 of cu, cu_padded and order is about; see window_of
  offset_t first_sequence = 0;  ///< the sequence that entry 0 of slot_of is about
  /// Where calls on a device tell of values that they had to refuse, or null; see device_layout.
  layout_status* status = nullptr;

  constexpr const layout_view& view() const noexcept { return *this; }

  /// The same map with its context-parallel policy chosen at run time, so that layouts of all sizes
  /// and shardings are one type: layout_view<context_parallel<dynamic, any_sharding>>.
  template <context_parallel_policy Other>
    requires std::convertible_to<ContextParallel, Other> && (!std::same_as<ContextParallel, Other>)
  constexpr operator layout_view<Other, Index>() const noexcept {
    return {.cu = cu,
            .cu_padded = cu_padded,
            .order = order,
            .slot_of = slot_of,
            .sequences = sequences,
            .segments = segments,
            .batch = batch,
            .total = total,
            .longest = longest,
            .longest_padded = longest_padded,
            .padded = padded,
            .cp = cp,
            .dropped = dropped,
            .first_segment = first_segment,
            .first_sequence = first_sequence,
            .status = status};
  }

  /// The same rows, in which every sequence ends `count` tokens earlier (an empty one stays empty):
  /// for what the last tokens of a sequence do not have, such as next-token log-probabilities. The
  /// spans of the bounds stay those of the whole sequences. Counts of several calls add up.
  /// \throws invalid_input for a negative count.
  constexpr layout_view without_last(offset_t count) const {
    if (count < 0) reject("count", count, "it must be at least 0");
    const offset_t fewer = min_of(count, max_tokens);  // than any sequence has
    layout_view shorter = *this;
    shorter.dropped = min_of(dropped + fewer, max_tokens);
    shorter.longest = max_of(longest - fewer, 0);
    shorter.padded = padded || count > 0;
    return shorter;
  }

  // Sizes, all known on the host.

  constexpr offset_t batch_size() const noexcept { return batch; }
  constexpr offset_t total_tokens() const noexcept { return total; }
  constexpr offset_t shard_tokens() const noexcept { return total / cp.size(); }
  constexpr offset_t max_seqlen() const noexcept { return longest_padded; }
  constexpr offset_t max_length() const noexcept { return longest; }
  constexpr bool has_padding() const noexcept { return padded; }
  constexpr bool has_ghost() const noexcept { return segments > sequences; }
  /// The sequence in each slot where the layout has an order, else no order: what slot_order takes.
  constexpr basic_slot_order<Index> slot_sequences() const noexcept {
    if (order == nullptr && slot_of == nullptr) return {};
    return std::span<const Index>(order, static_cast<std::size_t>(sequences));
  }
  constexpr std::span<const Index> cu_seqlens() const noexcept {
    return {cu, static_cast<std::size_t>(segments + 1)};
  }
  constexpr std::span<const Index> cu_seqlens_padded() const noexcept {
    return {cu_padded, static_cast<std::size_t>(segments + 1)};
  }

  SEQPACK_HD constexpr offset_t rows(full_row_t) const noexcept { return total; }
  SEQPACK_HD constexpr offset_t rows(all_shards_t) const noexcept { return total; }
  SEQPACK_HD constexpr offset_t rows(shard) const noexcept { return divide(total, cp.size()); }

  /// \throws invalid_input for a shard of a rank that does not exist.
  constexpr void require_place(full_row_t) const {}
  constexpr void require_place(all_shards_t) const {}
  constexpr void require_place(shard s) const { detail::require_rank(s.rank, cp.size()); }

  // Slots.

  SEQPACK_HD constexpr offset_t begin_of(offset_t slot) const noexcept {
    return static_cast<offset_t>(cu_padded[slot - first_segment]);
  }
  SEQPACK_HD constexpr offset_t padded_length(offset_t slot) const noexcept {
    return begin_of(slot + 1) - begin_of(slot);
  }
  /// Real tokens. Never more than the padded length, even for the arrays of a capacity layout whose
  /// lengths did not fit.
  SEQPACK_HD constexpr offset_t length(offset_t slot) const noexcept {
    const Index* const bounds = cu + (slot - first_segment);
    const offset_t real = min_of(
        static_cast<offset_t>(bounds[1]) - static_cast<offset_t>(bounds[0]), padded_length(slot));
    return dropped == 0 ? real : max_of(real - dropped, 0);
  }
  /// The sequence of a slot; not for the ghost.
  SEQPACK_HD constexpr offset_t sequence_in(offset_t slot) const noexcept {
    return order == nullptr ? slot : static_cast<offset_t>(order[slot - first_segment]);
  }
  /// The slot of a sequence, or -1.
  SEQPACK_HD constexpr offset_t slot(offset_t sequence) const noexcept {
    return slot_of == nullptr ? sequence
                              : static_cast<offset_t>(slot_of[sequence - first_sequence]);
  }
  /// Where a slot's share begins in a shard, 0 <= slot <= segments. The share ends where that of the
  /// next slot begins. Where sequences are cut, all ranks have equal shares.
  SEQPACK_HD constexpr offset_t shard_begin(shard at, offset_t slot) const noexcept {
    if (!cp.cuts_row()) return divide(begin_of(slot), cp.size());
    const offset_t per_rank = rows(at);
    return max_of(min_of(begin_of(slot) - at.rank * per_rank, per_rank), 0);
  }
  /// What the sharding cuts, as a slot sees it: its own padded sequence, or the row.
  struct cut {
    offset_t begin;   ///< token 0 of the slot in it
    offset_t length;  ///< its tokens
  };
  SEQPACK_HD constexpr cut cut_of(offset_t slot) const noexcept {
    return cp.cuts_row() ? cut{begin_of(slot), total} : cut{0, padded_length(slot)};
  }

  /// The slot that owns row t, 0 <= t < total: the last one that begins at or before it, so that
  /// empty sequences own nothing.
  SEQPACK_HD constexpr offset_t slot_at(offset_t row) const noexcept {
    offset_t low = first_segment;
    offset_t high = segments;
    while (high - low > 1) {
      const offset_t middle = low + (high - low) / 2;
      (begin_of(middle) <= row ? low : high) = middle;
    }
    return low;
  }

  // From a place to the token that it holds.

  SEQPACK_HD constexpr token_ref token_at(full_row_t, offset_t row) const noexcept {
    const offset_t s = slot_at(row);
    return {s, row - begin_of(s), length(s)};
  }
  SEQPACK_HD constexpr token_ref token_at(shard at, offset_t index) const noexcept {
    if (cp.cuts_row()) return token_at(full_row, cp.to_token({at.rank, index}, total));
    const offset_t s = slot_at(index * cp.size());
    return {s, cp.to_token({at.rank, index - shard_begin(at, s)}, padded_length(s)), length(s)};
  }
  SEQPACK_HD constexpr token_ref token_at(all_shards_t, offset_t row) const noexcept {
    const offset_t per_rank = rows(shard{});
    const offset_t rank = divide(row, per_rank);
    return token_at(shard{rank}, row - rank * per_rank);
  }

  // From a token to where a place holds it.

  SEQPACK_HD constexpr offset_t row_of(full_row_t, offset_t slot, offset_t index) const noexcept {
    return begin_of(slot) + index;
  }
  /// The index in the rank's shard, or -1 where another rank owns the token.
  SEQPACK_HD constexpr offset_t row_of(shard at, offset_t slot, offset_t index) const noexcept {
    const cut whole = cut_of(slot);
    return row_at(at, slot, cp.to_shard(whole.begin + index, whole.length));
  }
  SEQPACK_HD constexpr offset_t row_of(all_shards_t at, offset_t slot,
                                       offset_t index) const noexcept {
    const cut whole = cut_of(slot);
    return row_at(at, slot, cp.to_shard(whole.begin + index, whole.length));
  }

  // The same for a token whose position in the shares of what is cut is known.

  SEQPACK_HD constexpr offset_t row_at(shard at, offset_t slot, shard_position p) const noexcept {
    return p.rank == at.rank ? share_begin(slot) + p.index : -1;
  }
  SEQPACK_HD constexpr offset_t row_at(all_shards_t, offset_t slot,
                                       shard_position p) const noexcept {
    return p.rank * rows(shard{}) + share_begin(slot) + p.index;
  }
  /// The row of a shard that a position of 0 in what is cut is at, on every rank.
  SEQPACK_HD constexpr offset_t share_begin(offset_t slot) const noexcept {
    return cp.cuts_row() ? 0 : divide(begin_of(slot), cp.size());
  }
};

/// A layout or an owner of one.
template <class L>
concept layout = requires(const L& l) {
  typename L::index_type;
  typename L::context_parallel_type;
  {
    l.view()
  } -> std::convertible_to<layout_view<typename L::context_parallel_type, typename L::index_type>>;
};

/// An owner knows where its arrays live, and an executor where it runs: mixing them up does not
/// compile. A bare layout_view, which does not know, is taken at the caller's word.
template <class E, class L>
concept runs_on = executor<E> && layout<L> &&(
    !requires { L::on_device; } ||
    requires { requires executor_traits<std::remove_cvref_t<E>>::on_device == L::on_device; });

/// Calls f(row, token_run) for every run of the rows [first, last) of a place, in order: the runs
/// of a full row are whole sequences, those of a shard what its sharding keeps together. Host only;
/// the bounds must be readable. O(log segments + runs).
template <class View, class F>
constexpr void for_each_run(const View& view, full_row_t, offset_t first, offset_t last, F&& f) {
  if (first >= last) return;
  for (offset_t s = view.slot_at(first); first < last; ++s) {
    const offset_t begin = view.begin_of(s);
    const offset_t count = min_of(begin + view.padded_length(s), last) - first;
    if (count <= 0) continue;
    f(first, token_run{{s, first - begin, view.length(s)}, count});
    first += count;
  }
}

/// The runs of one shard.
template <class View, class F>
constexpr void for_each_run(const View& view, shard at, offset_t first, offset_t last, F&& f) {
  if (first >= last) return;
  detail::with_static_sharding(view.cp, [&](const auto& cp) {
    using policy = std::remove_cvref_t<decltype(cp)>;
    const auto runs_of_row = [&] {  // also where one rank has all of it
      const offset_t base = cp.to_token({at.rank, 0}, view.total);
      for_each_run(view, full_row, base + first, base + last,
                   [&](offset_t row, const token_run& run) { f(row - base, run); });
    };
    // Each kind of sharding calls f in one place, so that compilers put it there.
    if constexpr (detail::always_cuts_row<policy>) {
      runs_of_row();
    } else {
      if constexpr (detail::may_cut_row<policy>) {
        if (cp.cuts_row()) return runs_of_row();
      }
      const auto begin_in_shard = [&](offset_t s) { return divide(view.begin_of(s), cp.size()); };
      offset_t row = first;
      for (offset_t s = view.slot_at(row * cp.size()); row < last; ++s) {
        const offset_t begin = begin_in_shard(s);
        const offset_t end = min_of(begin_in_shard(s + 1), last);
        while (row < end) {
          const shard_position p{at.rank, row - begin};
          const offset_t padded = view.padded_length(s);
          const offset_t count = min_of(cp.run(p, padded), end - row);
          f(row, token_run{{s, cp.to_token(p, padded), view.length(s)}, count});
          row += count;
        }
      }
    }
  });
}

/// The runs of all shards, rank after rank.
template <class View, class F>
constexpr void for_each_run(const View& view, all_shards_t, offset_t first, offset_t last, F&& f) {
  if (first >= last) return;
  const offset_t per_rank = view.rows(shard{});
  for (offset_t rank = first / per_rank; first < last; ++rank) {
    const offset_t base = rank * per_rank;
    const offset_t end = min_of(base + per_rank, last);
    for_each_run(view, shard{rank}, first - base, end - base,
                 [&](offset_t row, const token_run& run) { f(base + row, run); });
    first = end;
  }
}

/// Calls f(index, row, count) for every run of the tokens [first, last) of the sequence in a
/// slot: they are at `row` to `row + count - 1` of the place, or nowhere in it (row -1). Host only.
template <class View, class F>
constexpr void for_each_source_run(const View& view, full_row_t, offset_t slot, offset_t first,
                                   offset_t last, F&& f) {
  if (first < last) f(first, view.begin_of(slot) + first, last - first);
}

/// The same in one shard or in all.
template <class View, place Place, class F>
constexpr void for_each_source_run(const View& view, Place at, offset_t slot, offset_t first,
                                   offset_t last, F&& f) {
  if (first >= last) return;  // also for a sequence that is not packed, which has no slot
  const auto cut = view.cut_of(slot);
  detail::with_static_sharding(view.cp, [&](const auto& cp) {
    for (offset_t token = first; token < last;) {
      const shard_position p = cp.to_shard(cut.begin + token, cut.length);
      const offset_t count = min_of(cp.run(p, cut.length), last - token);
      f(token, view.row_at(at, slot, p), count);
      token += count;
    }
  });
}

}  // namespace seqpack
