/// \file
/// Global counts: what losses and metrics are divided by.
#pragma once

#include <cmath>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/text.hpp"
#include "seqpack/core/error.hpp"

namespace seqpack {

/// The count that a mean or a loss is divided by.
enum class count_of {
  none,       ///< nothing: it is a sum
  tokens,     ///< N_tok
  sequences,  ///< N_seq
  pairs       ///< N_seq / 2
};

/// The counts of a global batch: all micro-batches of all data-parallel ranks, each sequence once.
/// Weighted by the masks where these are not 0 and 1. `count_valid` computes them.
struct global_counts {
  double tokens = 0;     ///< N_tok: valid targets; position 0 of a sequence is none
  double sequences = 0;  ///< N_seq: valid sequences

  /// 1 / count. Of nothing there is no share: 0 for a count of 0, so that a batch without a valid
  /// token gives loss 0 and gradient 0.
  SEQPACK_HD constexpr double one_over(count_of what) const noexcept {
    const double n = what == count_of::none     ? 1
                     : what == count_of::tokens ? tokens
                     : what == count_of::pairs  ? sequences / 2
                                                : sequences;
    return n > 0 ? 1 / n : 0;
  }

  constexpr global_counts& operator+=(const global_counts& other) {
    tokens += other.tokens;
    sequences += other.sequences;
    return *this;
  }
  friend constexpr bool operator==(const global_counts&, const global_counts&) = default;
};

/// The smallest count above 0: the reciprocal of half of it is finite, and so are the loss and its
/// gradient.
inline constexpr double least_count = 1e-300;

/// \throws invalid_input for a count that is negative, infinite, not a number, or above 0 and below
/// least_count.
inline void require_counts(const global_counts& counts) {
  const auto require = [](const char* name, double value) {
    if (!(value >= 0) || std::isinf(value)) {
      reject(name, detail::text_of(value), "it must be a finite number, at least 0");
    }
    if (value > 0 && value < least_count) {
      reject(name, detail::text_of(value), "it must be 0, or at least 1e-300");
    }
  };
  require("global_valid_toks", counts.tokens);
  require("global_valid_seqs", counts.sequences);
}

}  // namespace seqpack
