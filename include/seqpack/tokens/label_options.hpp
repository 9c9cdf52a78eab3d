/// \file
/// Options of labels.
#pragma once

#include "seqpack/core/config.hpp"

namespace seqpack {

/// Label options.
struct label_options {
  offset_t shift = 1;      ///< k >= 1: the label is the k-th next token of the same sequence
  offset_t ignore = -100;  ///< where there is none; the label type must be able to hold it
  /// V, where it is known: labels are then from 0 to V - 1, and the ignored one is not.
  offset_t vocabulary = dynamic;
};

}  // namespace seqpack
