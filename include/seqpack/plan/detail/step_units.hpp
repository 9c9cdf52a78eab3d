/// \file
/// From lengths to the micro-batches of a step_plan, and the check of every one.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/plan/detail/plan_units.hpp"
#include "seqpack/plan/detail/row_rules.hpp"
#include "seqpack/plan/detail/step_planner.hpp"
#include "seqpack/plan/detail/units.hpp"
#include "seqpack/plan/row_plan.hpp"
#include "seqpack/plan/step_plan.hpp"
#include "seqpack/plan/step_plan_options.hpp"

namespace seqpack::detail {

constexpr void require_options(const step_plan_options& options, offset_t ranks) {
  require_tuples(options.tuple, options.most_sequences);
  require_split(options.too_long, options.tuple);
  if (ranks < 1 || ranks > max_planned_ranks) {
    reject("ranks", ranks, {"it must be from 1 to ", max_planned_ranks});
  }
  const offset_t most = max_steps_multiple / ranks;
  if (options.steps_multiple < 1 || options.steps_multiple > most) {
    reject("steps_multiple", options.steps_multiple,
           {"it must be from 1 to ", most, ", so that times ", ranks, " ranks it is at most ",
            max_steps_multiple});
  }
}

template <class Rounding>
constexpr step_plan plan_micro_batches(const row_rules<Rounding>& rules,
                                       std::vector<offset_t> lengths, offset_t ranks,
                                       const step_plan_options& options) {
  require_options(options, ranks);
  planned_items items = items_of(rules, std::move(lengths), options.too_long, options.tuple);
  const std::vector<offset_t> contents = contents_of(rules, items.lengths, options.tuple);
  const std::vector<offset_t> costs = costs_of(rules, items.lengths, options.tuple, options.cost);
  step_planner planner(contents, costs,
                       {rules.most_content, options.most_sequences / options.tuple},
                       {ranks, options.steps_multiple});
  const planned_steps planned = planner.plan();
  plan_arrays arrays = arrays_of([](std::size_t k) { return static_cast<offset_t>(k); },
                                 planned.micro_batch_of, planned.steps * ranks, options.tuple);
  const char* const name = items.pieces.empty() ? "lengths" : "piece_lengths";
  row_plan rows(std::move(arrays.sequences), std::move(arrays.bounds), std::move(items.pieces));
  for (offset_t k = 0; k < rows.rows(); ++k) {
    // What is empty is no layout of its own: forward_step gives it a slot that does not count.
    if (rows.row(k).empty()) continue;
    require_row_layout(rules, k, rows.row(k), items.lengths, name);
  }
  return {std::move(rows), ranks};
}

}  // namespace seqpack::detail
