/// \file
/// Layouts from bounds, position ids or segment ids that another system made.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/layout/detail/adopt.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/layout_status.hpp"
#include "seqpack/layout/order.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

struct adopt_options;

namespace detail {
template <layout_index Index, context_parallel_policy C>
packed_layout<C, Index> adopt_row(const row_bounds& bounds, const C& cp,
                                  const adopt_options& options);
}  // namespace detail

/// Options of an adopted layout; what is given is checked.
struct adopt_options {
  /// S: real lengths above it are refused.
  offset_t width = max_tokens;
  /// The expected number of sequences, if not `dynamic`.
  offset_t sequences = dynamic;
  /// The largest padded length that the bounds' maker claims, if not `dynamic`.
  offset_t max_seqlen = dynamic;
  /// The tail of the row is a ghost: padding that belongs to no sequence. Bounds have it as their
  /// last segment.
  bool ghost = false;
  /// How many tokens at the end of the row are the tail, whatever their ids are: with `ghost` they are
  /// the ghost, else padding of the last sequence. Position ids do not tell padding from tokens;
  /// segment ids show a tail of `padding_id`; bounds contain it, and do not take this.
  offset_t tail = dynamic;
  /// From position ids: the id that starts a sequence.
  offset_t position_start = 0;
  /// From segment ids: the id of padding, or none. A sequence index as per_token writes it has none
  /// or, where there is a ghost, the number of sequences.
  std::optional<offset_t> padding_id = 0;
  /// Slot -> sequence, as in layout_options, into a batch of `batch` sequences (default: as many
  /// as there are slots). The order() of a layout is one.
  slot_order order = {};
  offset_t batch = dynamic;
};

/// Adopts the bounds of a packed row. Repeated entries are empty sequences.
///
/// \param cu, cu_padded any ranges of integers, one entry more than there are sequences
/// \param total T, what the row really holds; the last padded entry must be equal to it
/// \returns the same layout type as make_layout's; the bounds are copied
/// \throws invalid_input unless both start at 0, do not decrease, have the same (and the expected)
/// number of entries, every real length is within its padded one and the width, every padded length
/// is a multiple of what the sharding divides by, and the last padded entry is T.
///
/// O(B), allocates.
template <layout_index Index = std::int32_t, integer_range Real, integer_range Padded,
          context_parallel_policy C = no_context_parallel>
packed_layout<C, Index> from_cu_seqlens(Real&& cu, Padded&& cu_padded, offset_t total,
                                        const C& cp = {}, const adopt_options& options = {}) {
  detail::require_width(options.width);
  detail::require_options<Index>(options);
  detail::require_plain_bounds(options);
  std::vector<Index> real =
      detail::checked_bounds<Index>(cu, "cu_seqlens", layout_error::cu_decreases);
  std::vector<Index> padded = detail::checked_bounds<Index>(cu_padded, "cu_seqlens_padded",
                                                            layout_error::cu_padded_decreases);
  auto made = detail::adopt(std::move(real), std::move(padded), total,
                            detail::rules_of_bounds<Index>(cp, options.width), options);
  return {detail::view_of_sizes<Index>(made.sizes, made.batch, cp), std::move(made.arrays)};
}

/// The same for a row without padding: one array of bounds.
template <layout_index Index = std::int32_t, integer_range Bounds,
          context_parallel_policy C = no_context_parallel>
packed_layout<C, Index> from_cu_seqlens(Bounds&& cu, offset_t total, const C& cp = {},
                                        const adopt_options& options = {}) {
  const auto bounds = detail::checked_bounds<Index>(cu, "cu_seqlens", layout_error::cu_decreases);
  if (bounds.back() != total) {
    reject(entry_name("cu_seqlens", static_cast<offset_t>(bounds.size()) - 1),
           static_cast<offset_t>(bounds.back()),
           {"the last entry must be ", total, ", the tokens of the packed row"});
  }
  return from_cu_seqlens<Index>(bounds, bounds, total, cp, options);
}

/// Adopts a row from its position ids: a 0, or `options.position_start`, starts a sequence, also
/// after another one. Without a tail the row has no padding.
///
///     from_position_ids(std::array{0, 1, 2, 0, 1})                 // lengths 3, 2
///     from_position_ids(std::array{0, 1, 2, 0, 1, 0, 0, 0}, no_context_parallel{},
///                       {.ghost = true, .tail = 3})                // and a ghost of 3 tokens
///
/// \param position_ids any range of integers, T entries
/// \param options with a `tail`, the last tokens of the row are padding whatever their ids are
/// \throws invalid_input unless the first starts a sequence and every other one before the tail does
/// so or counts on by 1; for a ghost whose tail is not given, a tail that is longer than the row,
/// and one that no sequence can absorb; then as from_cu_seqlens.
///
/// O(T), allocates. Empty sequences cannot be seen.
template <layout_index Index = std::int32_t, integer_range Ids,
          context_parallel_policy C = no_context_parallel>
packed_layout<C, Index> from_position_ids(Ids&& position_ids, const C& cp = {},
                                          const adopt_options& options = {}) {
  detail::require_positions<Index>(options);
  const auto found = detail::sequences_in_positions(position_ids, options);
  return detail::adopt_row<Index>(detail::bounds_of(found, options.ghost), cp, options);
}

/// The same for a row whose sequences have padding that counts on, as per_token writes it.
///
/// \param lengths real tokens of each slot, any range of integers. Those that are 0 need no tokens in
/// the row; where fewer sequences have tokens than there are slots, they have none, except the last,
/// which may have a tail.
/// \throws invalid_input also where the row shows other sequences than the lengths, and for a length
/// above the tokens of its sequence.
template <layout_index Index = std::int32_t, integer_range Ids, integer_range Lengths,
          context_parallel_policy C = no_context_parallel>
packed_layout<C, Index> from_position_ids(Ids&& position_ids, Lengths&& lengths, const C& cp = {},
                                          const adopt_options& options = {}) {
  detail::require_positions<Index>(options);
  const auto real = detail::lengths_of_slots(lengths);
  const auto found = detail::sequences_in_positions(position_ids, options);
  return detail::adopt_row<Index>(detail::bounds_of(found, real, options.ghost), cp, options);
}

/// Adopts a row from an id for each token that says which sequence it belongs to. A change of the id
/// starts a sequence; tokens of `options.padding_id` are padding of the sequence before them and, at
/// the end of the row, the tail: with `options.ghost` the ghost, else padding of the last sequence.
///
///     from_segment_ids(std::array{1, 1, 2, 2, 2, 0})  // lengths 2, 3; the tail is absorbed
///     from_segment_ids(std::array{7, 7, 4, -1}, no_context_parallel{},
///                      {.ghost = true, .padding_id = -1})  // lengths 2, 1, a ghost of 1 token
///
/// \param segment_ids any range of integers, T entries; the ids are any numbers in any order
/// \throws invalid_input for an id that returns after other ids or padding, naming the entry and where
/// the id ended before; for padding before the first sequence; without a padding id for a ghost
/// whose tail is not given; for a tail that is longer than the row, and one that no sequence can
/// absorb; then as from_cu_seqlens.
///
/// O(T) for ids that grow, else O(T + B log B); allocates. Empty sequences cannot be seen.
template <layout_index Index = std::int32_t, integer_range Ids,
          context_parallel_policy C = no_context_parallel>
packed_layout<C, Index> from_segment_ids(Ids&& segment_ids, const C& cp = {},
                                         const adopt_options& options = {}) {
  detail::require_segments<Index>(options);
  const auto found = detail::sequences_in_segments(segment_ids, options);
  return detail::adopt_row<Index>(detail::bounds_of(found, options.ghost), cp, options);
}

/// The same for a row whose padding has the ids of its sequences, as per_token writes it.
/// \param lengths as for position ids
template <layout_index Index = std::int32_t, integer_range Ids, integer_range Lengths,
          context_parallel_policy C = no_context_parallel>
packed_layout<C, Index> from_segment_ids(Ids&& segment_ids, Lengths&& lengths, const C& cp = {},
                                         const adopt_options& options = {}) {
  detail::require_segments<Index>(options);
  const auto real = detail::lengths_of_slots(lengths);
  const auto found = detail::sequences_in_segments(segment_ids, options);
  return detail::adopt_row<Index>(detail::bounds_of(found, real, options.ghost), cp, options);
}

namespace detail {

/// The bounds that were found in a row, adopted.
template <layout_index Index, context_parallel_policy C>
packed_layout<C, Index> adopt_row(const row_bounds& bounds, const C& cp,
                                  const adopt_options& options) {
  adopt_options of_bounds = options;
  of_bounds.tail = dynamic;
  of_bounds.position_start = 0;
  of_bounds.padding_id = 0;
  return from_cu_seqlens<Index>(bounds.cu, bounds.cu_padded, bounds.cu_padded.back(), cp,
                                of_bounds);
}

}  // namespace detail

}  // namespace seqpack
