/// \file
/// A plan as SVG, for documents.
#pragma once

#include <string>

#include "seqpack/core/config.hpp"
#include "seqpack/draw/detail/drawing.hpp"
#include "seqpack/draw/detail/drawn_plan.hpp"
#include "seqpack/draw/detail/plan_svg.hpp"
#include "seqpack/draw/draw_options.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/plan/row_plan.hpp"
#include "seqpack/plan/step_plan.hpp"
#include "seqpack/policy/padding.hpp"

namespace seqpack {

/// Draws a plan as an SVG document: a band for each row, which ends at the capacity, and in it a box for each
/// sequence, with its number where there is room, then its padding. Rows are those that make_layout makes.
/// It brings its own background and asks for no font. Allocates. O(B), and O(sequences) for each row that is
/// shown.
///
/// \param lengths, capacity, padding as for plan_rows
/// \throws invalid_input for options out of range, and as require_plan does.
template <integer_range Lengths, padding_policy P = no_padding>
std::string draw_plan_svg(const row_plan& plan, const Lengths& lengths, offset_t capacity,
                          const P& padding = {}, const draw_options& options = {}) {
  detail::drawing::require_options(options);
  const auto drawn = detail::drawing::drawn(plan, lengths, capacity, padding, options);
  return detail::drawing::plan_svg(drawn, options).draw();
}
/// The same for micro-batches: a band for each rank, step by step.
template <integer_range Lengths, padding_policy P = no_padding>
std::string draw_plan_svg(const step_plan& plan, const Lengths& lengths, offset_t token_budget,
                          const P& padding = {}, const draw_options& options = {}) {
  detail::drawing::require_options(options);
  const auto drawn = detail::drawing::drawn(plan, lengths, token_budget, padding, options);
  return detail::drawing::plan_svg(drawn, options).draw();
}

}  // namespace seqpack
