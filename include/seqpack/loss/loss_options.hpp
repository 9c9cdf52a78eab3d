/// \file
/// Options of evaluate_loss.
#pragma once

#include "seqpack/logprob/temperature.hpp"
#include "seqpack/loss/global_counts.hpp"

namespace seqpack {

/// The pass of a loss over the packed row. Both ways give the same to the last bit for losses on
/// log-probabilities; one on logits only knows the second.
enum class loss_pass {
  fused,        ///< all sequences at once: a fixed number of launches and collectives per batch
  per_sequence  ///< one tuple after the other: memory for the longest one alone
};

/// Options of the evaluation of a loss.
struct loss_options {
  global_counts counts = {};  ///< of the global batch; see count_valid
  /// Of the logits; finite and above 0.
  logit_temperature temperature = {};
  /// Divides the loss by the number of context-parallel ranks, each of which returns all of it, so
  /// that their sum is the loss. Metrics are not touched.
  bool cp_normalize = true;
  loss_pass pass = loss_pass::fused;
  /// Every tensor-parallel rank has all columns, as of a value head. For losses on logits.
  bool replicated_columns = false;
  /// Writes 0 between the rows of the gradient; see log_prob_options.
  bool zero_padded_columns = false;
};

}  // namespace seqpack
