/// \file
/// Options of plans for data-parallel ranks.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/plan/plan_options.hpp"
#include "seqpack/plan/sequence_cost.hpp"

namespace seqpack {

/// Options of plan_steps.
struct step_plan_options {
  /// What is balanced: the sum over the sequences of a micro-batch of the cost of the padded length.
  sequence_cost cost = {};
  /// The number of steps is a multiple of it, as a pipeline schedule or gradient accumulation may ask. Times
  /// the ranks, at most max_steps_multiple.
  offset_t steps_multiple = 1;
  /// The most sequences of a micro-batch.
  offset_t most_sequences = max_tokens;
  /// Sequences [n * tuple, (n + 1) * tuple) share a micro-batch: the two of a preference pair, the
  /// answers to one prompt.
  offset_t tuple = 1;
  seqpack::too_long too_long = seqpack::too_long::refuse;
};

/// The most data-parallel ranks that are planned for.
inline constexpr offset_t max_planned_ranks = offset_t{1} << 20;
/// The most that steps_multiple times the ranks may be: micro-batches that are planned even if they are empty.
inline constexpr offset_t max_steps_multiple = offset_t{1} << 22;

}  // namespace seqpack
