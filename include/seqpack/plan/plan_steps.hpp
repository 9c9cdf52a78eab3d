/// \file
/// plan_steps: micro-batches for data-parallel ranks.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/plan/detail/row_rules.hpp"
#include "seqpack/plan/detail/step_units.hpp"
#include "seqpack/plan/step_plan.hpp"
#include "seqpack/plan/step_plan_options.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

/// Plans micro-batches for data-parallel ranks: in every step each rank has one, so that no rank waits for
/// another that has none.
///
///     const step_plan plan = plan_steps(lengths, 8192, ranks, padding{each_multiple_of<16>{}});
///     for (const auto micro_batch : plan.of_rank(rank)) {
///       const auto layout = make_layout(lengths, padding, cp, {.order = micro_batch});
///     }
///
/// The budget comes first: a micro-batch takes at most `token_budget` tokens of a row, by what the padding
/// says, as in plan_rows. Then the number of steps: the smallest multiple of steps_multiple that was found
/// to be enough, by largest differencing with moves and swaps, or by the bin packing of plan_rows; never
/// more than that packing takes. Then the balance: ranks wait for the dearest micro-batch of a step, so
/// the sum over the steps of the dearest one's cost is made small. It is never more than what largest
/// differencing of the costs into steps * ranks parts gives where those keep the limits. Micro-batches
/// that cost about the same are in the same step, the dearest in the first.
///
/// Micro-batches may be empty, where ranks outnumber sequences or steps_multiple asks for more:
/// step_plan::is_empty. No sequences make no steps. Slots follow the sequences. Equal inputs give equal
/// plans, on every machine; agree(group, plan) makes sure of it.
///
/// \param lengths real tokens per sequence of all ranks, any range of integers
/// \param token_budget tokens of a micro-batch, from 1 to max_tokens; `dynamic`: the fixed total of the
/// padding
/// \param ranks data-parallel ranks, from 1 to max_planned_ranks
/// \param padding, cp the policies of the layouts; what is wrong and static does not compile
/// \param options a sequence that takes more than the budget is refused, truncated or split by
/// options.too_long, as plan_rows does it
/// \throws invalid_input, naming the entry, its value and the limit: what plan_rows refuses; ranks or a
/// steps_multiple out of range.
///
/// Allocates O(B + steps * ranks). O(B log^2 B); what moves and swaps may cost is bounded by O(B log B).
/// Usable in constant expressions.
template <integer_range Lengths, padding_policy P = no_padding,
          context_parallel_policy C = no_context_parallel>
constexpr step_plan plan_steps(Lengths&& lengths, offset_t token_budget, offset_t ranks,
                               const P& padding = {}, const C& cp = {},
                               const step_plan_options& options = {}) {
  const auto rules = detail::row_rules_of(token_budget, padding, cp, "token_budget");
  return detail::plan_micro_batches(rules, detail::lengths_of(lengths, rules), ranks, options);
}

}  // namespace seqpack
