/// \file
/// What a caller got wrong, as an exception that names the entry, its value and the limit.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
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
  /// Characters that live as long as the call, or a whole number.
  class piece {
   public:
    constexpr piece(const char* text) noexcept : text_(text) {}
    constexpr piece(std::string_view text) noexcept : text_(text) {}
    piece(const std::string& text) noexcept : text_(text) {}
    template <std::integral I>
    constexpr piece(I number) noexcept
        : number_(static_cast<std::uint64_t>(number)),
          kind_(std::is_signed_v<I> ? kind::signed_number : kind::unsigned_number) {}

    void append_to(std::string& all) const;

   private:
    enum class kind : unsigned char { text, signed_number, unsigned_number };
    std::string_view text_;
    std::uint64_t number_ = 0;
    kind kind_ = kind::text;
  };

  template <class Piece>
    requires std::convertible_to<const Piece&, piece>
  constexpr error_text(const Piece& only) noexcept : only_(only), pieces_(&only_, 1) {}
  constexpr error_text(std::initializer_list<piece> pieces) noexcept
      : only_(""), pieces_(pieces.begin(), pieces.size()) {}
  error_text(const error_text&) = delete;
  error_text& operator=(const error_text&) = delete;

  std::string joined() const;

 private:
  piece only_;
  std::span<const piece> pieces_;
};

[[gnu::noinline, gnu::cold]] inline void error_text::piece::append_to(std::string& all) const {
  switch (kind_) {
    case kind::text: all += text_; break;
    case kind::signed_number: all += std::to_string(static_cast<std::int64_t>(number_)); break;
    case kind::unsigned_number: all += std::to_string(number_); break;
  }
}

[[gnu::noinline, gnu::cold]] inline std::string error_text::joined() const {
  std::string all;
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
