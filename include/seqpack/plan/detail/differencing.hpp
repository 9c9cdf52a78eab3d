/// \file
/// Largest differencing: costs into parts that sum up to about the same.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/plan/detail/decreasing.hpp"
#include "seqpack/plan/detail/rooms.hpp"

namespace seqpack::detail {

/// The largest differencing method for any number of parts (Karmarkar, Karp 1982; Michiels, Korst, Aarts
/// 2003): starts with a partition of each item alone, and joins the two that differ most between their
/// largest and smallest part, the largest part of one with the smallest of the other.
///
/// A partition is a heap of those of its parts that have items, the smallest on top. Of two partitions
/// the one with fewer such parts is taken apart, so that joining a single item costs O(log parts).
///
/// O(n log n log parts) time and O(n) memory.
template <std::same_as<offset_t> Cost = offset_t>
class differencing {
 public:
  /// \param costs from 0 on; their sum fits
  /// \param parts at least 1
  constexpr differencing(std::span<const offset_t> costs, offset_t parts)
      : costs_(costs), parts_(nth(parts)), next_(costs.size(), none) {}

  constexpr ~differencing() = default;  // for nvcc, which sees none where a member is a span

  /// \param decreasing the items, the largest cost first
  /// \returns the part of each item
  constexpr std::vector<row_number> run(std::span<const sized_unit> decreasing) {
    std::vector<row_number> part_of(costs_.size(), 0);
    if (costs_.empty() || parts_ == 1) return part_of;
    singles_ = decreasing;
    partition all = take();
    while (!singles_.empty() || !open_.empty()) {
      if (next_is_single()) {
        add(all, take_single());
      } else {
        join(all, take());
      }
      if (singles_.empty() && open_.empty()) break;
      if (difference(all) < next_difference()) all = swap_in(std::move(all));
    }
    for (std::size_t k = 0; k < all.parts.size(); ++k) {
      for (row_number item = all.parts[k].first; item != none; item = next_[nth(item)]) {
        part_of[nth(item)] = static_cast<row_number>(k);
      }
    }
    return part_of;
  }

 private:
  static constexpr row_number none = -1;

  /// A list of items.
  struct part {
    offset_t cost;
    row_number first;
    row_number last;
    constexpr bool operator>(const part& other) const noexcept {
      return cost != other.cost ? cost > other.cost : first > other.first;
    }
  };
  struct partition {
    std::vector<part> parts;  ///< a heap, the smallest on top
    offset_t largest = 0;
  };
  struct candidate {
    offset_t difference;
    std::size_t slot;
    constexpr bool operator<(const candidate& other) const noexcept {
      return difference != other.difference ? difference < other.difference : slot > other.slot;
    }
  };

  constexpr offset_t difference(const partition& p) const {
    return p.largest - (p.parts.size() < parts_ ? 0 : p.parts.front().cost);
  }
  /// Whether the largest difference is that of an item alone.
  constexpr bool next_is_single() const {
    if (singles_.empty()) return false;
    return open_.empty() || singles_.front().size >= open_.front().difference;
  }
  constexpr offset_t next_difference() const {
    return next_is_single() ? singles_.front().size : open_.front().difference;
  }

  constexpr part take_single() {
    const row_number item = singles_.front().unit;
    const offset_t cost = singles_.front().size;
    singles_ = singles_.subspan(1);
    return {cost, item, item};
  }
  /// The partition of the largest difference.
  constexpr partition take() {
    if (next_is_single()) {
      partition p{empty_parts()};
      add(p, take_single());
      return p;
    }
    std::pop_heap(open_.begin(), open_.end());
    const std::size_t slot = open_.back().slot;
    open_.pop_back();
    free_.push_back(slot);
    return std::move(partitions_[slot]);
  }
  /// Takes the partition of the largest difference in the place of one.
  constexpr partition swap_in(partition p) {
    partition next = take();
    std::size_t slot = partitions_.size();
    if (free_.empty()) {
      partitions_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    open_.push_back({difference(p), slot});
    std::push_heap(open_.begin(), open_.end());
    partitions_[slot] = std::move(p);
    return next;
  }
  /// Memory that was used before.
  constexpr std::vector<part> empty_parts() {
    if (spare_.empty()) return {};
    std::vector<part> parts = std::move(spare_.back());
    spare_.pop_back();
    return parts;
  }

  constexpr void push(partition& p, const part& added) {
    p.largest = std::max(p.largest, added.cost);
    p.parts.push_back(added);
    std::push_heap(p.parts.begin(), p.parts.end(), std::greater<>());
  }
  constexpr part pop(partition& p) {
    std::pop_heap(p.parts.begin(), p.parts.end(), std::greater<>());
    const part smallest = p.parts.back();
    p.parts.pop_back();
    return smallest;
  }
  constexpr part joined(const part& a, const part& b) {
    next_[nth(a.last)] = b.first;
    return {a.cost + b.cost, a.first, b.last};
  }
  constexpr void add(partition& p, const part& single) {
    push(p, p.parts.size() < parts_ ? single : joined(pop(p), single));
  }
  /// The largest part of one with the smallest of the other, and so on.
  constexpr void join(partition& a, partition b) {
    if (a.parts.size() < b.parts.size()) std::swap(a, b);
    std::sort(b.parts.begin(), b.parts.end(), std::greater<>());
    const std::size_t into_empty = std::min(parts_ - a.parts.size(), b.parts.size());
    for (std::size_t k = into_empty; k < b.parts.size(); ++k)
      b.parts[k] = joined(pop(a), b.parts[k]);
    for (const part& p : b.parts) push(a, p);
    b.parts.clear();
    spare_.push_back(std::move(b.parts));
  }

  std::span<const Cost> costs_;
  std::size_t parts_;
  std::vector<row_number> next_;
  std::span<const sized_unit> singles_;
  std::vector<partition> partitions_;
  std::vector<candidate> open_;  ///< a heap, the largest difference on top
  std::vector<std::size_t> free_;
  std::vector<std::vector<part>> spare_;
};

/// The part of each item, by largest differencing.
template <std::same_as<offset_t> Cost = offset_t>
constexpr std::vector<row_number> difference_out(std::span<const offset_t> costs, offset_t parts) {
  std::vector<sized_unit> decreasing(costs.size(), sized_unit{});
  for (std::size_t k = 0; k < costs.size(); ++k) {
    decreasing[k] = {costs[k], static_cast<row_number>(k)};
  }
  sort_decreasing(decreasing);
  return differencing(costs, parts).run(decreasing);
}

}  // namespace seqpack::detail
