/// \file
/// Where the sequences of a loss come from.
#pragma once

#include <limits>

#include "seqpack/core/config.hpp"
#include "seqpack/tokens/detail/targets.hpp"

namespace seqpack::detail {

// A constant, because a device cannot call std::numeric_limits.
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Where the sequences of a loss come from.
template <class View, class Fields>
struct loss_source {
  View view;
  Fields fields;
  document_rule rule;
};

}  // namespace seqpack::detail
