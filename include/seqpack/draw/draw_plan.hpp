/// \file
/// A plan as text, for terminals.
#pragma once

#include <string>

#include "seqpack/core/config.hpp"
#include "seqpack/draw/detail/drawing.hpp"
#include "seqpack/draw/detail/drawn_plan.hpp"
#include "seqpack/draw/detail/plan_text.hpp"
#include "seqpack/draw/draw_options.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/plan/row_plan.hpp"
#include "seqpack/plan/step_plan.hpp"
#include "seqpack/policy/padding.hpp"

namespace seqpack {

/// Draws a plan as lines of text: a line for each row, a letter for each sequence of it, '.' for padding, '~'
/// for a ghost, '|' at the capacity, and how many tokens the row has. Rows are those that make_layout
/// makes.
///
///     std::fputs(draw_plan(plan, lengths, 8192, padding).c_str(), stdout);
///
/// Rows longer than a line are scaled down, and the text says so. Each line ends in '\n'; without colour and
/// title it is plain ASCII. Allocates. O(B), and O(tokens of a line) for each row that is shown.
///
/// \param lengths, capacity, padding as for plan_rows
/// \throws invalid_input for options out of range, and as require_plan does.
template <integer_range Lengths, padding_policy P = no_padding>
std::string draw_plan(const row_plan& plan, const Lengths& lengths, offset_t capacity,
                      const P& padding = {}, const draw_options& options = {}) {
  detail::drawing::require_options(options);
  return detail::drawing::plan_text(
      detail::drawing::drawn(plan, lengths, capacity, padding, options), options);
}
/// The same for micro-batches: a line for each rank, step by step.
template <integer_range Lengths, padding_policy P = no_padding>
std::string draw_plan(const step_plan& plan, const Lengths& lengths, offset_t token_budget,
                      const P& padding = {}, const draw_options& options = {}) {
  detail::drawing::require_options(options);
  return detail::drawing::plan_text(
      detail::drawing::drawn(plan, lengths, token_budget, padding, options), options);
}

}  // namespace seqpack
