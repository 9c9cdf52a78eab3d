/// \file
/// Several fields that move over one map, as one bulk operation: in blocks on the host, in tiles by
/// the threads of a block on a device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/detail/tiles.hpp"
#include "seqpack/move/detail/windows.hpp"

namespace seqpack::detail::fields {

/// What the fields of one call share: a layout and one place of it.
template <class View, class Place>
struct placed_map {
  using view_type = View;
  View view;
  Place at;

  SEQPACK_HD placed_map with(const View& other) const { return {other, at}; }
};

/// What the threads of a block share while they move tiles.
template <class Index>
struct tile_scratch {
  tile_route routes[tile_shape::max_rows];
  window_memory<Index> window;
};

/// Where the rows that one thread has looked up come from.
struct sources {
  bool some = false;
  bool none = false;

  SEQPACK_HD void add(const tile_route& route) {
    some |= route.from != nullptr;
    none |= route.from == nullptr;
  }
};

/// The moves of all fields: a list without std::tuple, which device code cannot use. A move has
/// rows and tiles of its own, which mean the same.
template <class... Moves>
struct move_list;

template <>
struct move_list<> {
  SEQPACK_HD constexpr offset_t tiles() const noexcept { return 0; }
  constexpr offset_t row_bytes() const noexcept { return 0; }
  template <class Map>
  void process(const Map&, offset_t, offset_t) const {}
  template <class Map, class Threads, class Scratch>
  SEQPACK_HD detail::tiles::work find_routes(const Map&, const Threads&, Scratch&, offset_t,
                                             bool) const {
    return {};
  }
  template <class Threads, class Scratch>
  SEQPACK_HD void fill(const Threads&, const Scratch&, const detail::tiles::work&, offset_t) const {
  }
};

template <class Move, class... Rest>
struct move_list<Move, Rest...> {
  Move move;
  move_list<Rest...> rest;

  constexpr explicit move_list(Move first, Rest... others) : move(first), rest(others...) {}

  constexpr offset_t row_bytes() const noexcept {
    return move.shape.row_bytes() + rest.row_bytes();
  }
  SEQPACK_HD constexpr offset_t tiles() const noexcept { return own_tiles() + rest.tiles(); }

  template <class Map>
  void process(const Map& map, offset_t first, offset_t last) const {
    // Rows of nothing may have strides, and no memory.
    if (move.shape.row_bytes() > 0) move.process(map, first, min_of(last, move.rows()));
    rest.process(map, first, last);
  }

  /// Looks up the rows of a tile; the threads have met when it returns. `continues`: the tile before
  /// it was looked up just before.
  template <class Map, class Threads, class Scratch>
  SEQPACK_HD detail::tiles::work find_routes(const Map& map, const Threads& threads,
                                             Scratch& scratch, offset_t tile,
                                             bool continues) const {
    if (tile >= own_tiles()) {
      return rest.find_routes(map, threads, scratch, tile - own_tiles(),
                              continues && tile > own_tiles());
    }
    const tile_span span = move.shape.span(tile);
    using value = typename Move::value_type;
    sources found{};
    if (continues && move.shape.continues(span)) {
      found.add(scratch.routes[0]);
    } else {
      found = find_rows(map, threads, scratch, span);
    }
    return {span,
            move.shape,
            !threads.any(found.none),
            !threads.any(found.some),
            seqpack::detail::tiles::repeats<value>(move.fill, move.shape.units().bytes()),
            seqpack::detail::tiles::pattern_of<value>(move.fill)};
  }
  /// Fills what no pattern can fill.
  template <class Threads, class Scratch>
  SEQPACK_HD void fill(const Threads& threads, const Scratch& scratch,
                       const detail::tiles::work& what, offset_t tile) const {
    using value = typename Move::value_type;
    if (tile >= own_tiles()) {
      rest.fill(threads, scratch, what, tile - own_tiles());
    } else if constexpr (!seqpack::detail::tiles::always_repeats<value, decltype(move.fill)>) {
      seqpack::detail::tiles::fill<value>(threads, scratch.routes, what, move.fill);
    }
  }

 private:
  template <class Map, class Threads, class Scratch>
  SEQPACK_HD sources find_rows(const Map& map, const Threads& threads, Scratch& scratch,
                               const tile_span& span) const {
    const offset_t end = span.first_row + span.rows;
    sources found{};
    for (offset_t first = span.first_row; first < end;) {
      const auto near = move.near(map, threads, scratch.window, first, end - 1);
      const Map here = map.with(near.view);
      for (offset_t row = first + threads.rank(); row <= near.last; row += threads.size()) {
        const tile_route route = move.route(here, row);
        scratch.routes[row - span.first_row] = route;
        found.add(route);
      }
      first = near.last + 1;
      if (first < end) threads.sync();  // the next window takes the memory of this one
    }
    return found;
  }
  SEQPACK_HD constexpr offset_t own_tiles() const noexcept { return move.shape.tiles(); }
};

/// A bulk operation, and a tiled one.
template <class Map, class... Moves>
struct bulk_move {
  using scratch_type = tile_scratch<typename Map::view_type::index_type>;
  static constexpr int least_alignment =
      static_cast<int>(std::min({alignof(typename Moves::value_type)...}));

  Map map;
  move_list<Moves...> moves;
  offset_t row_count = 0;  ///< of the longest field

  constexpr bulk_move(const Map& shared, Moves... parts) : map(shared), moves(parts...) {
    ((row_count = max_of(row_count, parts.rows())), ...);
  }

  constexpr offset_t rows() const noexcept { return row_count; }
  constexpr offset_t row_bytes() const noexcept { return moves.row_bytes(); }
  void process(offset_t first, offset_t last) const { moves.process(map, first, last); }

  SEQPACK_HD constexpr offset_t tiles() const noexcept { return moves.tiles(); }
  template <class Threads>
  SEQPACK_HD void prepare(const Threads& threads, scratch_type& scratch) const {
    prepare_window(threads, scratch.window);
  }
  template <class Threads>
  SEQPACK_HD void tile(const Threads& threads, scratch_type& scratch, offset_t number,
                       bool continues) const {
    const detail::tiles::work what = moves.find_routes(map, threads, scratch, number, continues);
    seqpack::detail::tiles::move<least_alignment>(threads, scratch.routes, what);
    if (!what.patterned) moves.fill(threads, scratch, what, number);
    threads.sync();
  }
};

/// The fields of one launch: their pointers and sizes are its parameters, which are limited.
inline constexpr std::size_t most_at_once = 64;

template <std::size_t First, class Run, class Tuple, std::size_t... K>
void run_part(const Run& run, const Tuple& all, std::index_sequence<K...>) {
  run(std::get<First + K>(all)...);
}
template <std::size_t First, class Run, class Tuple>
void run_parts_from(const Run& run, const Tuple& all) {
  constexpr std::size_t rest = std::tuple_size_v<Tuple> - First;
  constexpr std::size_t count = rest < most_at_once ? rest : most_at_once;
  run_part<First>(run, all, std::make_index_sequence<count>{});
  if constexpr (count < rest) run_parts_from<First + count>(run, all);
}

/// Calls run(field...) with the fields, at most `most_at_once` of them each time.
template <class Run, class... Fields>
void run_in_parts(const Run& run, const Fields&... all) {
  if constexpr (sizeof...(Fields) <= most_at_once) {
    run(all...);
  } else {
    run_parts_from<0>(run, std::tie(all...));
  }
}

}  // namespace seqpack::detail::fields
