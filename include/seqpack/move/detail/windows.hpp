/// \file
/// Windows: the part of a layout that some rows need, with its bounds in the memory of the threads
/// that work on them. The bounds are found and loaded once for all rows, in a few wide accesses;
/// then the map's own arithmetic looks them up there.
// For the folders above too.
#pragma once

#include <cstdint>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/place.hpp"

namespace seqpack::detail {

/// Memory of a window, shared by the threads of a block; not initialised.
template <class Index>
struct window_memory {
  /// The most segments that a window holds.
  static constexpr std::int32_t capacity = 512;

  Index cu[capacity + 1];
  Index cu_padded[capacity + 1];
  Index slots[capacity];  ///< the order of the segments, or the slots of the sequences
  /// What is there: segments or sequences from `first` on, and the rows of the full row that the
  /// segments are. All threads have read it before any writes it.
  offset_t first;
  offset_t count;
  offset_t begin;
  offset_t end;
};

/// A part of a layout whose arrays are in a window's memory, and the last row that it is good for.
template <class View>
struct window {
  View view;
  offset_t last;
};

/// What threads look at together in one round: entries one after another, or with equal distances.
inline constexpr std::int32_t search_probes = 32;

/// The last segment in [low, high) that begins at or before a row, which segment `low` does.
template <class Threads, class View>
SEQPACK_HD offset_t search_segment(const Threads& threads, const View& view, offset_t low,
                                   offset_t high, offset_t row) {
  while (high - low > 1) {
    const offset_t step = (high - low + search_probes - 1) / search_probes;
    const std::int32_t found = threads.count_of(search_probes, [&](std::int32_t k) {
      const offset_t segment = low + k * step;
      return segment < high && view.begin_of(segment) <= row;
    });
    low += (found - 1) * step;
    high = min_of(low + step, high);
  }
  return low;
}

/// The same in the whole layout, beginning where the last search ended: rows are mostly asked for
/// in their order.
template <class Threads, class View>
SEQPACK_HD offset_t search_segment_from(const Threads& threads, const View& view, offset_t hint,
                                        offset_t row) {
  const std::int32_t found = threads.count_of(search_probes, [&](std::int32_t k) {
    return hint + k < view.segments && view.begin_of(hint + k) <= row;
  });
  if (found == 0) return search_segment(threads, view, 0, hint, row);
  if (found < search_probes) return hint + found - 1;
  return search_segment(threads, view, hint + found - 1, view.segments, row);
}

/// Loads the bounds of the segments from `first` on, until one begins behind `last_row` or the
/// memory is full. How many segments there are then, which may be more than are asked for; at least
/// one, which is empty where the layout has none.
template <class Threads, class View>
SEQPACK_HD offset_t load_bounds(const Threads& threads, const View& view, offset_t first,
                                offset_t last_row,
                                window_memory<typename View::index_type>& memory) {
  using index = typename View::index_type;
  constexpr std::int32_t capacity = window_memory<index>::capacity;
  const offset_t most = max_of(1, min_of(capacity, view.segments - first));
  // Mostly a few are enough; where not, there will be many.
  offset_t loaded = 0;
  std::int32_t chunk = search_probes / 2;
  std::int32_t inside = chunk + 1;
  while (inside > chunk && loaded < most) {
    chunk *= 2;
    // One entry more: the end of the last segment.
    inside = threads.count_of(chunk + 1, [&](std::int32_t k) {
      const offset_t entry = loaded + k;
      if (entry > most) return false;
      const offset_t segment = min_of(first + entry, view.segments);
      const index begin = view.cu_padded[segment];
      memory.cu[entry] = view.cu[segment];
      memory.cu_padded[entry] = begin;
      if (entry < most && segment < view.sequences) {
        memory.slots[entry] = static_cast<index>(view.sequence_in(segment));
      }
      return static_cast<offset_t>(begin) <= last_row;
    });
    loaded = min_of(loaded + chunk, most);
  }
  return loaded;
}

/// The window of rows of the full row: [first, last], or as many of them as it has room for.
template <class Threads, class View>
SEQPACK_HD window<View> window_of_row(const Threads& threads, const View& view, offset_t first,
                                      offset_t last,
                                      window_memory<typename View::index_type>& memory) {
  // Mostly these rows go on where the last ones ended, in sequences that are there already.
  if (first < memory.begin || last >= memory.end) {
    const offset_t segment = search_segment_from(threads, view, memory.first, first);
    const offset_t count = load_bounds(threads, view, segment, last, memory);
    if (threads.rank() == 0) {
      memory.first = segment;
      memory.count = count;
      memory.begin = static_cast<offset_t>(memory.cu_padded[0]);
      // Where lengths were refused, rows are left behind the last segment; they are its padding.
      const bool is_last = segment + count >= view.segments;
      memory.end = is_last ? max_tokens : static_cast<offset_t>(memory.cu_padded[count]);
    }
    threads.sync();
  }
  View near = view;
  near.first_segment = memory.first;
  near.segments = memory.first + memory.count;
  near.cu = memory.cu;
  near.cu_padded = memory.cu_padded;
  near.order = memory.slots;
  return {near, min_of(last, memory.end - 1)};
}

/// Before the first window.
template <class Threads, class Index>
SEQPACK_HD void prepare_window(const Threads& threads, window_memory<Index>& memory) {
  if (threads.rank() == 0) memory.first = memory.count = memory.begin = memory.end = 0;
  threads.sync();
}

/// The window of the rows of a place from `first` on, to `last` or an earlier one, and at least of
/// `first`. All threads get the same; they must have finished with the window before.
template <class Threads, class View>
SEQPACK_HD window<View> window_of(const Threads& threads, const View& view, full_row_t,
                                  offset_t first, offset_t last,
                                  window_memory<typename View::index_type>& memory) {
  return window_of_row(threads, view, first, last, memory);
}
/// The same of one shard.
template <class Threads, class View>
SEQPACK_HD window<View> window_of(const Threads& threads, const View& view, shard at,
                                  offset_t first, offset_t last,
                                  window_memory<typename View::index_type>& memory) {
  if (view.cp.cuts_row()) {
    const offset_t base = at.rank * view.rows(at);
    const auto near = window_of_row(threads, view, base + first, base + last, memory);
    return {near.view, near.last - base};
  }
  const offset_t ranks = view.cp.size();
  const auto near = window_of_row(threads, view, first * ranks, last * ranks, memory);
  return {near.view, divide(near.last, ranks)};
}
/// The same of all shards, within the first row's.
template <class Threads, class View>
SEQPACK_HD window<View> window_of(const Threads& threads, const View& view, all_shards_t,
                                  offset_t first, offset_t last,
                                  window_memory<typename View::index_type>& memory) {
  const offset_t per_rank = view.rows(shard{});
  const offset_t rank = divide(first, per_rank);
  const offset_t base = rank * per_rank;
  const auto near = window_of(threads, view, shard{rank}, first - base,
                              min_of(last - base, per_rank - 1), memory);
  return {near.view, base + near.last};
}

/// The window of the sequences [first, last], or as many of them as it has room for; `last` is
/// one of them. It numbers sequences in its own way, because neighbours in the batch may be
/// anywhere in the packed row.
template <class Threads, class View>
SEQPACK_HD window<View> window_of_batch(const Threads& threads, const View& view, offset_t first,
                                        offset_t last,
                                        window_memory<typename View::index_type>& memory) {
  using index = typename View::index_type;
  constexpr offset_t most = window_memory<index>::capacity / 2;
  constexpr offset_t least = 16;
  if (first < memory.first || last >= memory.first + memory.count) {
    const offset_t wanted = min_of(max_of(last - first + 1, least), most);
    const offset_t count = min_of(wanted, view.batch - first);
    // Slot 2 k is that of the k-th sequence: the ends of neighbours need not meet.
    threads.count_of(static_cast<std::int32_t>(2 * count), [&](std::int32_t k) {
      const offset_t slot = view.slot(first + k / 2);
      const offset_t entry = slot + k % 2;
      memory.cu[k] = slot < 0 ? 0 : view.cu[entry];
      memory.cu_padded[k] = slot < 0 ? 0 : view.cu_padded[entry];
      if (k % 2 == 0) memory.slots[k / 2] = static_cast<index>(slot < 0 ? -1 : k);
      return true;
    });
    if (threads.rank() == 0) {
      memory.first = first;
      memory.count = count;
    }
    threads.sync();
  }
  View near = view;
  near.cu = memory.cu;
  near.cu_padded = memory.cu_padded;
  near.slot_of = memory.slots;
  near.first_sequence = memory.first;
  return {near, min_of(last, memory.first + memory.count - 1)};
}

}  // namespace seqpack::detail
