/// \file
/// What a plan for data-parallel ranks comes to: steps, balance and fill.
#pragma once

#include <cstddef>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/plan/detail/plan_checks.hpp"
#include "seqpack/plan/detail/row_rules.hpp"
#include "seqpack/plan/plan_summary.hpp"
#include "seqpack/plan/require_plan.hpp"
#include "seqpack/plan/sequence_cost.hpp"
#include "seqpack/plan/step_plan.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

/// A plan for data-parallel ranks in numbers.
struct step_summary {
  offset_t steps = 0;
  offset_t ranks = 1;
  offset_t empty = 0;                ///< micro-batches without sequences
  plan_summary micro_batches;        ///< one after another, the empty ones too
  offset_t cost = 0;                 ///< the sum over the steps of the dearest micro-batch
  std::vector<offset_t> step_costs;  ///< the dearest micro-batch of each step
  std::vector<offset_t> rank_costs;  ///< all micro-batches of each rank together
  double mean_cost = 0;              ///< of a rank: what `cost` would be if ranks never waited
};

/// \param plan of these lengths; it may leave some out
/// \param lengths, token_budget, padding, cp as for plan_steps
/// \param cost what a sequence costs
/// \throws invalid_input as require_plan does, and for costs as plan_steps does.
///
/// Allocates O(B + steps * ranks). O(B + steps * ranks). Usable in constant expressions.
template <integer_range Lengths, padding_policy P = no_padding,
          context_parallel_policy C = no_context_parallel>
constexpr step_summary summary_of(const step_plan& plan, Lengths&& lengths, offset_t token_budget,
                                  const P& padding = {}, const C& cp = {},
                                  const sequence_cost& cost = {}) {
  require_plan(plan, lengths, token_budget, padding, cp, {.all = false});
  const auto rules = detail::row_rules_of(token_budget, padding, cp, "token_budget");
  step_summary summary;
  summary.steps = plan.steps();
  summary.ranks = plan.ranks();
  summary.empty = plan.empty_micro_batches();
  summary.micro_batches =
      detail::summarize(plan.micro_batches(), detail::lengths_of(lengths, rules), rules, cost);
  summary.step_costs.assign(static_cast<std::size_t>(plan.steps()), 0);
  summary.rank_costs.assign(static_cast<std::size_t>(plan.ranks()), 0);
  for (std::size_t k = 0; k < summary.micro_batches.row_costs.size(); ++k) {
    const offset_t micro_batch = summary.micro_batches.row_costs[k];
    offset_t& step = summary.step_costs[k / summary.rank_costs.size()];
    step = max_of(step, micro_batch);
    summary.rank_costs[k % summary.rank_costs.size()] += micro_batch;
  }
  for (const offset_t step : summary.step_costs) summary.cost += step;
  offset_t total = 0;
  for (const offset_t rank : summary.rank_costs) total += rank;
  summary.mean_cost = static_cast<double>(total) / static_cast<double>(plan.ranks());
  return summary;
}

}  // namespace seqpack
