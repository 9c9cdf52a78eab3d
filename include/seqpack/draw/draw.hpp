/// \file
/// Pictures of layouts and plans: text for a terminal, SVG for a document.
#pragma once

#include "seqpack/draw/draw_options.hpp"
#include "seqpack/draw/draw_plan.hpp"
#include "seqpack/draw/draw_plan_svg.hpp"
#include "seqpack/draw/draw_svg.hpp"
#include "seqpack/draw/draw_text.hpp"
