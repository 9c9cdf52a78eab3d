/// \file
/// shard_pieces: which tokens of which sequences a rank's shard holds.
#pragma once

#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/detail/checks.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/place.hpp"

namespace seqpack {

/// Tokens of one sequence that follow each other in the sequence and in a shard.
struct shard_piece {
  offset_t sequence;  ///< of the batch; B for the ghost
  offset_t first;     ///< a token of the sequence
  offset_t count;     ///< tokens, at least 1, padding included

  friend constexpr bool operator==(const shard_piece&, const shard_piece&) = default;
};

/// The pieces of a shard, in the order of its rows; together they are the whole shard. With
/// row_contiguous there is one for every sequence that has tokens there; the other shardings cut
/// sequences into several, striped into single tokens.
///
///     // lengths 37, 51, 40; row_contiguous over 2 ranks
///     shard_pieces(layout, shard{0});   // {0, 0, 37}, {1, 0, 27}
///     shard_pieces(layout, shard{1});   // {1, 27, 24}, {2, 0, 40}
///
/// \param layout on the host
/// \throws invalid_input for a rank out of range, and a layout of tokens without arrays.
///
/// Allocates the result. O(log B + pieces).
template <layout L>
  requires runs_on<host_t, L>
constexpr std::vector<shard_piece> shard_pieces(const L& layout, shard at) {
  const auto view = layout.view();
  view.require_place(at);
  detail::require_layout(view);
  std::vector<shard_piece> pieces;
  for_each_run(view, at, 0, view.rows(at), [&](offset_t, const token_run& run) {
    const bool ghost = run.first.slot >= view.sequences;
    pieces.push_back(
        {ghost ? view.batch : view.sequence_in(run.first.slot), run.first.index, run.count});
  });
  return pieces;
}

}  // namespace seqpack
