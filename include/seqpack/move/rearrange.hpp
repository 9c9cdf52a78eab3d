/// \file
/// rearrange: packed rows from one place to another, without a batch in between.
#pragma once

#include <concepts>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/detail/checks.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/move/detail/bulk_move.hpp"
#include "seqpack/move/detail/rearrange_move.hpp"
#include "seqpack/move/field.hpp"

namespace seqpack {

/// A place that holds every token: full_row or all_shards.
template <class P>
concept whole_place = place<P> && !std::same_as<P, shard>;

/// Moves the packed rows of one or several tensors from one place to another, padding included.
///
///     rearrange(host, layout, all_shards, full_row, field(gathered, row));
///     rearrange(host, layout, full_row, shard{rank}, field(row, mine));
///
/// Every row of every target is written, with the row of the same token in the source; a field's
/// fill value has no use here.
///
/// \param where, layout as for pack
/// \param from full_row: sources are [T, D]; all_shards: [CP, T / CP, D], rank-major. A shard does
/// not hold all tokens, and does not compile.
/// \param to the same for the targets; shard{rank}: [T / CP, D]
/// \param all fields: packed rows; element type and D may differ from field to field
/// \throws invalid_input before anything is written: a rank out of range, a source or a target with
/// the wrong number of rows, a payload that differs, a null pointer, a target in the memory of a
/// source or of another target.
///
/// Allocates nothing. Does not synchronise; one kernel launch on a device for every 64 fields.
/// O(elements written), plus a search of O(log B) for some thousand rows on a device.
template <executor E, layout L, whole_place From, place To, class... S, class... T, class... Fill>
  requires runs_on<E, L> && (sizeof...(T) > 0)
void rearrange(const E& where, const L& layout, From from, To to,
               const field_t<row_view<S>, row_view<T>, Fill>&... all) {
  const auto view = layout.view();
  view.require_place(to);
  detail::require_layout(view);
  offset_t index = 0;
  (detail::rearranging::require_field(detail::of_field(index++), view, from, to, all), ...);
  detail::regions<sizeof...(T), sizeof...(T)> memory;
  memory.read_layout(view);
  index = 0;
  (detail::rearranging::add_regions(memory, detail::of_field(index++), all), ...);
  memory.require_apart();
  detail::fields::run_in_parts(
      [&](const auto&... part) {
        execute(where, detail::rearranging::make_operation(view, from, to, part...));
      },
      all...);
}

/// Does not compile: says in words that a field is not made of packed rows.
template <executor E, layout L, whole_place From, place To, class... S, class... T, class... Fill>
  requires runs_on<E, L> && (sizeof...(T) > 0) &&
           (!((detail::fields::packed_rows<S> && detail::fields::packed_rows<T>) && ...))
void rearrange(const E&, const L&, From, To, const field_t<S, T, Fill>&...) {
  static_assert(
      !detail::fields::accepted<S...>,
      "the source and the target of a rearranged field are packed rows: row_views, mdspans "
      "or contiguous ranges");
}

}  // namespace seqpack
