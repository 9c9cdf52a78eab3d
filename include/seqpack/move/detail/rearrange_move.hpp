/// \file
/// One field of a rearrangement: runs of whole rows.
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

namespace seqpack::detail::rearranging {

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

}  // namespace seqpack::detail::rearranging
