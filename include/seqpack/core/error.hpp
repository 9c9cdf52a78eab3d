/// \file
/// What a caller got wrong, as an exception that names the entry, its value and the limit.
#pragma once

#include <stdexcept>
#include <string>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// Thrown for every argument that the library refuses. what() reads
/// "<entry> is <value>: <requirement>", for example
/// "lengths[1] is -1: a length must be at least 0".
/// It is thrown before anything is written to the caller's memory.
class invalid_input : public std::invalid_argument {
 public:
  invalid_input(std::string entry, std::string value, std::string requirement)
      : std::invalid_argument(entry + " is " + value + ": " + requirement),
        entry_(std::move(entry)),
        value_(std::move(value)),
        requirement_(std::move(requirement)) {}

  /// What was refused, for example "lengths[1]".
  const std::string& entry() const noexcept { return entry_; }
  /// Its value, for example "-1".
  const std::string& value() const noexcept { return value_; }
  /// What it must be, with the limit, for example "a length must be at least 0".
  const std::string& requirement() const noexcept { return requirement_; }

 private:
  std::string entry_;
  std::string value_;
  std::string requirement_;
};

/// "name[index]", the usual spelling of an entry.
inline std::string entry_name(const char* name, offset_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

/// Throws invalid_input. Kept out of line: the callers are hot loops.
[[noreturn, gnu::noinline, gnu::cold]] inline void reject(std::string entry, std::string value,
                                                          std::string requirement) {
  throw invalid_input(std::move(entry), std::move(value), std::move(requirement));
}

/// The same with a number as the value.
[[noreturn, gnu::noinline, gnu::cold]] inline void reject(std::string entry, offset_t value,
                                                          std::string requirement) {
  reject(std::move(entry), std::to_string(value), std::move(requirement));
}

}  // namespace seqpack
