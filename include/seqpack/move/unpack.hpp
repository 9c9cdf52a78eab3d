/// \file
/// unpack: from the packed row, one shard, or all shards back to a batch.
#pragma once

#include "seqpack/core/detail/checks.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/move/detail/unpack_move.hpp"
#include "seqpack/move/field.hpp"

namespace seqpack {

/// Unpacks one or several tensors to a batch. The whole target is written: real tokens, and the
/// field's fill value everywhere else, also where the one shard that is given owns no token; with
/// fill 0 the sum over the ranks is the full unpack.
///
///     unpack(host, layout, all_shards, field(gathered_logits, logits));
///
/// \param where, layout as for pack
/// \param at what the sources are: full_row: [T, D]; all_shards: [CP, T / CP, D], rank-major as an
/// all-gather leaves them; shard{rank}: [T / CP, D]
/// \param fields sources as `at` says, targets [B, S, D] of any strides, or ragged, or left-padded
/// \throws invalid_input before anything is written: a rank out of range, a source with the wrong
/// number of rows, a payload that differs, a target with the wrong number of rows or too few
/// columns for the longest sequence (never truncated), positions that overlap, a null pointer, a
/// target in the memory of a source or of another target.
///
/// Allocates nothing. Does not synchronise; one kernel launch on a device for every 64 fields.
/// O(elements written).
template <executor E, layout L, place Place, class... From, class... To, class... Fill>
  requires runs_on<E, L> && (sizeof...(From) > 0) && (detail::unpacking::unpacks<From, To> && ...)
void unpack(const E& where, const L& layout, Place at, const field_t<From, To, Fill>&... fields) {
  detail::unpacking::run<detail::unpacking::write::everything>(where, layout, at, fields...);
}

/// The same, but writes the rank's own real tokens alone and leaves the rest of the targets as it
/// is.
template <executor E, layout L, class... From, class... To, class... Fill>
  requires runs_on<E, L> && (sizeof...(From) > 0) && (detail::unpacking::unpacks<From, To> && ...)
void unpack_own(const E& where, const L& layout, shard at,
                const field_t<From, To, Fill>&... fields) {
  detail::unpacking::run<detail::unpacking::write::held_tokens>(where, layout, at, fields...);
}

/// Does not compile: says in words which end of a field is wrong.
template <executor E, layout L, place Place, class... From, class... To, class... Fill>
  requires runs_on<E, L> && (sizeof...(From) > 0) &&
           (!(detail::unpacking::unpacks<From, To> && ...))
void unpack(const E&, const L&, Place, const field_t<From, To, Fill>&... fields) {
  detail::unpacking::refuse(fields...);
}
/// The same.
template <executor E, layout L, class... From, class... To, class... Fill>
  requires runs_on<E, L> && (sizeof...(From) > 0) &&
           (!(detail::unpacking::unpacks<From, To> && ...))
void unpack_own(const E&, const L&, shard, const field_t<From, To, Fill>&... fields) {
  detail::unpacking::refuse(fields...);
}

}  // namespace seqpack
