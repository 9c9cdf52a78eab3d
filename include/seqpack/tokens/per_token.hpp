/// \file
/// Per-token arrays of a full row or a shard: position ids, sequence index, padding mask, labels,
/// and the map itself as gather indices.
#pragma once

#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/detail/checks.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/tokens/detail/token_functions.hpp"
#include "seqpack/tokens/detail/token_operation.hpp"
#include "seqpack/tokens/labels.hpp"
#include "seqpack/tokens/token_array.hpp"

namespace seqpack {

// Each of the following names an array for `per_token`: `out` is a row_view or a contiguous range
// with one element per token of the place.

/// Positions that restart at 0 with every sequence and go on counting in its padding.
template <class Out>
auto position_ids(Out&& out) {
  using T = detail::token_functions::element_of<Out>;
  return token_array<T, detail::token_functions::position_id<T>>{row_view(out), {}};
}

/// The slot that owns the token, its padding included; the ghost's is the number of sequences.
template <class Out>
auto sequence_index(Out&& out) {
  using T = detail::token_functions::element_of<Out>;
  return token_array<T, detail::token_functions::sequence_index<T>>{row_view(out), {}};
}

/// 1 (true) in padding, 0 (false) at real tokens.
template <class Out>
auto padding_mask(Out&& out) {
  using T = detail::token_functions::element_of<Out>;
  return token_array<T, detail::token_functions::padding_flag<T>>{row_view(out), {}};
}

/// Gather indices into a batch of the given width: b * width + s, and -1 in padding.
/// \throws invalid_input for a width outside of [0, max_tokens].
template <class Out>
auto batch_index(Out&& out, offset_t width) {
  detail::require_width(width);
  using T = detail::token_functions::element_of<Out>;
  return token_array<T, detail::token_functions::batch_position<T>>{row_view(out), {width}};
}

/// Gather indices into the full row: t, padding included.
template <class Out>
auto row_index(Out&& out) {
  using T = detail::token_functions::element_of<Out>;
  return token_array<T, detail::token_functions::row_position<T>>{row_view(out), {}};
}

/// Writes any number of per-token arrays of one place.
///
///     per_token(host, layout, shard{rank}, position_ids(positions), padding_mask(mask),
///               labels(ids, targets, {.shift = 1}));
///
/// \param where, layout, at as for pack
/// \param arrays position_ids, sequence_index, padding_mask, labels, batch_index, row_index, or a
/// user-defined token_array; every element of each is written
/// \throws invalid_input before anything is written: a rank out of range, an array of the wrong
/// size, a null pointer, an element type that cannot hold the values, a label shift below 1, an
/// array in the memory of the token ids or of another array.
///
/// Allocates nothing. Does not synchronise; one kernel launch on a device. O(tokens of the place).
template <executor E, layout L, place Place, class... T, class... Function>
  requires runs_on<E, L> && (sizeof...(T) > 0)
void per_token(const E& where, const L& layout, Place at,
               const token_array<T, Function>&... arrays) {
  const auto view = layout.view();
  view.require_place(at);
  detail::require_layout(view);
  offset_t index = 0;
  (detail::token_functions::require_array<E>(detail::of_array(index++), view, at, arrays), ...);

  detail::regions<2 * sizeof...(T), sizeof...(T)> memory;
  memory.read_layout(view);
  index = 0;
  (detail::token_functions::add_regions(memory, detail::of_array(index++), arrays), ...);
  memory.require_apart();

  using view_type = std::remove_const_t<decltype(view)>;
  using operation =
      detail::token_functions::token_operation<view_type, Place, token_array<T, Function>...>;
  execute(where, operation{view, at, {arrays...}, (offset_t{sizeof(T)} + ...)});
}

}  // namespace seqpack
