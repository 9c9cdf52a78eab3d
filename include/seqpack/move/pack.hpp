/// \file
/// pack: from a batch to the packed row, one shard, or all shards.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/detail/checks.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/move/detail/bulk_move.hpp"
#include "seqpack/move/detail/pack_move.hpp"
#include "seqpack/move/field.hpp"

namespace seqpack {

/// Packs one or several tensors over one layout.
///
///     pack(host, layout, full_row, field(ids, packed_ids), field(hidden, packed_hidden, 0.5f));
///     pack(host, layout, shard{rank}, field(ids, my_ids));
///
/// Every element of every target is written: real tokens, and the field's fill value everywhere
/// else. Pack with fill 0 is the transpose of unpack with fill 0, so it is unpack's backward pass.
///
/// \param where `host`, a multi-threaded host executor, a CUDA stream, or a Thrust execution
/// policy; the layout's arrays and all tensors must live there
/// \param at full_row: targets are [T, D]; shard{rank}: [T / CP, D]; all_shards: [CP, T / CP, D],
/// given as CP * T / CP rows
/// \param all fields: sources [B, S, D] of any strides, targets as `at` says; element type, D and fill
/// value may differ from field to field
/// \throws invalid_input before anything is written: a rank out of range, a target with the wrong
/// number of rows, a payload that differs from the source's, a source with too few rows or columns,
/// a null pointer, a target in the memory of a source or of another target.
///
/// Allocates nothing. Does not synchronise; one kernel launch on a device for every 64 fields.
/// O(elements written), plus a search of O(log B) for some thousand rows on a device.
template <executor E, layout L, place Place, class... From, class... To, class... Fill>
  requires runs_on<E, L> && (sizeof...(From) > 0) && (detail::packing::packs<From, To> && ...)
void pack(const E& where, const L& layout, Place at, const field_t<From, To, Fill>&... all) {
  const auto view = layout.view();
  view.require_place(at);
  detail::require_layout(view);
  offset_t index = 0;
  (detail::packing::require_field<E>(detail::of_field(index++), view, at, all), ...);
  detail::regions<2 * sizeof...(From), sizeof...(From)> memory;
  memory.read_layout(view);
  index = 0;
  (detail::packing::add_regions(memory, detail::of_field(index++), all), ...);
  memory.require_apart();
  detail::fields::run_in_parts(
      [&](const auto&... part) {
        execute(where, detail::packing::make_operation(view, at, part...));
      },
      all...);
}

/// Does not compile: says in words which end of a field is wrong.
template <executor E, layout L, place Place, class... From, class... To, class... Fill>
  requires runs_on<E, L> && (sizeof...(From) > 0) && (!(detail::packing::packs<From, To> && ...))
void pack(const E&, const L&, Place, const field_t<From, To, Fill>&...) {
  constexpr bool from_batches = (token_table<From> && ...);
  static_assert(from_batches || !detail::fields::accepted<From...>,
                "the source of a packed field is a batch: a batch_view(data, B, S), "
                "left_padded_view or ragged_view");
  static_assert(!from_batches || !detail::fields::accepted<From...>,
                "the target of a packed field is packed rows: a row_view, an mdspan or a "
                "contiguous range");
}

}  // namespace seqpack
