/// \file
/// Where in the source a call was made, for errors.
#pragma once

#include <string>

namespace seqpack {

/// A line of a file. As a default argument, `source_place where = source_place::current()` is the
/// place of the call. It stands in for std::source_location, which clang has from version 16 on.
struct source_place {
  const char* file = "";
  int line = 0;

  static constexpr source_place current(const char* file = __builtin_FILE(),
                                        int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
  /// "file:line"
  std::string to_string() const { return std::string(file) + ":" + std::to_string(line); }
};

}  // namespace seqpack
