/// \file
/// members_of_split: the groups that a split makes, for the `split` of a communicator.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/split.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"

namespace seqpack {

/// The group of a rank after a split.
struct split_group {
  /// Its number among the groups, in the order of their colours; nothing for a rank that names no
  /// colour.
  std::optional<offset_t> number;
  group_members members;  ///< in the order of their keys, then of their ranks in the parent
};

/// What `split(colour, key)` of a communicator begins with: all ranks of a group get the same
/// members, and where one makes another call, all get an error. The communicator then has its engine
/// make the group.
///
///     auto [number, members] = members_of_split(*this, colour, key);
///
/// **Collective** over the parent: one exchange of 256 bytes of each rank. Allocates O(size).
///
/// \throws collective_mismatch on all ranks where not all of them call split.
/// \throws what parent.exchange does.
template <communicator C>
split_group members_of_split(C& parent, std::optional<offset_t> colour, offset_t key) {
  const auto records = detail::exchange_records(
      parent, "split", detail::split_record{colour.has_value(), colour.value_or(0), key});
  if (!colour) return {};

  std::vector<offset_t> colours;
  std::vector<std::size_t> mine;
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (!records[r].joins) continue;
    colours.push_back(records[r].colour);
    if (records[r].colour == *colour) mine.push_back(r);
  }
  std::sort(colours.begin(), colours.end());
  colours.erase(std::unique(colours.begin(), colours.end()), colours.end());
  std::stable_sort(mine.begin(), mine.end(),
                   [&](std::size_t a, std::size_t b) { return records[a].key < records[b].key; });

  std::vector<world_rank> members;
  members.reserve(mine.size());
  for (const std::size_t r : mine) {
    members.push_back(parent.members().to_world({static_cast<offset_t>(r)}));
  }
  const auto place = std::lower_bound(colours.begin(), colours.end(), *colour);
  return {place - colours.begin(), group_members(std::move(members))};
}

}  // namespace seqpack
