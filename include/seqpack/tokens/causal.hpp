/// \file
/// What a model without packing needs: the causal attention mask and position ids of a batch, with
/// the usual options for rows that hold several documents.
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
#include "seqpack/exec/team.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/tokens/per_token.hpp"
#include "seqpack/tokens/targets.hpp"

namespace seqpack {

namespace detail::causal_masking {

/// Where the document of each token of a batch begins, [B, S]; one row of work per sequence.
template <class View, class Ids>
struct start_operation {
  View view;
  Ids ids;
  row_view<std::int64_t> starts;  ///< B rows of S
  offset_t end_of_document;

  offset_t rows() const noexcept { return starts.rows; }
  offset_t row_bytes() const noexcept { return starts.payload * offset_t{8}; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t b) const {
    const offset_t slot = view.slot(b);
    const offset_t length = slot < 0 ? 0 : view.length(slot);
    offset_t start = 0;
    for (offset_t s = 0; s < starts.payload; ++s) {
      starts.at(b)[s] = start;
      // What stands in padding ends nothing.
      if (s < length && static_cast<offset_t>(*ids.at(b, s)) == end_of_document) start = s + 1;
    }
  }
};

/// A position in its document, for per_token.
template <class T>
struct document_position {
  batch_view<const std::int64_t> starts;  ///< where the document of each begins

  template <class Executor, class View>
  void require(detail::subject whose, const View& view) const {
    detail::require_equal(whose, "document starts rows", starts.batch(), view.batch,
                          "the batch size of the layout");
    if (starts.batch() > 0 && starts.width() < view.longest_padded) {
      reject(whose.name("document starts columns"), starts.width(),
             {"it must be at least ", view.longest_padded, ", the width of the batch"});
    }
    detail::require_memory(whose, "document starts", starts.data(), starts.positions());
    detail::require_range<T>(whose, "largest position id", max_of(view.longest_padded - 1, 0));
  }
  template <class Regions>
  void add_reads(Regions& memory, detail::subject whose) const {
    memory.read(starts.touched(), whose, "document starts");
  }
  template <class View>
  SEQPACK_HD T operator()(const View& view, const token_ref& token) const {
    const offset_t start = *starts.at(view.sequence_in(token.slot), token.index);
    // No document begins outside of what is before the token, whatever the array says.
    return static_cast<T>(token.index - max_of(min_of(start, token.index), 0));
  }
};

/// One row of the mask per query, S keys each; one mask for all sequences where they agree.
template <class View>
struct mask_operation {
  View view;
  shard at;
  row_view<bool> masked;       ///< [1 or B, S / CP] rows of S
  const std::int64_t* starts;  ///< [B, S], or null

  offset_t rows() const noexcept { return masked.rows; }
  offset_t row_bytes() const noexcept { return masked.payload; }
  offset_t row_work() const noexcept { return row_bytes(); }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(single_thread{}, first);
  }
  template <team Team>
  SEQPACK_HD void operator()(const Team& threads, offset_t row) const {
    const token_ref query = view.token_at(at, row);
    for (offset_t key = threads.rank(); key < masked.payload; key += threads.size()) {
      masked.at(row)[key] = hidden(query, key);
    }
  }

 private:
  SEQPACK_HD bool hidden(const token_ref& query, offset_t key) const {
    if (key > query.index) return true;
    return starts != nullptr &&
           key < starts[view.sequence_in(query.slot) * masked.payload + query.index];
  }
};

}  // namespace detail::causal_masking

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
  execute(where, detail::causal_masking::mask_operation<view_type>{view, at, masked, starts.data});
}

/// Where the document of each token begins: the token behind the last end-of-document token before
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
  using operation = detail::causal_masking::start_operation<view_type, batch_view<T>>;
  execute(where, operation{view, ids, starts, end_of_document});
}

/// An array for per_token: the position of each token in its document.
/// \param starts of document_starts, [B, S]
template <class Out>
auto document_position_ids(const row_view<std::int64_t>& starts, Out&& out) {
  using T = detail::token_functions::element_of<Out>;
  const batch_view<const std::int64_t> table(starts.data, starts.rows, starts.payload);
  return token_array<T, detail::causal_masking::document_position<T>>{row_view(out), {table}};
}

}  // namespace seqpack
