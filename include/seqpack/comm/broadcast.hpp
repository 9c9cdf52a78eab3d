/// \file
/// broadcast_tensor: sends a tensor from one rank to all, checked on all of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/broadcast.hpp"
#include "seqpack/comm/element_type.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/comm/tensor.hpp"
#include "seqpack/core/config.hpp"

namespace seqpack {

/// Options of broadcast_tensor.
struct broadcast_options {
  /// Allocates `bytes` bytes on a rank that brings no tensor: aligned for any element, in memory
  /// that the communicator moves. Empty: the communicator's own allocation.
  std::function<std::shared_ptr<void>(offset_t bytes)> allocate = {};
};

/// Sends shape, element type and data of the root's tensor to every rank of the group. A rank that
/// brings no tensor gets one, of the right shape, in memory of its own; a rank that brings one gets
/// the data into it, and it must match the root's.
///
///     tensor<float> weights = broadcast_tensor<float>(std::nullopt, group_rank{0}, group);
///     broadcast_tensor(mine, group_rank{0}, group);  // a vector, a tensor_view, an mdspan, ...
///     any_tensor something = broadcast_tensor(std::nullopt, group_rank{0}, group);
///
/// **Collective**: an exchange of a header of fixed size, then the data; no data moves for a tensor
/// without elements. The host waits for the header; the data are stream-ordered, so that where the
/// group has a stream, `group.wait()` returns when they have arrived, and has the deadline.
///
/// \tparam T the element type, static; ranks that bring nothing say with it what they expect
/// \param mine this rank's tensor, or nothing; contiguous, in memory that the group moves
/// \param root whose tensor it is, as a rank of the group or of the world
/// \returns the tensor: in the caller's memory where it brought one, else in its own
/// \throws collective_mismatch on all ranks with the same text, naming the rank and both values: no
/// tensor on the root, a root outside of the group, ranks that name different roots, a shape,
/// element type or memory that differs, a tensor that is strided or null, data that cannot be
/// written on another rank than the root. Nothing has been written, and the group can be used.
/// \throws invalid_input on a caller that is not a member, alone and at once.
/// \throws what the allocation throws, on that rank alone, after it has taken part in the broadcast
/// without keeping it: the others have the tensor, and the group can be used.
/// \throws communication_error, such as deadline_passed: docs/groups.md says what holds then.
///
/// Allocates the tensor of a rank that brings none, and O(size) for the headers.
template <element T, communicator C, any_rank Root>
tensor<T> broadcast_tensor(const std::optional<tensor_view<T>>& mine, Root root, C& group,
                           const broadcast_options& options = {}) {
  std::optional<any_tensor_view> any;
  if (mine) any = *mine;
  const any_tensor result =
      detail::run_broadcast(any, element_type::of<T>(), root, group, options.allocate);
  return tensor<T>(result.template as<T>(), result.memory());
}

/// The same for a tensor that is there: a tensor_view, a tensor, an mdspan, or a contiguous range
/// that outlives the result. Data that cannot be written are the root's alone.
template <class Tensor, communicator C, any_rank Root>
  requires requires(Tensor&& mine) { tensor_view(std::forward<Tensor>(mine)); }
auto broadcast_tensor(Tensor&& mine, Root root, C& group, const broadcast_options& options = {}) {
  return broadcast_tensor(std::optional(tensor_view(std::forward<Tensor>(mine))), root, group,
                          options);
}

/// The same with an element type that is known at run time only, and need not be known at all by a
/// rank that brings nothing.
template <communicator C, any_rank Root>
any_tensor broadcast_tensor(const std::optional<any_tensor_view>& mine, Root root, C& group,
                            const broadcast_options& options = {}) {
  return detail::run_broadcast(mine, element_type(), root, group, options.allocate);
}

}  // namespace seqpack
