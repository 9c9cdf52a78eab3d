/// \file
/// The ranks of a group that are in this process, and how far each has come. CMake component:
/// seqpack::nccl.
#pragma once

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"

namespace seqpack::detail::nccl {

/// A rank that is in this process, its device, and the operations that it has begun.
struct neighbour {
  world_rank rank;
  int device = 0;
  std::shared_ptr<std::atomic<offset_t>> begun = std::make_shared<std::atomic<offset_t>>(0);
};

/// The ranks of a group that are in this process, each of which joins before the group is made.
class neighbours {
 public:
  /// None are known.
  neighbours() = default;
  /// \param id the same on all ranks of the group, and of no other group
  neighbours(std::string id, const neighbour& mine)
      : id_(std::move(id)), mine_(mine), all_(meet(id_)) {
    const std::lock_guard lock(all_->mutex);
    all_->ranks.push_back(mine);
  }
  neighbours(const ncclUniqueId& id, const neighbour& mine)
      : neighbours(std::string(id.internal, sizeof id.internal), mine) {}
  /// Those of a part of the group, when it has been split so many times.
  neighbours part(offset_t split, offset_t place) const {
    if (all_ == nullptr) return {};
    return {id_ + "/" + std::to_string(split) + "/" + std::to_string(place),
            {mine_.rank, mine_.device}};
  }

  /// All of them once the group has been made, this rank too.
  std::vector<neighbour> all() const {
    if (all_ == nullptr) return {};
    const std::lock_guard lock(all_->mutex);
    return all_->ranks;
  }
  /// This rank begins an operation.
  void begin() const noexcept { ++*mine_.begun; }
  /// Those that have begun fewer operations than this rank, in the order of the group.
  std::vector<group_rank> find_behind(const group_members& members) const {
    std::vector<group_rank> behind;
    for (const neighbour& other : all()) {
      const auto rank = members.find(other.rank);
      if (rank && *other.begun < *mine_.begun) behind.push_back(*rank);
    }
    std::ranges::sort(behind);
    return behind;
  }

 private:
  struct group {
    std::mutex mutex;
    std::vector<neighbour> ranks;
  };
  static std::shared_ptr<group> meet(const std::string& id) {
    static std::mutex& mutex = *new std::mutex;
    static auto& groups = *new std::map<std::string, std::weak_ptr<group>, std::less<>>;
    const std::lock_guard lock(mutex);
    std::erase_if(groups, [](const auto& g) { return g.second.expired(); });
    std::weak_ptr<group>& place = groups[id];
    std::shared_ptr<group> found = place.lock();
    if (!found) place = found = std::make_shared<group>();
    return found;
  }

  std::string id_;
  neighbour mine_;
  std::shared_ptr<group> all_;
};

}  // namespace seqpack::detail::nccl
