/// \file
/// Where in the source a call was made, for errors.
#pragma once

#include <string>
#include <string_view>

namespace seqpack {

/// A line of a file. As a default argument, `source_location where = source_location::current()` is the
/// place of the call. It stands in for std::source_location, which clang has from version 16 on.
struct source_location {
  const char* file = "";
  int line = 0;

  static constexpr source_location current(const char* file = __builtin_FILE(),
                                           int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
  /// "seqpack/comm/mpi.hpp:120", and of a file that is not the library's "main.cpp:12": where
  /// folders of the machine that compiled it lie is not shown.
  std::string to_string() const {
    const std::string_view path(file);
    const auto library = path.rfind("/seqpack/");
    const auto begin = library == path.npos ? path.rfind('/') : library;
    const auto shown = begin == path.npos ? path : path.substr(begin + 1);
    return std::string(shown) + ":" + std::to_string(line);
  }
};

}  // namespace seqpack
