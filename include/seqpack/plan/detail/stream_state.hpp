/// \file
/// The state of a row_packer as numbers, and what is checked of one that comes from a file.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/layout/detail/hash.hpp"
#include "seqpack/plan/detail/rooms.hpp"

namespace seqpack::detail {

inline constexpr offset_t state_mark = 0x7365'7170'6163'6b70;  // "seqpackp"
inline constexpr offset_t state_version = 1;

constexpr offset_t hash_of(std::span<const offset_t> numbers) {
  hasher hash;
  for (const offset_t number : numbers) hash.add(number);
  return static_cast<offset_t>(hash.value() >> 1);
}

/// Writes numbers: a mark, the version, what follows, and a hash of all before it.
class state_writer {
 public:
  constexpr void add(offset_t number) { numbers_.push_back(number); }
  constexpr std::vector<offset_t> finish() {
    numbers_.push_back(hash_of(numbers_));
    return std::move(numbers_);
  }

 private:
  std::vector<offset_t> numbers_ = {state_mark, state_version};
};

/// Reads them again. Errors name the entry.
class state_reader {
 public:
  /// \throws invalid_input for numbers that no state_writer of this version has written.
  constexpr explicit state_reader(std::span<const offset_t> numbers) : numbers_(numbers) {
    if (numbers.size() < 3) {
      reject("size of the state", numbers.size(), "it must be at least 3: it is cut off");
    }
    if (numbers[0] != state_mark) {
      reject("state[0]", numbers[0], {"it must be ", state_mark, ", the mark of a row_packer"});
    }
    if (numbers[1] != state_version) {
      reject("state[1]", numbers[1], {"it must be ", state_version, ", the version"});
    }
    const std::size_t last = numbers.size() - 1;
    if (numbers[last] != hash_of(numbers.first(last))) {
      reject({"state[", last, "]"}, numbers[last],
             "it must be the hash of the others: the state is cut off or was changed");
    }
    numbers_ = numbers.first(last);
  }

  /// The next number.
  /// \throws invalid_input where it is not from `least` to `most`.
  constexpr offset_t next(const char* what, offset_t least, offset_t most) {
    if (next_ == numbers_.size()) reject("size of the state", numbers_.size() + 1, "it is cut off");
    const offset_t number = numbers_[next_++];
    if (number < least || number > most) {
      reject({what, " of the state"}, number, {"it must be from ", least, " to ", most});
    }
    return number;
  }
  /// \throws invalid_input for another number than the one that the packer has.
  constexpr void expect(const char* what, offset_t number) {
    if (next_ == numbers_.size()) reject("size of the state", numbers_.size() + 1, "it is cut off");
    const offset_t found = numbers_[next_++];
    if (found != number) {
      reject({what, " of the state"}, found, {"it must be ", number, ", that of the packer"});
    }
  }
  /// How many things of `size` numbers follow.
  constexpr offset_t count(const char* what, offset_t size) {
    return next(what, 0, static_cast<offset_t>(numbers_.size() - next_) / size);
  }
  constexpr void finish() const {
    if (next_ != numbers_.size()) {
      reject("size of the state", numbers_.size() + 1, {"it must be ", next_ + 1});
    }
  }

 private:
  std::span<const offset_t> numbers_;
  std::size_t next_ = 2;
};

}  // namespace seqpack::detail
