/// \file
/// Options of a training step.
#pragma once

#include <limits>

#include "seqpack/loss/loss_options.hpp"

namespace seqpack {

/// A count that was not given.
inline constexpr double not_given = std::numeric_limits<double>::quiet_NaN();

/// Options of a training step.
struct forward_options {
  /// N_tok and N_seq of the global batch; see count_valid. A loss whose level, or one of whose
  /// means, is per token or per sequence must be given that count; 0 says that nothing counts.
  double global_valid_toks = not_given;
  double global_valid_seqs = not_given;
  double temperature = 1;             ///< of logits; finite and above 0
  bool cp_normalize = true;           ///< see loss_options
  loss_pass pass = loss_pass::fused;  ///< how the loss goes through the packed row
  /// Divides the logits by the temperature in the model's memory, for callers that read the output.
  /// Without it they stay as they are, and the loss takes the temperature in its own pass. The
  /// gradient is with respect to what the model has given, in both cases.
  bool scale_in_place = false;
  /// Before anything else is sent, every rank of both groups tells the others whether its batch,
  /// then its model and output, and then the call of its loss can be used, so that all ranks
  /// fail or none: some exchanges of a few bytes, which the host waits for. Without it a rank that
  /// refuses its input leaves the others waiting until their deadline. The same on all ranks, as
  /// all options are.
  bool check_all_ranks = true;
  /// Writes 0 between the rows of a gradient; see log_prob_options.
  bool zero_padded_columns = false;
};

}  // namespace seqpack
