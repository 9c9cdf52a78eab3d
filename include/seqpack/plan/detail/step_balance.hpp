/// \file
/// Micro-batches that keep a budget, made to cost about the same in every step.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/plan/detail/part_set.hpp"
#include "seqpack/plan/detail/rooms.hpp"

namespace seqpack::detail {

/// Takes units out of parts that hold too many of them: the smallest, into the parts with the least
/// content. There must be room for all.
constexpr void even_out_counts(std::same_as<part_set> auto& parts) {
  const offset_t most = parts.limits().most_units;
  std::vector<std::pair<offset_t, row_number>> open;  // a heap, the least content on top
  for (row_number k = 0; k < parts.size(); ++k) {
    if (parts[k].count() < most) open.emplace_back(-parts[k].content, k);
  }
  std::make_heap(open.begin(), open.end());
  for (row_number k = 0; k < parts.size(); ++k) {
    while (parts[k].count() > most) {
      std::pop_heap(open.begin(), open.end());
      const row_number to = open.back().second;
      open.pop_back();
      parts.move(parts[k].units.front().second, to);
      if (parts[to].count() == most) continue;
      open.emplace_back(-parts[to].content, to);
      std::push_heap(open.begin(), open.end());
    }
  }
}

/// Whether so much would have to move that evening out is a plan of its own, and slow.
constexpr bool too_full(const std::same_as<part_set> auto& parts) {
  offset_t content = 0;
  offset_t over = 0;
  for (row_number k = 0; k < parts.size(); ++k) {
    content += parts[k].content;
    over += max_of(parts[k].content - parts.limits().room, 0);
  }
  return over > content / 16;
}

/// Takes tokens out of parts that hold too many of them, by moves and swaps with the parts that have most
/// room. Their key is the content.
/// \param searches how many may be made, about
/// \returns whether all parts are within their limits
constexpr bool even_out_contents(std::same_as<part_set> auto& parts, offset_t searches) {
  constexpr std::size_t candidates = 24;
  const offset_t most = parts.limits().room;
  if (too_full(parts)) return false;
  part_set::keyed_units open;  // parts by room, a heap, the most room on top
  for (row_number k = 0; k < parts.size(); ++k) {
    if (parts[k].content < most) open.emplace_back(most - parts[k].content, k);
  }
  std::make_heap(open.begin(), open.end());
  part_set::keyed_units tried;
  for (row_number from = 0; from < parts.size(); ++from) {
    while (parts[from].content > most) {
      unit_exchange best;
      offset_t least = parts[from].content;
      while (least > most && tried.size() < candidates && !open.empty() &&
             parts.searches() <= searches) {
        std::pop_heap(open.begin(), open.end());
        const auto [room, to] = tried.emplace_back(open.back());
        open.pop_back();
        const unit_exchange e =
            parts.find(from, to, min_of(parts[from].content - most, room), room);
        if (!e || parts[from].content - e.difference >= least) continue;
        least = parts[from].content - e.difference;
        best = e;
      }
      if (!best) return false;
      parts.apply(best);
      for (; !tried.empty(); tried.pop_back()) {
        const row_number part = tried.back().second;
        if (parts[part].content == most) continue;
        open.emplace_back(most - parts[part].content, part);
        std::push_heap(open.begin(), open.end());
      }
    }
  }
  return true;
}

/// Parts as the micro-batches of steps: the dearest in the first step, the next dearest in the second,
/// and so on, which no other choice of steps for the same parts improves on. What counts is the sum over
/// the steps of the dearest part.
template <std::same_as<part_set> Parts>
class step_balance {
 public:
  /// \param parts steps * ranks of them, within their limits; their key is the cost
  constexpr step_balance(Parts& parts, offset_t ranks)
      : parts_(parts), ranks_(ranks), order_(nth(parts.size()), 0), step_of_(order_.size(), 0) {
    sort();
  }

  /// The sum over the steps of the dearest part.
  constexpr offset_t cost() const noexcept { return cost_; }
  /// The parts, those of the first step first, and in each step the dearest first.
  constexpr const std::vector<row_number>& order() const noexcept { return order_; }

  /// Moves and swaps units until the cost is at most `enough`, or nothing that is looked at helps.
  /// No part leaves its limits, and the cost never grows.
  /// \param searches how many may be made, about
  constexpr void improve(offset_t enough, offset_t searches) {
    last_search_ = parts_.searches() + searches;
    for (bool improved = true; improved && cost_ > enough;) {
      improved = false;
      for (offset_t step = 0; step < steps() && cost_ > enough; ++step) {
        while (cost_ > enough &&
               (improve_step(step, &Parts::find) || improve_step(step, &Parts::find_pairs))) {
          improved = true;
        }
      }
      sort();
    }
  }

 private:
  constexpr offset_t steps() const noexcept { return static_cast<offset_t>(dearest_.size()); }

  /// The part of a step that costs most. Its place in the step: improvements change the order.
  constexpr row_number dearest_in(offset_t step) const {
    row_number best = order_[nth(step * ranks_)];
    for (offset_t r = 1; r < ranks_; ++r) {
      const row_number part = order_[nth(step * ranks_ + r)];
      if (parts_[part].cost > parts_[best].cost) best = part;
    }
    return best;
  }
  constexpr bool alone_in(offset_t step, row_number part) const {
    for (offset_t r = 0; r < ranks_; ++r) {
      const row_number other = order_[nth(step * ranks_ + r)];
      if (other != part && parts_[other].cost == parts_[part].cost) return false;
    }
    return true;
  }

  constexpr void sort() {
    typename Parts::keyed_units keys;
    keys.reserve(order_.size());
    for (row_number k = 0; k < parts_.size(); ++k) keys.emplace_back(-parts_[k].cost, k);
    std::sort(keys.begin(), keys.end());
    dearest_.assign(keys.size() / nth(ranks_), 0);
    cost_ = 0;
    for (std::size_t k = 0; k < keys.size(); ++k) {
      order_[k] = keys[k].second;
      step_of_[nth(order_[k])] = static_cast<offset_t>(k) / ranks_;
      if (k % nth(ranks_) != 0) continue;
      dearest_[k / nth(ranks_)] = -keys[k].first;
      cost_ -= keys[k].first;
    }
  }

  constexpr void update(offset_t step) {
    const offset_t now = parts_[dearest_in(step)].cost;
    cost_ += now - dearest_[nth(step)];
    dearest_[nth(step)] = now;
  }

  /// Makes the dearest part of a step cheaper, at the cost of a part that does not become the dearest of
  /// its own step by that.
  /// \param find which exchanges of two parts are looked at
  /// \returns whether that was possible
  constexpr bool improve_step(offset_t step, unit_exchange (Parts::*find)(row_number, row_number,
                                                                          offset_t, offset_t)) {
    const row_number from = dearest_in(step);
    const offset_t cost = parts_[from].cost;
    const bool only_one = alone_in(step, from);
    unit_exchange best;
    offset_t least = cost;
    const auto try_step = [&](offset_t other) {
      constexpr offset_t candidates = 16;  // the cheapest of the step, about
      for (offset_t r = ranks_; r-- > max_of(0, ranks_ - candidates);) {
        const row_number to = order_[nth(other * ranks_ + r)];
        if (to == from || parts_.searches() > last_search_) continue;
        // Where another part is as dear, the step stays as dear for now: then nothing else may become so.
        const offset_t limit = other == step || !only_one ? min_of(dearest_[nth(other)], cost - 1)
                                                          : dearest_[nth(other)];
        const offset_t most = limit - parts_[to].cost;
        const offset_t wanted = other == step ? (cost - parts_[to].cost + 1) / 2 : most;
        const unit_exchange e = (parts_.*find)(from, to, wanted, most);
        if (!e) continue;
        const offset_t left = cost - e.difference;
        const offset_t becomes =
            other == step ? max_of(left, parts_[to].cost + e.difference) : left;
        if (becomes >= least) continue;
        least = becomes;
        best = e;
      }
    };
    try_step(step);
    if (step + 1 < steps()) try_step(steps() - 1);
    if (step + 2 < steps()) try_step(step + 1);
    if (step > 0) try_step(step - 1);
    if (!best) return false;
    parts_.apply(best);
    update(step);
    update(step_of_[nth(best.to)]);
    return true;
  }

  Parts& parts_;
  offset_t ranks_;
  std::vector<row_number> order_;
  std::vector<offset_t> step_of_;
  std::vector<offset_t> dearest_;  ///< cost of each step
  offset_t cost_ = 0;
  offset_t last_search_ = 0;
};

}  // namespace seqpack::detail
