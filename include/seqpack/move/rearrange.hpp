/// \file
/// rearrange: packed rows from one place to another, without a batch in between.
#pragma once

#include <concepts>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/detail/bulk_move.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/move/detail/tiles.hpp"
#include "seqpack/move/detail/transfer.hpp"
#include "seqpack/move/detail/windows.hpp"
#include "seqpack/move/field.hpp"

namespace seqpack {

/// A place that holds every token: full_row or all_shards.
template <class P>
concept whole_place = place<P> && !std::same_as<P, shard>;

namespace detail::rearranging {

/// A layout and two places of it.
template <class View, class FromPlace, class ToPlace>
struct map_between {
  using view_type = View;
  View view;
  FromPlace from;
  ToPlace to;

  SEQPACK_HD map_between with(const View& other) const { return {other, from, to}; }
};

/// One field of a rearrangement; its rows are the rows of the target.
template <class T>
struct row_move {
  using value_type = T;

  row_view<const T> from;
  row_view<T> to;
  T fill{};  ///< of rows that belong to no sequence
  tile_shape shape;

  row_move(row_view<const T> source, row_view<T> target)
      : from(source),
        to(target),
        shape(unit_shape(to.payload * static_cast<offset_t>(sizeof(T)),
                         from.address_bits() | to.address_bits()),
              to.rows) {}

  SEQPACK_HD offset_t rows() const noexcept { return to.rows; }

  /// Blocks of tokens that are consecutive in both places; padding is made of tokens like any
  /// other.
  template <class Map>
  void process(const Map& map, offset_t first, offset_t last) const {
    for_each_run(map.view, map.to, first, last, [&](offset_t row, const token_run& run) {
      const token_ref& token = run.first;
      for_each_source_run(map.view, map.from, token.slot, token.index, token.index + run.count,
                          [&](offset_t index, offset_t source, offset_t count) {
                            copy_tokens<T>(to.at(row + index - token.index), to.payload,
                                           from.at(source), from.payload, to.payload, count);
                          });
    });
  }

  template <class Map>
  SEQPACK_HD const T* source(const Map& map, offset_t row) const {
    const token_ref token = map.view.token_at(map.to, row);
    // Where lengths were refused on a device, rows are left that belong to no sequence.
    if (token.index >= map.view.padded_length(token.slot)) return nullptr;
    return from.at(map.view.row_of(map.from, token.slot, token.index));
  }

  template <class Map, class Threads, class Window>
  SEQPACK_HD auto near(const Map& map, const Threads& threads, Window& window, offset_t first,
                       offset_t last) const {
    return window_of(threads, map.view, map.to, first, last, window);
  }
  template <class Map>
  SEQPACK_HD tile_route route(const Map& map, offset_t row) const {
    return {reinterpret_cast<char*>(to.at(row)), reinterpret_cast<const char*>(source(map, row))};
  }
};

template <class View, class FromPlace, class ToPlace, class S, class T, class Fill>
void require_field(detail::subject whose, const View& view, FromPlace from_place, ToPlace to_place,
                   const field_t<row_view<S>, row_view<T>, Fill>& f) {
  detail::require_equal(whose, "source rows", f.from.rows, view.rows(from_place),
                        "the tokens of the layout in this place");
  detail::require_equal(whose, "target rows", f.to.rows, view.rows(to_place),
                        "the tokens of the layout in this place");
  detail::require_equal(whose, "target payload", f.to.payload, f.from.payload,
                        "the payload of its source");
  detail::require_memory(whose, "source", f.from.data, f.from.rows * f.from.payload);
  detail::require_memory(whose, "target", f.to.data, f.to.rows * f.to.payload);
}

template <class Regions, class Field>
void add_regions(Regions& memory, detail::subject whose, const Field& f) {
  memory.read(f.from.touched(), whose, "source");
  memory.write(f.to.touched(), whose, "target");
}

/// All fields of a rearrangement.
template <class View, class FromPlace, class ToPlace, class... S, class... T, class... Fill>
auto make_operation(const View& view, FromPlace from, ToPlace to,
                    const field_t<row_view<S>, row_view<T>, Fill>&... f) {
  using map = map_between<View, FromPlace, ToPlace>;
  return detail::fields::bulk_move<map, row_move<T>...>(map{view, from, to},
                                                        row_move<T>(f.from, f.to)...);
}

}  // namespace detail::rearranging

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
