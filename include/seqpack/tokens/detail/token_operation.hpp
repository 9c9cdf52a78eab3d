/// \file
/// Several arrays of one place as one operation.
#pragma once

#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/detail/checks.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/move/detail/windows.hpp"
#include "seqpack/tokens/token_array.hpp"

namespace seqpack::detail::token_functions {

/// Several arrays as one bulk operation: the token of a row is looked up once for all of them.
template <class View, class Place, class... Arrays>
struct fill_arrays;

template <class View, class Place>
struct fill_arrays<View, Place> {
  SEQPACK_HD void write(const View&, offset_t, const token_ref&) const {}
  void write_run(const View&, offset_t, const token_run&) const {}
};

template <class View, class Place, class T, class Function, class... Rest>
struct fill_arrays<View, Place, token_array<T, Function>, Rest...> {
  token_array<T, Function> array;
  fill_arrays<View, Place, Rest...> rest;

  constexpr fill_arrays(token_array<T, Function> first, Rest... others)
      : array(first), rest(others...) {}

  SEQPACK_HD void write(const View& view, offset_t row, const token_ref& token) const {
    *array.out.at(row) = array.function(view, token);
    rest.write(view, row, token);
  }
  void write_run(const View& view, offset_t row, const token_run& run) const {
    T* const out = array.out.at(row);
    for (offset_t k = 0; k < run.count; ++k) {
      out[k] = array.function(view, {run.first.slot, run.first.index + k, run.first.length});
    }
    rest.write_run(view, row, run);
  }
};

template <class View, class Place, class... Arrays>
struct token_operation {
  View view;
  Place at;
  fill_arrays<View, Place, Arrays...> arrays;
  offset_t bytes = 0;

  offset_t rows() const noexcept { return view.rows(at); }
  offset_t row_bytes() const noexcept { return bytes; }
  void process(offset_t first, offset_t last) const {
    for_each_run(view, at, first, last,
                 [&](offset_t row, const token_run& run) { arrays.write_run(view, row, run); });
  }

  // Tiles of rows: 8 for each of 256 threads.
  using scratch_type = window_memory<typename View::index_type>;
  static constexpr offset_t tile_rows = 2048;

  SEQPACK_HD offset_t tiles() const noexcept {
    return divide(view.rows(at) + tile_rows - 1, tile_rows);
  }
  template <class Threads>
  SEQPACK_HD void prepare(const Threads& threads, scratch_type& scratch) const {
    prepare_window(threads, scratch);
  }
  template <class Threads>
  SEQPACK_HD void tile(const Threads& threads, scratch_type& scratch, offset_t number,
                       bool /*continues*/) const {
    const offset_t end = min_of((number + 1) * tile_rows, view.rows(at));
    for (offset_t first = number * tile_rows; first < end;) {
      const auto near = window_of(threads, view, at, first, end - 1, scratch);
      for (offset_t row = first + threads.rank(); row <= near.last; row += threads.size()) {
        // Functions may ask of any sequence, not only of those in the window.
        arrays.write(view, row, near.view.token_at(at, row));
      }
      threads.sync();
      first = near.last + 1;
    }
  }
};

template <class E, class View, class Place, class T, class Function>
void require_array(detail::subject whose, const View& view, Place at,
                   const token_array<T, Function>& array) {
  detail::require_equal(whose, "rows", array.out.rows, view.rows(at),
                        "the tokens of the layout in this place");
  detail::require_equal(whose, "payload", array.out.payload, 1, "one element per token");
  detail::require_memory(whose, "elements", array.out.data, array.out.rows);
  if constexpr (requires { array.function.template require<E>(whose, view); }) {
    array.function.template require<E>(whose, view);
  }
}

template <class Regions, class T, class Function>
void add_regions(Regions& memory, detail::subject whose, const token_array<T, Function>& array) {
  memory.write(array.out.touched(), whose, "elements");
  if constexpr (requires { array.function.add_reads(memory, whose); }) {
    array.function.add_reads(memory, whose);
  }
}

}  // namespace seqpack::detail::token_functions
