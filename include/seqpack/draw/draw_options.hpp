/// \file
/// Options of the pictures of a layout.
#pragma once

#include <string>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// Options of draw_text and draw_svg.
struct draw_options {
  bool colour = false;      ///< text: ANSI colours, one per sequence
  offset_t columns = 100;   ///< text: characters of a line of tokens, at least 40
  offset_t longest = 2000;  ///< text: a row of more tokens is scaled down to so many characters
  offset_t entries = 12;    ///< sequences that are listed, and ranks that the text shows
  offset_t width = 960;     ///< SVG: its width, at least 640
  std::string title{};      ///< a line above the picture; none where it is empty
};

}  // namespace seqpack
