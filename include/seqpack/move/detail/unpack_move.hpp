/// \file
/// One field of an unpack: in blocks on the host, row by row on a device.
#pragma once

#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/detail/checks.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/detail/bulk_move.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/move/detail/tiles.hpp"
#include "seqpack/move/detail/transfer.hpp"
#include "seqpack/move/detail/windows.hpp"
#include "seqpack/move/field.hpp"

namespace seqpack::detail::unpacking {

/// Whether an unpack writes everything, or only what the place holds.
enum class write { everything, held_tokens };

/// One field of an unpack; its rows are the positions of the target.
template <write Write, class T, class To, class Fill>
struct unpack_move {
  using value_type = T;

  row_view<const T> from;
  To to;
  Fill fill;
  tile_shape shape;

  unpack_move(row_view<const T> source, const To& target, const Fill& f)
      : from(source),
        to(target),
        fill(f),
        shape(unit_shape(from.payload * static_cast<offset_t>(sizeof(T)),
                         from.address_bits() | to.address_bits()),
              to.positions()) {}

  SEQPACK_HD offset_t rows() const noexcept { return to.positions(); }

  void fill_columns(offset_t b, offset_t first, offset_t last) const {
    if constexpr (Write == write::everything) {
      if (first < last) {
        fill_tokens(to.at(b, first), to.stride(), from.payload, last - first, fill);
      }
    }
  }

  template <class Map>
  void process(const Map& map, offset_t first, offset_t last) const {
    if (first >= last) return;
    for (offset_t b = to.locate(first).row; first < last && b < to.batch(); ++b) {
      const offset_t base = to.first_position(b);
      const offset_t begin = first - base;
      const offset_t end = min_of(to.columns(b), last - base);
      if (begin >= end) continue;
      row(map, b, begin, end);
      first = base + end;
    }
  }

  /// The columns [begin, end) of sequence b.
  template <class Map>
  void row(const Map& map, offset_t b, offset_t begin, offset_t end) const {
    const offset_t slot = map.view.slot(b);
    const offset_t length = slot < 0 ? 0 : map.view.length(slot);
    const offset_t lead = to.lead(b);
    const offset_t real_begin = min_of(max_of(lead, begin), end);
    const offset_t real_end = max_of(min_of(lead + length, end), real_begin);
    fill_columns(b, begin, real_begin);
    for_each_source_run(map.view, map.at, slot, real_begin - lead, real_end - lead,
                        [&](offset_t index, offset_t row, offset_t count) {
                          if (row < 0) {
                            fill_columns(b, lead + index, lead + index + count);
                          } else {
                            copy_tokens<T>(to.at(b, lead + index), to.stride(), from.at(row),
                                           from.payload, from.payload, count);
                          }
                        });
    fill_columns(b, real_end, end);
  }

  /// Where a position of the target comes from, or null for a fill.
  template <class Map>
  SEQPACK_HD const T* source(const Map& map, const table_position& position) const {
    const offset_t slot = map.view.slot(position.row);
    if (slot < 0) return nullptr;
    const offset_t index = position.column - to.lead(position.row);
    if (index < 0 || index >= map.view.length(slot)) return nullptr;
    const offset_t row = map.view.row_of(map.at, slot, index);
    return row < 0 ? nullptr : from.at(row);
  }

  template <class Map>
  SEQPACK_HD tile_route route(const Map& map, offset_t number) const {
    constexpr tile_route nowhere{nullptr, nullptr};
    if (to.batch() == 0) return nowhere;
    const table_position position = to.locate(number);
    if constexpr (bounds_in_memory<To>) {
      // Values behind the last offset belong to no row.
      if (position.column < 0 || position.column >= to.columns(position.row)) return nowhere;
    }
    const T* const token = source(map, position);
    if (Write == write::held_tokens && token == nullptr) return nowhere;
    return {reinterpret_cast<char*>(to.at(position.row, position.column)),
            reinterpret_cast<const char*>(token)};
  }

  /// Offsets that are wrong could name any row, so a ragged target has no window.
  template <class Map, class Threads, class Memory>
  SEQPACK_HD auto near(const Map& map, const Threads& threads, Memory& memory, offset_t first,
                       offset_t last) const {
    using view_type = typename Map::view_type;
    if constexpr (is_ragged<To>) {
      return window<view_type>{map.view, last};
    } else {
      const auto rows =
          window_of_batch(threads, map.view, to.locate(first).row, to.locate(last).row, memory);
      return window<view_type>{rows.view, min_of(last, to.first_position(rows.last + 1) - 1)};
    }
  }
};

template <class Executor, class View, class Place, class T, class To, class Fill>
void require_field(detail::subject whose, const View& view, Place at,
                   const field_t<row_view<T>, To, Fill>& f) {
  detail::require_equal(whose, "source rows", f.from.rows, view.rows(at),
                        "the tokens of the layout in this place");
  detail::require_equal(whose, "target payload", f.to.payload(), f.from.payload,
                        "the payload of its source");
  // A ragged target has no room for a fill: its rows are exactly the real tokens.
  detail::require_table<Executor>(whose, "target", view, f.to, is_ragged<To>);
  detail::require_memory(whose, "source", f.from.data, f.from.rows * f.from.payload);
  detail::require_distinct_positions(whose, f.to);
  detail::fields::require_fill<typename To::value_type>(whose, f.fill, f.from.payload);
}

template <class Regions, class Field>
void add_regions(Regions& memory, detail::subject whose, const Field& f) {
  memory.read(f.from.touched(), whose, "source");
  memory.read(f.to.bounds_touched(), whose, "target bounds");
  memory.write(f.to.touched(), whose, "target");
}

/// Whether unpack takes a field.
template <class From, class To>
concept unpacks = detail::fields::packed_rows<From> && token_table<To>;

/// Says in words which end of a field is wrong.
template <class... From, class... To, class... Fill>
constexpr void refuse(const field_t<From, To, Fill>&...) {
  constexpr bool to_batches = (token_table<To> && ...);
  static_assert(to_batches || !detail::fields::accepted<To...>,
                "the target of an unpacked field is a batch: a batch_view(data, B, S), "
                "left_padded_view or ragged_view");
  static_assert(!to_batches || !detail::fields::accepted<To...>,
                "the source of an unpacked field is packed rows: a row_view, an mdspan or a "
                "contiguous range");
}

/// All fields of an unpack.
template <write Write, class View, class Place, class... T, class... To, class... Fill>
auto make_operation(const View& view, Place at, const field_t<row_view<T>, To, Fill>&... f) {
  using map = detail::fields::placed_map<View, Place>;
  return detail::fields::bulk_move<map, unpack_move<Write, std::remove_const_t<T>, To, Fill>...>(
      map{view, at}, unpack_move<Write, std::remove_const_t<T>, To, Fill>(f.from, f.to, f.fill)...);
}

template <write Write, class E, class L, class Place, class... Fields>
void run(const E& where, const L& layout, Place at, const Fields&... all) {
  const auto view = layout.view();
  view.require_place(at);
  detail::require_layout(view);
  offset_t index = 0;
  (require_field<E>(detail::of_field(index++), view, at, all), ...);
  detail::regions<2 * sizeof...(Fields), sizeof...(Fields)> memory;
  memory.read_layout(view);
  index = 0;
  (add_regions(memory, detail::of_field(index++), all), ...);
  memory.require_apart();
  detail::fields::run_in_parts(
      [&](const auto&... part) { execute(where, make_operation<Write>(view, at, part...)); },
      all...);
}

}  // namespace seqpack::detail::unpacking
