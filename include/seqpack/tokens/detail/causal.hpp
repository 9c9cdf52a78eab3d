/// \file
/// The operations of causal masks and of documents within sequences.
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

namespace seqpack::detail {

/// Where the document of each token of a batch begins, [B, S]; one row of work per sequence.
template <class View, class Ids>
struct document_start_operation {
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
  void require(subject whose, const View& view) const {
    require_equal(whose, "document starts rows", starts.batch(), view.batch,
                  "the batch size of the layout");
    if (starts.batch() > 0 && starts.width() < view.longest_padded) {
      reject(whose.name("document starts columns"), starts.width(),
             {"it must be at least ", view.longest_padded, ", the width of the batch"});
    }
    require_memory(whose, "document starts", starts.data(), starts.positions());
    require_range<T>(whose, "largest position id", max_of(view.longest_padded - 1, 0));
  }
  template <class Regions>
  void add_reads(Regions& memory, subject whose) const {
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
struct causal_mask_operation {
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
  SEQPACK_HD void operator()(const Team& team, offset_t row) const {
    const token_ref query = view.token_at(at, row);
    for (offset_t key = team.rank(); key < masked.payload; key += team.size()) {
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

}  // namespace seqpack::detail
