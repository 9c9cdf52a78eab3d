/// \file
/// A group from a list of ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/exchange.hpp"
#include "seqpack/core/config.hpp"

namespace seqpack {

namespace subgroups {

struct record {
  std::uint64_t list;
  std::int64_t count;
};

inline record describe(const std::vector<group_rank>& ranks) {
  record r{14695981039346656037u, static_cast<std::int64_t>(ranks.size())};
  for (const group_rank rank : ranks) {
    r.list = (r.list ^ static_cast<std::uint64_t>(rank.value)) * 1099511628211u;
  }
  return r;
}

inline std::string to_string(const record& r) {
  return std::to_string(r.count) + " ranks with hash " + std::to_string(r.list);
}

}  // namespace subgroups

/// The group of some ranks of `parent`, in the order of the list: `subgroup(world, {{3}, {1}})` has
/// rank 3 of the world as its rank 0. **Collective** over the parent: all of its ranks call it with
/// the same list; those that are not in it get a group that they are not members of.
///
/// \throws invalid_input on the caller alone for a rank that does not exist or stands twice, which
/// all ranks find that pass that list; collective_mismatch on all for lists that differ.
template <communicator C>
C subgroup(C& parent, const std::vector<group_rank>& ranks) {
  parent.rank();
  std::vector<world_rank> members;
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    parent.members().require(ranks[k], entry_name("ranks", static_cast<offset_t>(k)).c_str());
    members.push_back(parent.members().to_world(ranks[k]));
  }
  group_members listed{std::move(members)};

  const auto records = exchanging::exchange_records(parent, "subgroup", subgroups::describe(ranks));
  const std::string first = subgroups::to_string(records.front());
  exchanging::refuse(
      exchanging::ranks_where(
          parent.size(), [&](std::size_t r) { return subgroups::to_string(records[r]) != first; }),
      [&](group_rank r) {
        return collective_mismatch(r,
                                   "list of ranks on " + exchanging::rank_name(parent.members(), r),
                                   subgroups::to_string(records[static_cast<std::size_t>(r.value)]),
                                   "it must be " + first + ", the list on rank 0");
      });

  std::optional<offset_t> colour;
  offset_t key = 0;
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    if (ranks[k] != parent.rank()) continue;
    colour = 0;
    key = static_cast<offset_t>(k);
  }
  C made = parent.split(colour, key);
  if constexpr (requires { made.left_out_of(listed); }) made.left_out_of(std::move(listed));
  return made;
}

}  // namespace seqpack
