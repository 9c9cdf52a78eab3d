/// \file
/// pack: from a batch to the packed row, one shard, or all shards.
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

namespace seqpack {

namespace detail::packing {

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

}  // namespace detail::packing

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
