/// \file
/// Layouts from bounds or position ids that another system made.
#pragma once

#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/pack/layout.hpp"

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
  /// Slot -> batch row, as in layout_options, into a batch of `batch` rows (default: as many rows
  /// as sequences).
  slot_order order = {};
  offset_t batch = dynamic;
};

namespace adopted {

/// Copies bounds after checking what can be checked of one array.
template <layout_index Index, class Bounds>
std::vector<Index> checked_bounds(Bounds&& bounds, const char* name, layout_error not_zero,
                                  layout_error decreases) {
  std::vector<Index> result;
  offset_t previous = 0;
  for (const auto entry : bounds) {
    const offset_t value = layout_inputs::to_offset(entry);
    const auto index = static_cast<offset_t>(result.size());
    if (index == 0 && value != 0) throw_status({not_zero, 0, value, 0}, "");
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

}  // namespace adopted

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
  layout_inputs::require_width(options.width);
  std::vector<Index> real = adopted::checked_bounds<Index>(
      cu, "cu_seqlens", layout_error::cu_first_not_zero, layout_error::cu_decreases);
  std::vector<Index> padded = adopted::checked_bounds<Index>(cu_padded, "cu_seqlens_padded",
                                                             layout_error::cu_padded_first_not_zero,
                                                             layout_error::cu_padded_decreases);
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
  adopted::require_lengths(real, padded, cp, options, sizes);

  sizes.batch = options.batch == dynamic ? sizes.sequences : options.batch;
  std::vector<Index> order(options.order ? options.order.size() : 0);
  std::vector<Index> slot_of(options.order ? static_cast<std::size_t>(max_of(sizes.batch, 0)) : 0);
  if (options.order) {
    if (static_cast<offset_t>(order.size()) != sizes.sequences) {
      reject("size of order", static_cast<offset_t>(order.size()),
             "it must be " + std::to_string(sizes.sequences) + ", the number of sequences");
    }
    layout_inputs::require_order(options.order.rows(), sizes.batch);
    layout_inputs::write_order<Index>(options.order.rows(), order, slot_of);
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
  const auto bounds = adopted::checked_bounds<Index>(
      cu, "cu_seqlens", layout_error::cu_first_not_zero, layout_error::cu_decreases);
  if (bounds.back() != total) {
    reject(entry_name("cu_seqlens", static_cast<offset_t>(bounds.size()) - 1),
           static_cast<offset_t>(bounds.back()),
           "the last entry must be " + std::to_string(total) + ", the tokens of the packed row");
  }
  return from_cu_seqlens<Index>(bounds, bounds, total, cp, options);
}

/// Adopts a row without padding from its position ids: a 0 starts a sequence, also after a 0.
///
/// \param position_ids any range of integers, T entries
/// \throws invalid_input unless the first is 0 and every other one is 0 or counts on by 1; then as
/// from_cu_seqlens.
///
/// O(T), allocates.
template <layout_index Index = std::int32_t, integer_range Ids,
          context_parallel_policy C = no_context_parallel>
packed_layout<no_padding, C, Index> from_position_ids(Ids&& position_ids, const C& cp = {},
                                                      const adopt_options& options = {}) {
  std::vector<offset_t> cu{0};
  offset_t row = 0;
  offset_t previous = -1;
  for (const auto entry : position_ids) {
    const offset_t id = layout_inputs::to_offset(entry);
    if (id == 0) {
      if (row > 0) cu.push_back(row);
    } else if (row == 0 || id != previous + 1) {
      reject(entry_name("position_ids", row), id,
             row == 0
                 ? std::string("the first must be 0")
                 : "it must be 0 or " + std::to_string(previous + 1) + ", one more than the last");
    }
    previous = id;
    ++row;
  }
  if (row > 0) cu.push_back(row);
  return from_cu_seqlens<Index>(cu, row, cp, options);
}

}  // namespace seqpack
