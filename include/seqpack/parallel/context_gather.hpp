/// \file
/// Gathers the shards of all context-parallel ranks to the batch or the full row, and scatters
/// gradients back.
#pragma once

#include <optional>
#include <type_traits>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/field.hpp"
#include "seqpack/parallel/detail/context_gather.hpp"
#include "seqpack/parallel/group_execution.hpp"

namespace seqpack {

/// Options of the gathers and their transposes.
struct context_gather_options {
  /// Exchanges the verdict of every rank first, so that all ranks fail together. One exchange more,
  /// which the host waits for. It must be the same on all ranks: the exchange of one would meet the
  /// data of another.
  bool check_all_ranks = false;
};

/// Brings the shards of all context-parallel ranks to the batch on every rank: an all-gather, and
/// one unpack straight from what it leaves.
///
///     // logits of this rank: [T / CP, V]; workspace: T rows; all_logits: [B, S, V]
///     all_gather_unpack(host, cp_group, layout, field(my_logits, all_logits), workspace);
///
/// **Collective** over the group, whose ranks are the context-parallel ranks: all of them call it
/// with the same layout, payload and element type. Stream-ordered where the group has a stream;
/// nothing synchronises there, but for the exchange that options.check_all_ranks asks for. With one
/// rank nothing is gathered and the workspace is not used.
///
/// \param where `host`, a multi-threaded host executor, a CUDA stream, or a Thrust execution
/// policy; on the side, host or device, whose memory the group moves, and for a group with a stream
/// in that stream. Thrust policies do not show theirs, and are taken at the caller's word.
/// \param group its size is the CP size of the layout
/// \param f source: this rank's shard, [T / CP, D] of any element type; target: a batch [B, S, D],
/// as for unpack, with the fill value for everything that is not a real token
/// \param work [CP, T / CP, D], T rows; it holds the shards of all ranks in rank-major order
/// afterwards. The source may be this rank's part of it, which then is not copied.
/// \param options whether ranks check together
/// \throws invalid_input on this rank alone, before anything is sent or written: a caller that is
/// not a member, a CP size that is not the size of the group, a source or workspace with the wrong
/// number of rows, what unpack refuses of a target, a null pointer, memory that is written and used
/// for something else, another stream than the group's. The other ranks wait until their deadline.
/// \throws collective_mismatch in the place of that, on all ranks with the same text, where
/// options.check_all_ranks is set; then also for payloads, element sizes and layouts that differ,
/// named as by agree; of layouts on a device only the sizes can. Nothing has been written on any
/// rank, and the group can be used.
/// \throws communication_error, such as deadline_passed.
///
/// Allocates nothing; with options.check_all_ranks O(size) on the host. O(T * D) sent, O(elements
/// of the target) written; one kernel launch on a device beside the collective.
template <executor E, communicator C, layout L, class T, token_table To, class Fill>
  requires runs_on<E, L> && gathers_on<E, C>
void all_gather_unpack(const E& where, C& group, const L& layout,
                       const field_t<row_view<T>, To, Fill>& f,
                       detail::context_gathering::workspace_rows<T> work,
                       const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::gather<gathering::to_batch>("all_gather_unpack", where, group, layout, f,
                                         std::optional(work), options.check_all_ranks);
}
/// The same with a workspace from group.allocate, which is given back on return; where the group
/// has a stream, in its order. With one rank nothing is allocated.
template <executor E, communicator C, layout L, class T, token_table To, class Fill>
  requires runs_on<E, L> && gathers_on<E, C>
void all_gather_unpack(const E& where, C& group, const L& layout,
                       const field_t<row_view<T>, To, Fill>& f,
                       const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::gather<gathering::to_batch>("all_gather_unpack", where, group, layout, f,
                                         gathering::given_rows<std::remove_const_t<T>>(),
                                         options.check_all_ranks);
}

/// Brings the shards of all context-parallel ranks to the full row on every rank, padding included.
///
///     all_gather_rows(host, cp_group, layout, field(my_shard, row), workspace);
///
/// \param f source: this rank's shard, [T / CP, D]; target: the full row, [T, D]
///
/// Everything else as all_gather_unpack has it.
template <executor E, communicator C, layout L, class S, class T, class Fill>
  requires runs_on<E, L> && gathers_on<E, C>
void all_gather_rows(const E& where, C& group, const L& layout,
                     const field_t<row_view<S>, row_view<T>, Fill>& f,
                     detail::context_gathering::workspace_rows<T> work,
                     const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::gather<gathering::to_row>("all_gather_rows", where, group, layout, f,
                                       std::optional(work), options.check_all_ranks);
}
/// The same with a workspace from group.allocate.
template <executor E, communicator C, layout L, class S, class T, class Fill>
  requires runs_on<E, L> && gathers_on<E, C>
void all_gather_rows(const E& where, C& group, const L& layout,
                     const field_t<row_view<S>, row_view<T>, Fill>& f,
                     const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::gather<gathering::to_row>("all_gather_rows", where, group, layout, f,
                                       gathering::given_rows<T>(), options.check_all_ranks);
}

/// The transpose of all_gather_unpack, and so its backward pass: every rank has a gradient of the
/// whole batch, and gets the sum of them over the ranks for its own shard, 0 in padding. One pack
/// into the workspace, and a reduce-scatter.
///
///     pack_reduce_scatter(host, cp_group, layout, field(batch_gradient, my_gradient), workspace);
///
/// **Collective**, and stream-ordered, as all_gather_unpack is. With one rank it is a pack.
///
/// \param f source: a batch [B, S, D], as for pack; target: this rank's shard, [T / CP, D]. Its
/// fill is 0. The element type is one that the group can reduce.
/// \param work T rows of D, overwritten; apart from source and target
/// \throws as all_gather_unpack; invalid_input also for a fill other than 0.
///
/// Allocates nothing, with options.check_all_ranks O(size) on the host. O(T * D) written and sent.
template <executor E, communicator C, layout L, token_table From, class T, class Fill>
  requires runs_on<E, L> && gathers_on<E, C> && (C::template reduces<T>)
void pack_reduce_scatter(const E& where, C& group, const L& layout,
                         const field_t<From, row_view<T>, Fill>& f,
                         detail::context_gathering::workspace_rows<T> work,
                         const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::reduce<gathering::from_batch>("pack_reduce_scatter", where, group, layout, f,
                                           std::optional(work), options.check_all_ranks);
}
/// The same with a workspace from group.allocate.
template <executor E, communicator C, layout L, token_table From, class T, class Fill>
  requires runs_on<E, L> && gathers_on<E, C> && (C::template reduces<T>)
void pack_reduce_scatter(const E& where, C& group, const L& layout,
                         const field_t<From, row_view<T>, Fill>& f,
                         const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::reduce<gathering::from_batch>("pack_reduce_scatter", where, group, layout, f,
                                           gathering::given_rows<T>(), options.check_all_ranks);
}

/// The transpose of all_gather_rows: every rank has a gradient of the full row, padding included,
/// and gets the sum of them over the ranks for its own shard.
///
///     reduce_scatter_rows(host, cp_group, layout, field(row_gradient, my_gradient), workspace);
///
/// \param f source: the full row, [T, D]; target: this rank's shard, [T / CP, D]
///
/// Everything else as pack_reduce_scatter has it.
template <executor E, communicator C, layout L, class S, class T, class Fill>
  requires runs_on<E, L> && gathers_on<E, C> && (C::template reduces<T>)
void reduce_scatter_rows(const E& where, C& group, const L& layout,
                         const field_t<row_view<S>, row_view<T>, Fill>& f,
                         detail::context_gathering::workspace_rows<T> work,
                         const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::reduce<gathering::from_row>("reduce_scatter_rows", where, group, layout, f,
                                         std::optional(work), options.check_all_ranks);
}
/// The same with a workspace from group.allocate.
template <executor E, communicator C, layout L, class S, class T, class Fill>
  requires runs_on<E, L> && gathers_on<E, C> && (C::template reduces<T>)
void reduce_scatter_rows(const E& where, C& group, const L& layout,
                         const field_t<row_view<S>, row_view<T>, Fill>& f,
                         const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::reduce<gathering::from_row>("reduce_scatter_rows", where, group, layout, f,
                                         gathering::given_rows<T>(), options.check_all_ranks);
}

}  // namespace seqpack
