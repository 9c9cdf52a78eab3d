/// \file
/// A group from a list of ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"

namespace seqpack {

namespace detail::subgroups {

/// What one rank says about its list: all of it as a hash, its beginning for messages, and the
/// first entry that is wrong.
struct record {
  enum class mistake : std::int32_t { none, no_such_rank, named_twice };

  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  offset_t count = 0;
  std::array<std::int32_t, 20> first{};
  mistake what = mistake::none;
  std::int32_t where = 0;
  offset_t value = 0;

  void write(detail::records::writer& to) const {
    to.put(hash);
    to.put(count);
    for (const std::int32_t rank : first) to.put(rank);
    to.choice(what);
    to.put(where);
    to.put(value);
  }
  static record read(detail::records::reader& from) {
    record r;
    r.hash = from.get<std::uint64_t>();
    r.count = from.size("length of the list");
    for (std::int32_t& rank : r.first) rank = from.get<std::int32_t>();
    r.what = from.choice("kind of mistake", mistake::named_twice);
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    r.where = from.get<std::int32_t>("place of the mistake", 0, most);
    r.value = from.get<offset_t>();
    return r;
  }

  bool same_list(const record& other) const noexcept {
    return hash == other.hash && count == other.count && first == other.first;
  }
  std::string to_string() const {
    const auto shown = std::min(count, static_cast<offset_t>(first.size()));
    std::string text = "{";
    for (offset_t k = 0; k < shown; ++k) {
      text += (k > 0 ? ", " : "") + std::to_string(first[static_cast<std::size_t>(k)]);
    }
    return text + (shown < count ? ", ...}" : "}");
  }
};

inline record describe(const std::vector<group_rank>& ranks, offset_t size) {
  record r{.count = static_cast<offset_t>(ranks.size())};
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    const offset_t rank = ranks[k].value;
    r.hash = (r.hash ^ static_cast<std::uint64_t>(rank)) * 1099511628211u;
    if (k < r.first.size()) r.first[k] = static_cast<std::int32_t>(rank);
    if (r.what != record::mistake::none) continue;
    const auto before = ranks.begin() + static_cast<std::ptrdiff_t>(k);
    const bool outside = rank < 0 || rank >= size;
    if (!outside && std::find(ranks.begin(), before, ranks[k]) == before) continue;
    r.what = outside ? record::mistake::no_such_rank : record::mistake::named_twice;
    r.where = static_cast<std::int32_t>(k);
    r.value = rank;
  }
  return r;
}

/// \throws collective_mismatch on all ranks where a list is wrong or another one.
inline void require_one_list(const group_members& members, const std::vector<record>& records) {
  const auto name = [&](group_rank r) { return detail::exchanging::rank_name(members, r); };
  const auto at = [&](group_rank r) { return records[static_cast<std::size_t>(r.value)]; };
  detail::exchanging::refuse(
      detail::exchanging::ranks_where(
          members.size(), [&](std::size_t r) { return records[r].what != record::mistake::none; }),
      [&](group_rank r) {
        return collective_mismatch(
            r, entry_name("ranks", at(r).where) + " on " + name(r), std::to_string(at(r).value),
            at(r).what == record::mistake::named_twice
                ? std::string("each rank may be named once")
                : "it must be from 0 to " + std::to_string(members.size() - 1) +
                      ", the last rank of the group");
      });
  detail::exchanging::refuse(
      detail::exchanging::ranks_where(
          members.size(), [&](std::size_t r) { return !records[r].same_list(records.front()); }),
      [&](group_rank r) {
        return collective_mismatch(
            r, "list of ranks on " + name(r), at(r).to_string(),
            "it must be " + records.front().to_string() + ", the list on rank 0");
      });
}

}  // namespace detail::subgroups

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
  [[maybe_unused]] const auto named = name_operation(parent, "subgroup");
  detail::subgroups::require_one_list(
      parent.members(), detail::exchanging::exchange_records(
                            parent, "subgroup", detail::subgroups::describe(ranks, parent.size())));
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
