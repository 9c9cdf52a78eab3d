/// \file
/// The counts of a step that its loss is divided by.
#pragma once

#include <cmath>

#include "seqpack/core/error.hpp"
#include "seqpack/loss/detail/loss_checks.hpp"
#include "seqpack/loss/global_counts.hpp"
#include "seqpack/step/forward_options.hpp"

namespace seqpack::detail {

/// \throws invalid_input where the loss needs a count that was not given.
template <class L>
global_counts step_counts(const forward_options& options) {
  const auto count = [](bool needed, const char* name, double value) {
    if (!std::isnan(value)) return value;
    if (needed) reject(name, "not given", "the loss, or a metric of it, is divided by it");
    return 0.0;
  };
  return {count(needs_tokens<L>, "global_valid_toks", options.global_valid_toks),
          count(needs_sequences<L>, "global_valid_seqs", options.global_valid_seqs)};
}

}  // namespace seqpack::detail
