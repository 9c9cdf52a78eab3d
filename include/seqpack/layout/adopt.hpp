/// \file
/// Layouts from bounds or position ids that another system made.
#pragma once

#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/layout/layout.hpp"

namespace seqpack {

/// What an adopted layout may be told, and is then checked against.
struct adopt_options {
  /// S: real lengths above it are refused.
  offset_t width = max_tokens;
  /// The expected number of sequences, if not `dynamic`.
  offset_t sequences = dynamic;
  /// The largest padded length that the bounds' maker claims, if not `dynamic`.
  offset_t max_seqlen = dynamic;
  /// The last segment is a ghost: padding that belongs to no sequence.
  bool ghost = false;
  /// From position ids, which do not tell padding from tokens: how many tokens at the end of the row
  /// are a tail. They are the ghost, which needs to be told, or padding of the last sequence. Bounds
  /// say it themselves.
  offset_t tail = dynamic;
  /// Slot -> sequence, as in layout_options, into a batch of `batch` rows (default: as many rows
  /// as sequences). The order() of a layout is one.
  slot_order order = {};
  offset_t batch = dynamic;
};

namespace detail::adopted {

/// Copies bounds after checking what can be checked of one array.
template <layout_index Index, class Bounds>
std::vector<Index> checked_bounds(Bounds&& bounds, const char* name, layout_error decreases) {
  std::vector<Index> result;
  offset_t previous = 0;
  for (const auto entry : bounds) {
    const offset_t value = to_offset(entry);
    const auto index = static_cast<offset_t>(result.size());
    if (index == 0 && value != 0) {
      reject(entry_name(name, 0), std::to_string(entry), "the first entry must be 0");
    }
    if (value < previous) throw_status({decreases, index, value, previous}, "");
    if (value > max_total<Index>) {
      throw_status({layout_error::above_range, index, value, max_total<Index>},
                   entry_name(name, index), std::to_string(entry));
    }
    result.push_back(static_cast<Index>(value));
    previous = value;
  }
  if (result.empty()) {
    reject(std::string("size of ") + name, 0, "it must have at least 1 entry");
  }
  return result;
}

/// The rules of one sequence of adopted bounds; shared with the device.
template <class Rules>
SEQPACK_HD constexpr layout_status check(const Rules& rules, offset_t slot, offset_t real,
                                         offset_t padded) noexcept {
  if (real > padded) return {layout_error::real_above_padded, slot, real, padded};
  const layout_status status = rules.check_length(slot, real);
  return status.ok() ? rules.check_padded(slot, padded) : status;
}

template <class Index, context_parallel_policy C>
void require_lengths(const std::vector<Index>& cu, const std::vector<Index>& cu_padded, const C& cp,
                     const adopt_options& options, layout_view<no_padding, C, Index>& sizes) {
  const bounds_rules<Index, no_padding, C> rules{{}, cp, options.width};
  for (std::size_t k = 0; k + 1 < cu.size(); ++k) {
    const auto slot = static_cast<offset_t>(k);
    const offset_t real = cu[k + 1] - cu[k];
    const offset_t padded = cu_padded[k + 1] - cu_padded[k];
    const layout_status status = check(rules, slot, real, padded);
    if (!status.ok()) throw_status(status, "sequence " + std::to_string(k));
    if (slot == sizes.sequences && real != 0) {
      reject("real length of the ghost sequence", real, "it must be 0");
    }
    sizes.longest = max_of(sizes.longest, real);
    sizes.longest_padded = max_of(sizes.longest_padded, padded);
  }
  if (options.max_seqlen != dynamic && sizes.longest_padded > options.max_seqlen) {
    reject("max_seqlen", options.max_seqlen,
           "it must be at least " + std::to_string(sizes.longest_padded) +
               ", the longest padded length of the bounds");
  }
}

/// \throws invalid_input for a number that no layout has.
template <layout_index Index>
void require_options(const adopt_options& options) {
  const auto require = [](const char* name, offset_t value) {
    if (value == dynamic || (value >= 0 && value <= max_total<Index>)) return;
    reject(name, value, "it must be from 0 to " + std::to_string(max_total<Index>));
  };
  require("number of sequences", options.sequences);
  require("max_seqlen", options.max_seqlen);
  require("batch", options.batch);
  require("tail", options.tail);
}

/// What position ids tell of a row.
struct row_starts {
  std::vector<offset_t> starts;  ///< rows of the zeros
  offset_t total = 0;
  offset_t first_bad = max_tokens;  ///< the first id that neither is 0 nor counts on
  std::string bad_value;
  offset_t expected = 0;  ///< in its place, beside 0

  void require_good_before(offset_t end) const {
    if (first_bad >= end) return;
    reject(entry_name("position_ids", first_bad), bad_value,
           first_bad == 0
               ? std::string("the first must be 0")
               : "it must be 0 or " + std::to_string(expected) + ", one more than the last");
  }
};

template <integer_range Ids>
row_starts find_starts(Ids&& position_ids) {
  row_starts found;
  offset_t expected = 0;
  for (const auto entry : position_ids) {
    const offset_t id = to_bounded_offset(entry);
    if (id == 0) {
      found.starts.push_back(found.total);
    } else if (id != expected && found.first_bad == max_tokens) {
      found.first_bad = found.total;
      found.bad_value = std::to_string(entry);
      found.expected = expected;
    }
    expected = id + 1;
    ++found.total;
  }
  return found;
}

}  // namespace detail::adopted

/// Adopts the bounds of a packed row. Repeated entries are empty sequences.
///
/// \param cu, cu_padded any ranges of integers, one entry more than there are sequences
/// \param total T, what the row really holds; the last padded entry must be equal to it
/// \returns the same layout type as make_layout's without padding; the bounds are copied
/// \throws invalid_input unless both start at 0, do not decrease, have the same (and the expected)
/// number of entries, every real length is within its padded one and the width, every padded length
/// is a multiple of what the sharding divides by, and the last padded entry is T.
///
/// O(B), allocates.
template <layout_index Index = std::int32_t, integer_range Real, integer_range Padded,
          context_parallel_policy C = no_context_parallel>
packed_layout<no_padding, C, Index> from_cu_seqlens(Real&& cu, Padded&& cu_padded, offset_t total,
                                                    const C& cp = {},
                                                    const adopt_options& options = {}) {
  detail::require_width(options.width);
  detail::adopted::require_options<Index>(options);
  if (options.tail != dynamic) {
    reject("tail", options.tail, "it goes with position ids: bounds say where their tail is");
  }
  std::vector<Index> real =
      detail::adopted::checked_bounds<Index>(cu, "cu_seqlens", layout_error::cu_decreases);
  std::vector<Index> padded = detail::adopted::checked_bounds<Index>(
      cu_padded, "cu_seqlens_padded", layout_error::cu_padded_decreases);
  const auto entries = static_cast<offset_t>(real.size());
  const auto require_entries = [](const char* name, std::size_t size, offset_t expected) {
    if (static_cast<offset_t>(size) != expected) {
      reject(std::string("number of entries of ") + name, static_cast<offset_t>(size),
             "it must be " + std::to_string(expected) + ", one more than there are sequences");
    }
  };
  if (options.sequences != dynamic) {
    require_entries("cu_seqlens", real.size(), options.sequences + options.ghost + 1);
  }
  require_entries("cu_seqlens_padded", padded.size(), entries);
  if (options.ghost && entries < 2) {
    reject("number of entries of cu_seqlens", entries, "a ghost needs at least 2");
  }
  if (padded.back() != total) {
    throw_status({layout_error::total_differs, entries - 1, padded.back(), total}, "");
  }

  layout_view<no_padding, C, Index> sizes{.sequences = entries - 1 - options.ghost,
                                          .segments = entries - 1,
                                          .total = total,
                                          .padded = real.back() != padded.back(),
                                          .cp = cp};
  detail::adopted::require_lengths(real, padded, cp, options, sizes);

  sizes.batch = options.batch == dynamic ? sizes.sequences : options.batch;
  std::vector<Index> order(options.order ? options.order.size() : 0);
  std::vector<Index> slot_of(options.order ? static_cast<std::size_t>(sizes.batch) : 0);
  if (options.order) {
    if (static_cast<offset_t>(order.size()) != sizes.sequences) {
      reject("size of order", static_cast<offset_t>(order.size()),
             "it must be " + std::to_string(sizes.sequences) + ", the number of sequences");
    }
    options.order.visit([&]<class Row>(std::span<const Row> rows) {
      detail::require_order(rows, sizes.batch);
      detail::write_order<Index>(rows, std::span(order), std::span(slot_of));
    });
  } else if (sizes.batch != sizes.sequences) {
    reject("batch", sizes.batch,
           "without an order it must be " + std::to_string(sizes.sequences) +
               ", the number of sequences");
  }
  return {sizes, std::move(real), std::move(padded), std::move(order), std::move(slot_of)};
}

/// The same for a row without padding: one array of bounds.
template <layout_index Index = std::int32_t, integer_range Bounds,
          context_parallel_policy C = no_context_parallel>
packed_layout<no_padding, C, Index> from_cu_seqlens(Bounds&& cu, offset_t total, const C& cp = {},
                                                    const adopt_options& options = {}) {
  const auto bounds =
      detail::adopted::checked_bounds<Index>(cu, "cu_seqlens", layout_error::cu_decreases);
  if (bounds.back() != total) {
    reject(entry_name("cu_seqlens", static_cast<offset_t>(bounds.size()) - 1),
           static_cast<offset_t>(bounds.back()),
           "the last entry must be " + std::to_string(total) + ", the tokens of the packed row");
  }
  return from_cu_seqlens<Index>(bounds, bounds, total, cp, options);
}

/// Adopts a row from its position ids: a 0 starts a sequence, also after a 0. Without a tail the row
/// has no padding.
///
/// \param position_ids any range of integers, T entries
/// \param options with a `tail`, the last tokens of the row are padding whatever their ids are: of
/// the last sequence or, with `ghost`, of none
/// \throws invalid_input unless the first is 0 and every other one before the tail is 0 or counts on
/// by 1; for a ghost whose tail is not given, a tail that is longer than the row, and one that no
/// sequence can absorb; then as from_cu_seqlens.
///
/// O(T), allocates.
template <layout_index Index = std::int32_t, integer_range Ids,
          context_parallel_policy C = no_context_parallel>
packed_layout<no_padding, C, Index> from_position_ids(Ids&& position_ids, const C& cp = {},
                                                      const adopt_options& options = {}) {
  detail::adopted::require_options<Index>(options);
  if (options.ghost && options.tail == dynamic) {
    reject("tail", "not given",
           "position ids do not tell a ghost from a sequence: say how many tokens it has");
  }
  detail::adopted::row_starts found = detail::adopted::find_starts(position_ids);
  const offset_t total = found.total;
  const offset_t tail = options.tail == dynamic ? 0 : options.tail;
  if (tail > total) {
    reject("tail", tail, "it must be at most " + std::to_string(total) + ", the tokens of the row");
  }
  const offset_t real = total - tail;
  found.require_good_before(real);

  std::vector<offset_t>& cu = found.starts;
  while (!cu.empty() && cu.back() >= real) cu.pop_back();
  if (cu.empty() && tail > 0 && !options.ghost) {
    throw_status({layout_error::nobody_absorbs, -1, 0, tail}, "");
  }
  cu.push_back(real);
  if (options.ghost) cu.push_back(real);
  std::vector<offset_t> cu_padded = cu;
  cu_padded.back() = total;
  adopt_options of_bounds = options;
  of_bounds.tail = dynamic;
  return from_cu_seqlens<Index>(cu, cu_padded, total, cp, of_bounds);
}

}  // namespace seqpack
