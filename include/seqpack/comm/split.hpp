/// \file
/// members_of_split: who is in which group after a split, for the `split` of a communicator.
#pragma once

#include <optional>
#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"

namespace seqpack {

/// The group of the caller after a split.
struct split_group {
  /// Its number among the groups, in the order of their colours; nothing for a caller that names no
  /// colour.
  std::optional<offset_t> number;
  group_members members;  ///< in the order of their keys, then of their ranks in the parent
};

/// What `split(colour, key)` of a communicator begins with, so that all ranks have the same groups
/// and a rank that makes another call is an error on all. The communicator then makes its engine's
/// group of them.
///
/// **Collective** over the parent: one exchange of 256 bytes of each rank. Allocates O(size).
///
/// \throws collective_mismatch on all ranks where one calls something else.
/// \throws as parent.exchange does.
template <communicator C>
split_group members_of_split(C& parent, std::optional<offset_t> colour, offset_t key) {
  auto [number, members] = detail::exchanging::agree_on_split(parent, colour, key);
  return {number, std::move(members)};
}

}  // namespace seqpack
