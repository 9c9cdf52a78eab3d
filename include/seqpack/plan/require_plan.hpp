/// \file
/// require_plan: whether a plan that was made elsewhere fits the lengths.
#pragma once

#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/plan/detail/plan_checks.hpp"
#include "seqpack/plan/detail/row_rules.hpp"
#include "seqpack/plan/detail/units.hpp"
#include "seqpack/plan/row_plan.hpp"
#include "seqpack/plan/step_plan.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

/// What a plan must satisfy besides the capacity.
struct plan_requirements {
  offset_t most_sequences = max_tokens;  ///< of a row
  offset_t tuple = 1;                    ///< sequences [n * tuple, (n + 1) * tuple) share a row
  bool all = true;                       ///< every sequence, or every piece, is in a row
};

namespace detail {

template <class Rounding>
constexpr void require_plan(const row_plan& plan, std::vector<offset_t> items,
                            const row_rules<Rounding>& rules, const plan_requirements& requirements,
                            empty_rows empty) {
  require_tuples(requirements.tuple, requirements.most_sequences);
  require_whole_tuples(static_cast<offset_t>(items.size()), requirements.tuple);
  const bool pieces = !plan.pieces().empty();
  if (pieces) {
    require_pieces(plan.pieces(), items);
    items = plan.piece_lengths();
  }
  const auto count = static_cast<offset_t>(items.size());
  const std::vector<offset_t> row_of = rows_of_items(plan, count);
  if (requirements.all) require_all(row_of, pieces);
  if (requirements.tuple > 1) {
    require_whole_tuples(count, requirements.tuple);  // pieces: one of each sequence
    require_tuples_whole(row_of, requirements.tuple);
  }
  require_rows(plan, rules, items, requirements.most_sequences, empty);
}

}  // namespace detail

/// Checks a plan against the lengths: each sequence is in one slot, tuples are in one row, no row
/// holds more than plan_rows would put there, and make_layout takes every row.
///
///     const row_plan plan(sequences, bounds);  // arrays of any integer type
///     require_plan(plan, lengths, 8192, padding, cp);
///
/// \param lengths, capacity, padding, cp as for plan_rows; with pieces, the lengths of the sequences that
/// these are of
/// \throws invalid_input, naming the row, the sequence, its value and the limit; and as plan_rows does for
/// lengths, capacity and policies.
///
/// Allocates O(B). O(B + rows). Usable in constant expressions.
template <integer_range Lengths, padding_policy P = no_padding,
          context_parallel_policy C = no_context_parallel>
constexpr void require_plan(const row_plan& plan, Lengths&& lengths, offset_t capacity,
                            const P& padding = {}, const C& cp = {},
                            const plan_requirements& requirements = {}) {
  const auto rules = detail::row_rules_of(capacity, padding, cp);
  detail::require_plan(plan, detail::lengths_of(lengths, rules), rules, requirements,
                       detail::empty_rows::as_layouts);
}

/// The same for micro-batches, which may be empty under any padding. Row k is that of rank k mod ranks in
/// step k / ranks.
template <integer_range Lengths, padding_policy P = no_padding,
          context_parallel_policy C = no_context_parallel>
constexpr void require_plan(const step_plan& plan, Lengths&& lengths, offset_t token_budget,
                            const P& padding = {}, const C& cp = {},
                            const plan_requirements& requirements = {}) {
  const auto rules = detail::row_rules_of(token_budget, padding, cp, "token_budget");
  detail::require_plan(plan.micro_batches(), detail::lengths_of(lengths, rules), rules,
                       requirements, detail::empty_rows::legal);
}

}  // namespace seqpack
