/// \file
/// Draws a plan as text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/draw/detail/drawing.hpp"
#include "seqpack/draw/detail/drawn_plan.hpp"
#include "seqpack/draw/detail/text.hpp"
#include "seqpack/draw/draw_options.hpp"

namespace seqpack::detail::drawing {

inline std::string plan_text(const drawn_plan& plan, const draw_options& options) {
  std::size_t label_width = 0;
  std::size_t count_width = 0;
  for (std::size_t k = 0; k < plan.rows.size(); ++k) {
    label_width = std::max(label_width, plan.label(k).size() + 2);
    count_width = std::max(count_width, count_of(plan.rows[k].tokens, "token").size() + 3);
  }
  const auto room = options.columns - static_cast<offset_t>(label_width + count_width);
  const offset_t width = plan.width();
  const offset_t per_cell = divide(width + max_of(room, 10) - 1, max_of(room, 10));

  std::string out;
  if (!options.title.empty()) write(out, options.title, "\n");
  write(out, plan.summary, "\n");
  if (per_cell > 1) {
    write(out, "scaled down: one character is ", per_cell, " tokens, + where they differ\n");
  }
  if (!plan.rows.empty()) out += '\n';
  cell_writer cells(out, options.colour);
  for (std::size_t k = 0; k < plan.rows.size(); ++k) {
    const drawn_row& row = plan.rows[k];
    if (plan.ranks > 1 && k > 0 && k % static_cast<std::size_t>(plan.ranks) == 0) out += '\n';
    std::string label = plan.label(k);
    label.resize(label_width, ' ');
    out += label;
    scaled_line line(width, per_cell);
    for (const drawn_run& run : row.runs) {
      const char glyph = run.entry < 0 ? '~' : run.real ? letter(run.entry) : '.';
      line.mark(run.first, run.count, {glyph, run.entry});
    }
    for (const cell& c : line.cells) cells.emit(c);
    cells.style(-1, false);
    write(out, plan.shows_capacity() ? "|  " : "   ",
          row.empty ? "empty" : count_of(row.tokens, "token"), "\n");
  }
  if (plan.hidden_rows() > 0) {
    write(out, "... and ", count_of(plan.hidden_rows(), "more row"), "\n");
  }
  if (!plan.rows.empty()) out += '\n';
  if (plan.entries > 0) {
    write(out, "A is ", plan.entry, " 0, B is ", plan.entry, " 1, and so on",
          plan.entries > 52 ? "; letters repeat after 52" : "", "\n");
  }
  if (plan.padding) out += ".  padding\n";
  if (plan.ghost) out += "~  ghost, padding of no sequence\n";
  return out;
}

}  // namespace seqpack::detail::drawing
