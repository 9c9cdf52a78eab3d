/// \file
/// From contents and costs of units to micro-batches: how many steps, and which unit is where.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/detail/bounds.hpp"
#include "seqpack/plan/detail/balance.hpp"
#include "seqpack/plan/detail/decreasing.hpp"
#include "seqpack/plan/detail/differencing.hpp"
#include "seqpack/plan/detail/part_set.hpp"
#include "seqpack/plan/detail/rooms.hpp"
#include "seqpack/plan/detail/step_balance.hpp"
#include "seqpack/plan/sequence_cost.hpp"

namespace seqpack::detail {

/// What a step is made for.
struct step_shape {
  offset_t ranks;
  offset_t multiple;  ///< of the number of steps
};

/// The micro-batch of each unit.
struct planned_steps {
  std::vector<row_number> micro_batch_of;
  offset_t steps = 0;
};

/// Plans micro-batches in three stages. The number of steps: the fewest for which largest differencing
/// of the contents, evened out, keeps the limits, or else for which bin packing does. Then candidates
/// for so many micro-batches, each improved by moves and swaps: largest differencing of the costs,
/// evened out; of the contents; of the costs into fewer micro-batches, the others being empty; of few
/// units also the dearest first into the cheapest micro-batch with room; bin packing. The one whose
/// steps cost least wins. At last, which rank gets which micro-batch.
template <std::same_as<row_limits> Limits = row_limits>
class step_planner {
 public:
  constexpr step_planner(std::span<const offset_t> contents, std::span<const offset_t> costs,
                         const Limits& limits, const step_shape& shape)
      : contents_(contents),
        costs_(costs),
        limits_(limits),
        shape_(shape),
        few_units_(contents.size() <= 1024) {}

  constexpr ~step_planner() = default;  // for nvcc, which sees none where a member is a span

  constexpr planned_steps plan() {
    if (contents_.empty()) return {};
    units_ = sorted(contents_);
    choose_steps();
    improve_candidates();
    return assigned();
  }

 private:
  using parts_of_units = std::vector<row_number>;  ///< empty: there are none

  /// Searches for units that a candidate, or a try to keep the limits, may cost.
  static constexpr offset_t effort(std::size_t units) noexcept {
    return 32'768 + static_cast<offset_t>(units);
  }

  static constexpr std::vector<sized_unit> sorted(std::span<const offset_t> sizes) {
    std::vector<sized_unit> units;
    units.reserve(sizes.size());
    for (const offset_t size : sizes)
      units.push_back({size, static_cast<row_number>(units.size())});
    sort_decreasing(units);
    return units;
  }

  /// Steps that have a micro-batch for each of so many rows, at least one.
  constexpr offset_t steps_of(offset_t rows, offset_t multiple) const noexcept {
    return max_of(1, divided_up(divided_up(rows, shape_.ranks), multiple)) * multiple;
  }
  constexpr offset_t parts() const noexcept { return steps_ * shape_.ranks; }

  /// No plan needs less: units that fill more than half of the room never share a micro-batch.
  constexpr offset_t lower_bound() const {
    const auto small = std::find_if(units_.begin(), units_.end(), [&](const sized_unit& u) {
      return u.size <= limits_.room / 2;
    });
    return max_of(fewest_rows(units_, limits_), small - units_.begin());
  }

  constexpr void choose_steps() {
    const offset_t fewest = lower_bound();
    fewest_steps_ = steps_of(fewest, 1);
    const auto enough = [&](offset_t steps) {
      steps_ = steps;
      by_content_ = differenced(contents_, units_, parts());
      return !by_content_.empty();
    };
    const offset_t least = steps_of(fewest, shape_.multiple);
    if (enough(least)) return;
    pack();
    const offset_t most = steps_of(packed_rows_, shape_.multiple);
    if (most - shape_.multiple > least && enough(most - shape_.multiple)) return;
    if (most > least) enough(most);
  }

  constexpr void pack() {
    const placement packed = fit_decreasing(units_, limits_);
    packed_rows_ = packed.rows;
    packed_.assign(contents_.size(), 0);
    for (std::size_t k = 0; k < units_.size(); ++k) {
      packed_[nth(units_[k].unit)] = packed.row_of[k];
    }
  }

  /// Largest differencing of some numbers of the units, and then what the limits ask for.
  /// \returns the part of each unit, or nothing where the limits were not met
  constexpr parts_of_units differenced(std::span<const offset_t> numbers,
                                       std::span<const sized_unit> sorted, offset_t parts) const {
    // It knows no limits: a part may get all contents, and their sum must not wrap.
    if (content_sum(contents_) >= saturated_sum) return {};
    parts_of_units part_of = differencing(numbers, parts).run(sorted);
    if (within_limits(part_of, parts)) return part_of;
    part_set set(contents_, costs_, contents_, std::move(part_of), parts, limits_);
    even_out_counts(set);
    if (!even_out_contents(set, effort(contents_.size()))) return {};
    return set.part_of();
  }
  constexpr bool within_limits(const parts_of_units& part_of, offset_t parts) const {
    std::vector<row_limits> used(nth(parts), row_limits{0, 0});
    for (std::size_t u = 0; u < part_of.size(); ++u) {
      row_limits& part = used[nth(part_of[u])];
      part.room += contents_[u];
      ++part.most_units;
      if (part.room > limits_.room || part.most_units > limits_.most_units) return false;
    }
    return true;
  }

  constexpr void improve_candidates() {
    offset_t total = 0;
    offset_t dearest = 0;
    for (const offset_t cost : costs_) {
      total += cost;
      dearest = max_of(dearest, cost);
    }
    enough_ = max_of(divided_up(total, shape_.ranks), dearest);
    // No plan is better by more than a millionth or, where each try costs milliseconds, 1 in 16,384.
    enough_ += enough_ >> (few_units_ ? 20 : 14);
    const bool same = std::equal(costs_.begin(), costs_.end(), contents_.begin());
    std::vector<sized_unit> by_cost = units_;
    if (!same) by_cost = sorted(costs_);
    if (!same) try_candidate(differenced(costs_, by_cost, parts()));
    try_candidate(std::move(by_content_));
    // Steps that may as well stay empty.
    if (fewest_steps_ < steps_ && best_cost_ > enough_) {
      try_candidate(differenced(costs_, by_cost, fewest_steps_ * shape_.ranks));
    }
    if (best_cost_ <= enough_) return;
    if (few_units_) {
      parts_of_units greedy = dearest_first(contents_, costs_, limits_, parts());
      if (!greedy.empty()) try_candidate(std::move(greedy));
    }
    if (best_cost_ <= enough_) return;
    if (packed_.empty()) pack();
    if (packed_rows_ <= parts()) try_candidate(std::move(packed_));
  }

  constexpr void try_candidate(parts_of_units part_of) {
    if (part_of.empty() || best_cost_ <= enough_) return;
    part_set set(contents_, costs_, costs_, std::move(part_of), parts(), limits_);
    step_balance balance(set, shape_.ranks);
    balance.improve(enough_, effort(contents_.size()));
    if (balance.cost() >= best_cost_) return;
    best_cost_ = balance.cost();
    best_ = set.part_of();
    order_ = balance.order();
    cost_of_part_.clear();
    for (row_number k = 0; k < set.size(); ++k) cost_of_part_.push_back(set[k].cost);
  }

  /// In every step the dearest micro-batch goes to the rank that has cost least so far, and so on.
  constexpr planned_steps assigned() const {
    std::vector<std::pair<offset_t, offset_t>> ranks;  // cost so far, and rank
    for (offset_t r = 0; r < shape_.ranks; ++r) ranks.emplace_back(0, r);
    std::vector<row_number> row_of(nth(parts()), 0);
    for (offset_t step = 0; step < steps_; ++step) {
      std::sort(ranks.begin(), ranks.end());
      for (offset_t k = 0; k < shape_.ranks; ++k) {
        const row_number part = order_[nth(step * shape_.ranks + k)];
        auto& [cost, rank] = ranks[nth(k)];
        cost += cost_of_part_[nth(part)];
        row_of[nth(part)] = static_cast<row_number>(step * shape_.ranks + rank);
      }
    }
    planned_steps result{best_, steps_};
    for (row_number& row : result.micro_batch_of) row = row_of[nth(row)];
    return result;
  }

  std::span<const offset_t> contents_;
  std::span<const offset_t> costs_;
  row_limits limits_;
  step_shape shape_;
  bool few_units_;
  std::vector<sized_unit> units_;  ///< by content
  offset_t fewest_steps_ = 0;      ///< below which no plan comes, whatever the multiple
  offset_t steps_ = 0;
  offset_t enough_ = 0;
  parts_of_units by_content_;
  parts_of_units packed_;
  offset_t packed_rows_ = 0;

  parts_of_units best_;
  offset_t best_cost_ = max_cost + 1;
  std::vector<row_number> order_;
  std::vector<offset_t> cost_of_part_;
};

}  // namespace seqpack::detail
