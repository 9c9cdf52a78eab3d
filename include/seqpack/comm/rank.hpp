/// \file
/// Typed ranks: a rank inside of a group, and a rank in the world.
#pragma once

#include <algorithm>
#include <compare>
#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"

namespace seqpack {

/// A rank inside of one group, from 0 to the size of the group - 1. It means nothing without the
/// group.
struct group_rank {
  offset_t value = 0;
  friend constexpr auto operator<=>(group_rank, group_rank) = default;
  // Declared: nvcc 13.0 loses the one that the line above implies.
  friend constexpr bool operator==(group_rank, group_rank) = default;
};

/// A rank among all processes or devices that take part, from which all groups are made.
struct world_rank {
  offset_t value = 0;
  friend constexpr auto operator<=>(world_rank, world_rank) = default;
  // Declared: nvcc 13.0 loses the one that the line above implies.
  friend constexpr bool operator==(world_rank, world_rank) = default;
};

/// A rank of the group, or of the world.
template <class R>
concept any_rank = std::same_as<R, group_rank> || std::same_as<R, world_rank>;

/// The members of a group in the order of its ranks. It converts one kind of rank to the other.
class group_members {
 public:
  /// No members.
  group_members() = default;
  /// \param members the world rank of group rank 0, of group rank 1, ...
  /// \throws invalid_input for a member that is negative or named twice.
  explicit group_members(std::vector<world_rank> members) : members_(std::move(members)) {
    for (std::size_t k = 0; k < members_.size(); ++k) {
      const auto index = static_cast<offset_t>(k);
      if (members_[k].value < 0) {
        reject(entry_name("members", index), members_[k].value, "a rank must be at least 0");
      }
      if (find(members_[k])->value != index) {
        reject(entry_name("members", index), members_[k].value, "each rank may be named once");
      }
    }
  }
  /// World ranks 0 to size - 1, in this order.
  static group_members all(offset_t size) {
    std::vector<world_rank> members;
    for (offset_t r = 0; r < size; ++r) members.push_back({r});
    group_members result;
    result.members_ = std::move(members);
    return result;
  }

  offset_t size() const noexcept { return static_cast<offset_t>(members_.size()); }

  /// The group rank of a member, or nothing. O(size).
  std::optional<group_rank> find(world_rank member) const noexcept {
    const auto found = std::find(members_.begin(), members_.end(), member);
    if (found == members_.end()) return std::nullopt;
    return group_rank{found - members_.begin()};
  }
  bool contains(world_rank member) const noexcept { return find(member).has_value(); }

  /// \throws invalid_input unless 0 <= rank < size().
  world_rank to_world(group_rank rank) const {
    require(rank, "group rank");
    return members_[static_cast<std::size_t>(rank.value)];
  }
  /// \throws invalid_input for a rank that is no member.
  group_rank to_group(world_rank member) const {
    const auto found = find(member);
    if (!found) {
      reject("world rank", member.value, "it must be a member of the group " + to_string());
    }
    return *found;
  }
  /// \throws invalid_input, under that name, unless 0 <= rank < size().
  void require(group_rank rank, const char* name) const {
    if (rank.value < 0 || rank.value >= size()) {
      reject(name, rank.value,
             "it must be from 0 to " + std::to_string(size() - 1) + ", the last rank of the group");
    }
  }

  /// The world ranks as text: "{3, 1}".
  std::string to_string() const {
    std::string text = "{";
    for (const world_rank member : members_) {
      text += (text.size() > 1 ? ", " : "") + std::to_string(member.value);
    }
    return text + "}";
  }

  friend bool operator==(const group_members&, const group_members&) = default;

 private:
  std::vector<world_rank> members_;
};

}  // namespace seqpack
