/// \file
/// Draws a plan as SVG.
#pragma once

#include <cstddef>
#include <string>

#include "seqpack/core/config.hpp"
#include "seqpack/draw/detail/drawing.hpp"
#include "seqpack/draw/detail/drawn_plan.hpp"
#include "seqpack/draw/detail/svg_page.hpp"
#include "seqpack/draw/draw_options.hpp"

namespace seqpack::detail::drawing {

/// A band for each row, as wide as the capacity, with a box for each sequence.
class plan_svg : svg_page {
 public:
  plan_svg(const drawn_plan& plan, const draw_options& options)
      : svg_page(options),
        plan_(plan),
        right_(static_cast<double>(options.width) - margin - counts),
        unit_((right_ - left) / static_cast<double>(plan.width())) {
    for (const drawn_row& row : plan.rows) boxes_ += row.runs.size();
  }

  std::string draw() {
    title();
    text("muted", margin, y_ += 22, plan_.summary);
    if (plan_.shows_capacity() && !plan_.rows.empty()) {
      text("bound", left + unit_ * static_cast<double>(plan_.capacity), y_ += 30,
           join(plan_.capacity));
    }
    y_ += 10;
    for (std::size_t k = 0; k < plan_.rows.size(); ++k) row(k);
    if (plan_.hidden_rows() > 0) {
      text("muted", left, y_ += 14, join("... and ", count_of(plan_.hidden_rows(), "more row")));
    }
    legend(plan_.padding, plan_.ghost);
    return document("plan", boxes_ > 400 ? 0.2 : 1.0, ".edge{stroke:#59636e;stroke-dasharray:4 3}");
  }

 private:
  static constexpr double band = 22;
  static constexpr double counts = 90;  // for the tokens of a row, right of it

  void row(std::size_t k) {
    const drawn_row& row = plan_.rows[k];
    const auto ranks = static_cast<std::size_t>(plan_.ranks);
    if (ranks > 1 && k > 0 && k % ranks == 0) y_ += 12;
    text("label", left - 12, y_ + 15, plan_.label(k));
    const double width = unit_ * static_cast<double>(plan_.width());
    rect("width", left, y_, width, band, "#eef0f3");
    for (const drawn_run& run : row.runs) box(run);
    if (plan_.shows_capacity()) {
      const double x = left + unit_ * static_cast<double>(plan_.capacity);
      write(body_, "<path class='edge' d='M", x, " ", y_ - 4, "v", band + 8, "'/>\n");
    }
    text("muted", right_ + 12, y_ + 15, row.empty ? "empty" : count_of(row.tokens, "token"));
    y_ += band + 6;
  }

  void box(const drawn_run& run) {
    const double x = left + unit_ * static_cast<double>(run.first);
    const double w = unit_ * static_cast<double>(run.count);
    const offset_t colour = run.entry < 0 ? ghost_colour : run.entry % 8;
    rect("row", x, y_, w, band, fill_of(colour, run.real));
    if (!run.real) return;
    const std::string number = join(run.entry);
    if (w >= 8 + 7 * static_cast<double>(number.size())) text("token", x + w / 2, y_ + 15, number);
  }

  const drawn_plan& plan_;
  double right_;
  double unit_;  ///< of one token
  std::size_t boxes_ = 0;
};

}  // namespace seqpack::detail::drawing
