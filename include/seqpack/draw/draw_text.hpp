/// \file
/// A layout as text, for terminals.
#pragma once

#include <string>

#include "seqpack/draw/detail/drawing.hpp"
#include "seqpack/draw/detail/text.hpp"
#include "seqpack/draw/draw_options.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_view.hpp"

namespace seqpack {

/// Draws a layout as lines of text: the packed row (a letter per sequence, '.' for padding, '~' for
/// a ghost), which rank owns each token, and every rank's shard.
///
///     std::fputs(draw_text(layout, {.colour = true}).c_str(), stdout);
///
/// Rows of more than options.longest tokens are scaled down, and the text says so. Each line ends
/// in '\n'; without colour and title it is plain ASCII. Allocates. O(runs of the layout).
/// \throws invalid_input for options out of range.
template <layout L>
  requires runs_on<host_t, L>
std::string draw_text(const L& layout, const draw_options& options = {}) {
  detail::drawing::require_options(options);
  const auto view = layout.view();
  return detail::drawing::text_picture(view, options).draw();
}

}  // namespace seqpack
