/// \file
/// Pictures of a layout: text for a terminal, SVG for a document.
#pragma once

#include "seqpack/pack/draw_options.hpp"
#include "seqpack/pack/draw_svg.hpp"
#include "seqpack/pack/draw_text.hpp"
