/// \file
/// subgroup: makes a group from a list of ranks.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/subgroup.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"

namespace seqpack {

/// The group of some ranks of `parent`, in the order of the list: `subgroup(world, {{3}, {1}})` has
/// rank 3 of the world as its rank 0. **Collective** over the parent: all of its ranks call it with
/// the same list; those that are not in it get a group that they are not members of.
///
/// \throws collective_mismatch on all ranks, with the same text: a list on some rank with a rank
/// that does not exist or stands twice, lists that differ.
/// \throws invalid_input on a caller that is not a member of the parent, alone and at once.
/// \throws communication_error
template <communicator C>
C subgroup(C& parent, const std::vector<group_rank>& ranks) {
  const group_rank me = parent.rank();
  [[maybe_unused]] const auto named = detail::name_operation(parent, "subgroup");
  detail::require_one_list(
      parent.members(),
      detail::exchange_records(parent, "subgroup", detail::describe_list(ranks, parent.size())));
  const auto place = std::find(ranks.begin(), ranks.end(), me);
  const bool in_it = place != ranks.end();
  C made = parent.split(in_it ? std::optional<offset_t>(0) : std::nullopt, place - ranks.begin());
  if constexpr (requires(group_members m) { made.left_out_of(m); }) {
    std::vector<world_rank> members;
    members.reserve(ranks.size());
    for (const group_rank rank : ranks) members.push_back(parent.members().to_world(rank));
    made.left_out_of(group_members(std::move(members)));
  }
  return made;
}

}  // namespace seqpack
