/// \file
/// Plans: which sequences share a row, and which rank gets which rows.
#pragma once

#include "seqpack/plan/piece_view.hpp"
#include "seqpack/plan/plan_options.hpp"
#include "seqpack/plan/plan_rows.hpp"
#include "seqpack/plan/plan_steps.hpp"
#include "seqpack/plan/plan_summary.hpp"
#include "seqpack/plan/require_plan.hpp"
#include "seqpack/plan/row_packer.hpp"
#include "seqpack/plan/row_plan.hpp"
#include "seqpack/plan/sequence_cost.hpp"
#include "seqpack/plan/step_plan.hpp"
#include "seqpack/plan/step_plan_options.hpp"
#include "seqpack/plan/step_summary.hpp"
