/// \file
/// Numbers as errors print them.
// For the folders above too.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace seqpack::detail {

/// A number as errors print it: as std::to_string does or, where that is another number, with as
/// many digits as it takes.
inline std::string text_of(double value) {
  std::string text = std::to_string(value);
  for (int digits = 6; digits <= 17 && std::strtod(text.c_str(), nullptr) != value; ++digits) {
    char longer[32];
    std::snprintf(longer, sizeof(longer), "%.*g", digits, value);
    if (!std::isnan(value)) text = longer;
  }
  return text;
}

}  // namespace seqpack::detail
