/// \file
/// Causal attention masks and position ids of a batch that is not packed, with the usual rules for
/// sequences that hold several documents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/tokens/detail/causal.hpp"
#include "seqpack/tokens/per_token.hpp"

namespace seqpack {

/// The causal mask of this rank's queries: true where a key is hidden from a query, that is in its
/// future, or in an earlier document where documents are kept apart.
///
/// \param layout of unpacked_layout
/// \param at the shard of this rank
/// \param starts [B, S] where each token's document begins, or a view of nothing
/// \param masked [S / CP, S], or with starts [B, S / CP, S], as rows of S; written
/// \throws invalid_input for arrays of the wrong size, a mask in the memory of the starts or of the
/// layout's arrays.
///
/// No allocation, no synchronisation, one launch. O(S^2 / CP), with starts B times that.
template <executor E, layout L>
  requires runs_on<E, L>
void causal_mask(const E& where, const L& layout, shard at, const row_view<std::int64_t>& starts,
                 const row_view<bool>& masked) {
  const auto view = layout.view();
  view.require_place(at);
  const offset_t width = view.batch == 0 ? masked.payload : view.longest_padded;
  const offset_t queries = view.batch == 0 ? 0 : view.shard_tokens() / view.batch;
  const bool apart = starts.data != nullptr;
  detail::require_equal(detail::alone, "mask rows", masked.rows,
                        apart ? view.batch * queries : queries, "the queries of this rank");
  detail::require_equal(detail::alone, "mask columns", masked.payload, width,
                        "the width of the batch");
  detail::require_memory(detail::alone, "mask", masked.data, masked.rows * masked.payload);
  if (apart) {
    detail::require_equal(detail::alone, "document starts", starts.rows * starts.payload,
                          view.batch * width, "the positions of the batch");
  }
  detail::regions<1, 1> memory;
  memory.read_layout(view);
  memory.read(starts.touched(), detail::alone, "document starts");
  memory.write(masked.touched(), detail::alone, "mask");
  memory.require_apart();
  using view_type = std::remove_const_t<decltype(view)>;
  execute(where, detail::causal_mask_operation<view_type>{view, at, masked, starts.data});
}

/// Where the document of each token begins: the token after the last end-of-document token before
/// it. Padding belongs to the last document.
/// \param layout of unpacked_layout
/// \param ids [B, S]
/// \param starts [B, S] as B rows of S; written
/// \throws invalid_input for an array of the wrong size, starts in the memory of the ids or of the
/// layout's arrays.
///
/// No allocation, no synchronisation, one launch. O(B * S), a row at a time.
template <executor E, layout L, element T>
  requires runs_on<E, L>
void document_starts(const E& where, const L& layout, const batch_view<T>& ids,
                     offset_t end_of_document, const row_view<std::int64_t>& starts) {
  const auto view = layout.view();
  detail::require_equal(detail::alone, "ids rows", ids.batch(), view.batch,
                        "the batch size of the layout");
  detail::require_equal(detail::alone, "document starts rows", starts.rows, ids.batch(),
                        "the sequences of the batch");
  detail::require_equal(detail::alone, "document starts columns", starts.payload, ids.width(),
                        "the width of the batch");
  detail::require_equal(detail::alone, "ids payload", ids.payload(), 1, "one id per token");
  detail::require_memory(detail::alone, "ids", ids.data(), ids.positions());
  detail::require_memory(detail::alone, "document starts", starts.data,
                         starts.rows * starts.payload);
  detail::regions<1, 1> memory;
  memory.read_layout(view);
  memory.read(ids.touched(), detail::alone, "ids");
  memory.write(starts.touched(), detail::alone, "document starts");
  memory.require_apart();
  using view_type = std::remove_const_t<decltype(view)>;
  using operation = detail::document_start_operation<view_type, batch_view<T>>;
  execute(where, operation{view, ids, starts, end_of_document});
}

/// An array for per_token: the position of each token in its document.
/// \param starts of document_starts, [B, S]
template <class Out>
auto document_position_ids(const row_view<std::int64_t>& starts, Out&& out) {
  using T = detail::token_functions::element_of<Out>;
  const batch_view<const std::int64_t> table(starts.data, starts.rows, starts.payload);
  return token_array<T, detail::document_position<T>>{row_view(out), {table}};
}

}  // namespace seqpack
