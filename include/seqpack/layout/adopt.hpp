/// \file
/// Layouts from bounds or position ids that another system made.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/layout/detail/adopt.hpp"
#include "seqpack/layout/detail/status.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/layout_status.hpp"
#include "seqpack/layout/order.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

/// Options of an adopted layout; what is given is checked.
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
  /// are a tail: with `ghost` they are the ghost, else padding of the last sequence. Bounds contain
  /// the tail already.
  offset_t tail = dynamic;
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
  if (options.tail != dynamic) {
    reject("tail", options.tail, "it goes with position ids: bounds say where their tail is");
  }
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
packed_layout<C, Index> from_position_ids(Ids&& position_ids, const C& cp = {},
                                          const adopt_options& options = {}) {
  detail::require_options<Index>(options);
  if (options.ghost && options.tail == dynamic) {
    reject("tail", "not given",
           "position ids do not tell a ghost from a sequence: say how many tokens it has");
  }
  detail::row_starts found = detail::find_starts(position_ids);
  const offset_t total = found.total;
  const offset_t tail = options.tail == dynamic ? 0 : options.tail;
  if (tail > total) {
    reject("tail", tail, {"it must be at most ", total, ", the tokens of the row"});
  }
  const offset_t real = total - tail;
  found.require_good_before(real);

  std::vector<offset_t>& cu = found.starts;
  while (!cu.empty() && cu.back() >= real) cu.pop_back();
  if (cu.empty() && tail > 0 && !options.ghost) {
    detail::throw_status({layout_error::nobody_absorbs, -1, 0, tail}, "");
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
