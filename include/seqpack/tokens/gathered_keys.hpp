/// \file
/// What attention over gathered keys takes: the queries of one shard of the row, and the keys of the
/// full row that they may look at.
#pragma once

#include <span>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/detail/checks.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/tokens/detail/gathered_keys.hpp"

namespace seqpack {

/// A shard of a row that is cut as a whole, and its keys: the rows [first_key, end_key) of the full row,
/// from the begin of the first sequence that has tokens in the shard to the shard's end.
struct row_shard {
  offset_t first_key = 0;
  offset_t end_key = 0;
  offset_t max_seqlen_q = 0;      ///< most tokens of one sequence in the shard, padding included
  offset_t max_seqlen_kv = 0;     ///< most tokens of one sequence among the keys
  bool continues_before = false;  ///< whether its first sequence began on the rank before
  bool continues_after = false;   ///< whether its last one goes on on the rank after

  friend constexpr bool operator==(const row_shard&, const row_shard&) = default;
};

/// Describes a shard of row_contiguous, or the one shard of one rank, of a layout on the host.
///
///     // lengths 37, 51, 40; row_contiguous over 2 ranks
///     describe_row_shard(layout, shard{1});   // keys [37, 128), queries up to 40, keys up to 51
///
/// \throws invalid_input for a rank out of range, and for a sharding that cuts each sequence.
///
/// Allocates nothing. O(log B + sequences in the shard).
template <layout L>
  requires runs_on<host_t, L>
constexpr row_shard describe_row_shard(const L& layout, shard at) {
  const auto view = layout.view();
  view.require_place(at);
  detail::require_layout(view);
  detail::require_row_cut(view.cp);
  row_shard result;
  const offset_t rows = view.rows(at);
  result.first_key = detail::first_key_of(view, at);
  result.end_key = at.rank * rows + rows;
  for_each_run(view, at, 0, rows, [&](offset_t row, const token_run& run) {
    const offset_t end = run.first.index + run.count;
    result.max_seqlen_q = max_of(result.max_seqlen_q, run.count);
    result.max_seqlen_kv = max_of(result.max_seqlen_kv, end);
    if (row == 0) result.continues_before = run.first.index > 0;
    result.continues_after = end < view.padded_length(run.first.slot);
  });
  return result;
}

/// The parameters of attention of the queries of one shard over keys that were gathered from all
/// ranks. Causal attention aligns the last query of a sequence with its last key here.
template <layout_index Index>
struct gathered_key_params {
  std::span<const Index> cu_seqlens_q;   ///< segments + 1 bounds in the shard
  std::span<const Index> cu_seqlens_kv;  ///< segments + 1 bounds in the rows of the keys
  std::span<const Index> key_rows;       ///< first_key and end_key, rows of the full row
  offset_t max_seqlen_q = 0;
  offset_t max_seqlen_kv = 0;
};

/// Writes these parameters where the layout lives. Sequences that have no tokens in the shard have
/// none in both bounds, so that shapes do not depend on the lengths.
///
/// \param cu_seqlens_q, cu_seqlens_kv segments + 1 entries each, written
/// \param key_rows 2 entries, written
/// \returns spans of the three; the largest lengths are exact for a layout on the host, elsewhere the
/// bounds that can be told without reading: min(max_seqlen, T / CP) and max_seqlen.
/// describe_row_shard of the layout on the host has the exact ones
/// \throws invalid_input for arrays of the wrong size or in each other's memory, a rank out of range,
/// and a sharding that cuts each sequence.
///
/// Allocates nothing, does not synchronise; one launch on a device. O(B log B).
template <executor E, layout L>
  requires runs_on<E, L>
gathered_key_params<typename L::index_type> make_gathered_key_params(
    const E& where, const L& layout, shard at, std::span<typename L::index_type> cu_seqlens_q,
    std::span<typename L::index_type> cu_seqlens_kv, std::span<typename L::index_type> key_rows) {
  using index = typename L::index_type;
  const auto view = layout.view();
  view.require_place(at);
  detail::require_layout(view);
  detail::require_row_cut(view.cp);
  detail::regions<0, 3> memory;
  memory.read_layout(view);
  const auto add = [&](const char* name, std::span<index> out, offset_t entries, const char* what) {
    detail::require_equal(detail::alone, name, static_cast<offset_t>(out.size()), entries, what);
    detail::require_memory(detail::alone, name, out.data(), entries);
    memory.write(row_view(out).touched(), detail::alone, name);
  };
  add("cu_seqlens_q", cu_seqlens_q, view.segments + 1, "the entries of cu_seqlens");
  add("cu_seqlens_kv", cu_seqlens_kv, view.segments + 1, "the entries of cu_seqlens");
  add("key_rows", key_rows, 2, "a first row and an end");
  memory.require_apart();
  execute(where, detail::gathered_keys_operation<std::remove_const_t<decltype(view)>>{
                     view, at, cu_seqlens_q.data(), cu_seqlens_kv.data(), key_rows.data()});
  row_shard largest{.max_seqlen_q = min_of(view.longest_padded, view.rows(at)),
                    .max_seqlen_kv = view.longest_padded};
  if constexpr (host_executor<E>) largest = describe_row_shard(view, at);
  return {cu_seqlens_q, cu_seqlens_kv, key_rows, largest.max_seqlen_q, largest.max_seqlen_kv};
}

}  // namespace seqpack
