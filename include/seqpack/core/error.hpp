/// \file
/// What a caller got wrong, as an exception that names the entry, its value and the limit.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// Thrown for every argument that the library refuses. what() reads
/// "<entry> is <value>: <requirement>", for example
/// "lengths[1] is -1: a length must be at least 0".
/// It is thrown before anything is written to the caller's memory.
class invalid_input : public std::invalid_argument {
 public:
  [[gnu::cold]] invalid_input(std::string entry, std::string value, std::string requirement)
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

/// The text of an error, in pieces: text, and numbers. It is joined where the error is thrown, once
/// for all callers; strings that each caller adds up make most of the code of a call that checks its
/// arguments. It refers to its pieces, so it is for arguments of functions only.
///
///     reject("width", width, {"it must be from 0 to ", limit});
class error_text {
 public:
  /// Characters that live as long as the call, or a whole number. Small: callers store it.
  class piece {
   public:
    constexpr piece(const char* text) noexcept : piece(std::string_view(text)) {}
    constexpr piece(std::string_view text) noexcept : text_(text.data()), size_(text.size()) {}
    piece(const std::string& text) noexcept : text_(text.data()), size_(text.size()) {}
    template <std::integral I>
    constexpr piece(I number) noexcept
        : number_(static_cast<std::uint64_t>(number)),
          size_(std::is_signed_v<I> ? signed_number : unsigned_number) {}

    void append_to(std::string& all) const;

   private:
    static constexpr std::size_t signed_number = static_cast<std::size_t>(-1);
    static constexpr std::size_t unsigned_number = static_cast<std::size_t>(-2);
    union {
      const char* text_;
      std::uint64_t number_;
    };
    std::size_t size_;
  };

  constexpr error_text(const char* text) noexcept : only_(text) {}
  constexpr error_text(std::string_view text) noexcept : only_(text) {}
  error_text(const std::string& text) noexcept : only_(text) {}
  template <std::integral I>
  constexpr error_text(I number) noexcept : only_(number) {}
  constexpr error_text(std::initializer_list<piece> pieces) noexcept : only_(""), pieces_(pieces) {}
  error_text(const error_text&) = delete;
  error_text& operator=(const error_text&) = delete;

  std::string joined() const;

 private:
  piece only_;
  std::initializer_list<piece> pieces_ = {};
};

[[gnu::noinline, gnu::cold]] inline void error_text::piece::append_to(std::string& all) const {
  if (size_ == signed_number) {
    all += std::to_string(static_cast<std::int64_t>(number_));
  } else if (size_ == unsigned_number) {
    all += std::to_string(number_);
  } else {
    all.append(text_, size_);
  }
}

[[gnu::noinline, gnu::cold]] inline std::string error_text::joined() const {
  std::string all;
  only_.append_to(all);
  for (const piece& p : pieces_) p.append_to(all);
  return all;
}

/// "name[index]", the usual spelling of an entry.
[[gnu::noinline, gnu::cold]] inline std::string entry_name(const char* name, offset_t index) {
  return error_text{name, "[", index, "]"}.joined();
}

/// Throws invalid_input. Kept out of line: the callers are hot loops.
[[noreturn, gnu::noinline, gnu::cold]] inline void reject(const error_text& entry,
                                                          const error_text& value,
                                                          const error_text& requirement) {
  throw invalid_input(entry.joined(), value.joined(), requirement.joined());
}

}  // namespace seqpack
