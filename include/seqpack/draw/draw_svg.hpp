/// \file
/// A layout as SVG, for documents.
#pragma once

#include <string>

#include "seqpack/draw/detail/drawing.hpp"
#include "seqpack/draw/detail/svg.hpp"
#include "seqpack/draw/draw_options.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_view.hpp"

namespace seqpack {

/// Draws a layout as an SVG document: the batch, the packed row with its bounds, and every rank's
/// shard with what flows into it. It brings its own background and asks for no font. For up to some
/// thousand tokens: there is a rectangle for every run of tokens, and where the ranks share the row
/// in too many pieces, the picture says so instead of who owns what. Allocates. O(runs of the
/// layout).
/// \throws invalid_input for options out of range.
template <layout L>
  requires runs_on<host_t, L>
std::string draw_svg(const L& layout, const draw_options& options = {}) {
  detail::drawing::require_options(options);
  const auto view = layout.view();
  return detail::drawing::svg_picture(view, options).draw();
}

}  // namespace seqpack
