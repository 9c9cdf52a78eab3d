/// \file
/// Options of the pictures of layouts and plans.
#pragma once

#include <string>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// Options of draw_text, draw_svg, draw_plan and draw_plan_svg.
struct draw_options {
  bool colour = false;      ///< text: ANSI colours, one per sequence
  offset_t columns = 100;   ///< text: characters of a line of tokens, at least 40
  offset_t longest = 2000;  ///< text: a row of more tokens is scaled down to so many characters
  offset_t entries = 12;    ///< sequences that are listed, and ranks that the text shows
  offset_t rows = 40;       ///< plans: rows that are shown, or of a step_plan whole steps of them
  offset_t width = 960;     ///< SVG: its width, at least 640
  std::string title{};      ///< a line above the picture; none where it is empty
};

}  // namespace seqpack
