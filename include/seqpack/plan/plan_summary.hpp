/// \file
/// What a plan comes to: rows, tokens, fill and cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/plan/detail/plan_checks.hpp"
#include "seqpack/plan/detail/row_rules.hpp"
#include "seqpack/plan/detail/units.hpp"
#include "seqpack/plan/require_plan.hpp"
#include "seqpack/plan/row_plan.hpp"
#include "seqpack/plan/sequence_cost.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

/// A plan in numbers.
struct plan_summary {
  offset_t rows = 0;
  offset_t sequences = 0;            ///< entries of all rows: sequences, or pieces
  offset_t real_tokens = 0;          ///< of all rows
  offset_t content = 0;              ///< their padded lengths together, tails apart
  offset_t lower_bound = 0;          ///< ceil(content / what a row has room for)
  double fill = 1;                   ///< content / (rows * what a row has room for)
  std::vector<offset_t> row_tokens;  ///< T of the layout of each row
  std::vector<offset_t> row_costs;   ///< the costs of the padded lengths of each row together
  offset_t longest_row = 0;          ///< the largest of the row_tokens
  offset_t largest_cost = 0;         ///< the largest of the row_costs
  double mean_cost = 0;              ///< their mean; 0 without rows
};

namespace detail {

/// \param lengths of the sequences
template <class Rounding>
constexpr plan_summary summarize(const row_plan& plan, std::vector<offset_t> lengths,
                                 const row_rules<Rounding>& rules, const sequence_cost& cost) {
  std::vector<offset_t> items = plan.piece_lengths();
  if (plan.pieces().empty()) items = std::move(lengths);
  const std::vector<offset_t> costs = costs_of(rules, items, 1, cost);

  plan_summary summary;
  summary.rows = plan.rows();
  summary.sequences = static_cast<offset_t>(plan.sequences().size());
  offset_t total_cost = 0;
  for (offset_t k = 0; k < plan.rows(); ++k) {
    offset_t content = 0;
    offset_t row_cost = 0;
    for (const offset_t entry : plan.row(k)) {
      const offset_t length = items[nth(entry)];
      content += rules.padded(length);
      row_cost += costs[nth(entry)];
      summary.real_tokens = min_of(summary.real_tokens + length, saturated_sum);
    }
    summary.content = min_of(summary.content + content, saturated_sum);
    summary.row_tokens.push_back(rules.total(content));
    summary.row_costs.push_back(row_cost);
    summary.longest_row = max_of(summary.longest_row, rules.total(content));
    summary.largest_cost = max_of(summary.largest_cost, row_cost);
    total_cost += row_cost;
  }
  summary.lower_bound = divided_up(summary.content, rules.most_content);
  if (summary.rows > 0) {
    const auto rows = static_cast<double>(summary.rows);
    summary.fill =
        static_cast<double>(summary.content) / (rows * static_cast<double>(rules.most_content));
    summary.mean_cost = static_cast<double>(total_cost) / rows;
  }
  return summary;
}

}  // namespace detail

/// \param plan of these lengths; it may leave some out
/// \param lengths, capacity, padding, cp as for plan_rows
/// \param cost what a sequence costs
/// \throws invalid_input as require_plan does, and for costs as plan_rows does.
///
/// Allocates O(B). O(B + rows). Usable in constant expressions.
template <integer_range Lengths, padding_policy P = no_padding,
          context_parallel_policy C = no_context_parallel>
constexpr plan_summary summary_of(const row_plan& plan, Lengths&& lengths, offset_t capacity,
                                  const P& padding = {}, const C& cp = {},
                                  const sequence_cost& cost = {}) {
  require_plan(plan, lengths, capacity, padding, cp, {.all = false});
  const auto rules = detail::row_rules_of(capacity, padding, cp);
  return detail::summarize(plan, detail::lengths_of(lengths, rules), rules, cost);
}

}  // namespace seqpack
