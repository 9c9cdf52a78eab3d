/// \file
/// One field of a pack: in blocks on the host, row by row on a device.
#pragma once

#include <utility>

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

namespace seqpack::detail::packing {

/// One field of a pack; its rows are the rows of the place.
template <class From, class T, class Fill>
struct pack_move {
  using value_type = T;

  From from;
  row_view<T> to;
  Fill fill;
  tile_shape shape;

  explicit pack_move(const field_t<From, row_view<T>, Fill>& f)
      : from(f.from),
        to(f.to),
        fill(f.fill),
        shape(unit_shape(to.payload * static_cast<offset_t>(sizeof(T)),
                         from.address_bits() | to.address_bits()),
              to.rows) {}

  SEQPACK_HD offset_t rows() const noexcept { return to.rows; }

  template <class Map>
  void process(const Map& map, offset_t first, offset_t last) const {
    for_each_run(map.view, map.at, first, last, [&](offset_t row, const token_run& run) {
      const token_ref& token = run.first;
      const offset_t real = max_of(min_of(token.length - token.index, run.count), 0);
      if (real > 0) {
        const offset_t b = map.view.sequence_in(token.slot);
        copy_tokens<T>(to.at(row), to.payload, from.at(b, from.lead(b) + token.index),
                       from.stride(), to.payload, real);
      }
      fill_tokens(to.at(row + real), to.payload, to.payload, run.count - real, fill);
    });
  }

  /// Where row `row` of the place comes from, or null for padding.
  template <class Map>
  SEQPACK_HD const T* source(const Map& map, offset_t row) const {
    const token_ref token = map.view.token_at(map.at, row);
    if (!token.real()) return nullptr;
    const offset_t b = map.view.sequence_in(token.slot);
    const offset_t column = from.lead(b) + token.index;
    if constexpr (bounds_in_memory<From>) {
      if (column < 0 || column >= from.columns(b)) return nullptr;
    }
    return from.at(b, column);
  }

  template <class Map, class Threads, class Window>
  SEQPACK_HD auto near(const Map& map, const Threads& threads, Window& window, offset_t first,
                       offset_t last) const {
    return window_of(threads, map.view, map.at, first, last, window);
  }
  template <class Map>
  SEQPACK_HD tile_route route(const Map& map, offset_t row) const {
    return {reinterpret_cast<char*>(to.at(row)), reinterpret_cast<const char*>(source(map, row))};
  }
};

template <class Executor, class View, class Place, class From, class T, class Fill>
void require_field(detail::subject whose, const View& view, Place at,
                   const field_t<From, row_view<T>, Fill>& f) {
  detail::require_equal(whose, "target rows", f.to.rows, view.rows(at),
                        "the tokens of the layout in this place");
  detail::require_equal(whose, "target payload", f.to.payload, f.from.payload(),
                        "the payload of its source");
  detail::require_table<Executor>(whose, "source", view, f.from, false);
  detail::require_memory(whose, "target", f.to.data, f.to.rows * f.to.payload);
  detail::fields::require_fill<T>(whose, f.fill, f.to.payload);
}

template <class Regions, class Field>
void add_regions(Regions& memory, detail::subject whose, const Field& f) {
  memory.read(f.from.touched(), whose, "source");
  memory.read(f.from.bounds_touched(), whose, "source bounds");
  memory.write(f.to.touched(), whose, "target");
}

/// Whether pack takes a field.
template <class From, class To>
concept packs = token_table<From> && detail::fields::packed_rows<To>;

/// All fields of a pack.
template <class View, class Place, class... From, class... T, class... Fill>
auto make_operation(const View& view, Place at, const field_t<From, row_view<T>, Fill>&... f) {
  using map = detail::fields::placed_map<View, Place>;
  return detail::fields::bulk_move<map, pack_move<From, T, Fill>...>(
      map{view, at}, pack_move<From, T, Fill>(f)...);
}

}  // namespace seqpack::detail::packing
