/// \file
/// Options of plans.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/plan/sequence_cost.hpp"

namespace seqpack {

/// How sequences are chosen for a row.
enum class plan_method {
  decreasing,  ///< the longest first: as few rows as best fit and first fit find, whichever is less
  in_order,    ///< next fit: a row holds neighbours, and rows and slots follow the sequences
  balanced     ///< a number of rows that cost about the same
};

/// What becomes of a sequence that no row has room for.
enum class too_long {
  refuse,    ///< an error, which names it
  truncate,  ///< its first tokens stay: as many as a row has room for
  split      ///< pieces of one sequence each: full rows, then the rest
};

/// Options of plan_rows.
struct plan_options {
  plan_method method = plan_method::decreasing;
  /// Of plan_method::balanced: the number of rows. `dynamic`: as many as plan_method::decreasing takes.
  offset_t rows = dynamic;
  /// The most sequences of a row.
  offset_t most_sequences = max_tokens;
  /// Sequences [n * tuple, (n + 1) * tuple) share a row: the two of a preference pair, the answers to
  /// one prompt.
  offset_t tuple = 1;
  seqpack::too_long too_long = seqpack::too_long::refuse;
  /// What is balanced: the sum over the sequences of a row of the cost of the padded length.
  sequence_cost cost = {};
};

}  // namespace seqpack
