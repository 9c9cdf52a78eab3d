/// \file
/// Whether a number is kept when its type changes.
// For the folders above too.
#pragma once

#include <concepts>
#include <limits>
#include <string>
#include <type_traits>

#include "seqpack/core/config.hpp"

namespace seqpack::detail {

/// The largest N such that an arithmetic type holds every whole number from 0 to N, as far as an
/// offset_t counts.
template <class T>
  requires std::is_arithmetic_v<T>
inline constexpr offset_t largest_whole = [] {
  if constexpr (std::floating_point<T>) {
    constexpr int digits = std::numeric_limits<T>::digits;
    return digits < 63 ? offset_t{1} << digits : std::numeric_limits<offset_t>::max();
  } else if constexpr (sizeof(T) < sizeof(offset_t) || std::is_signed_v<T>) {
    return static_cast<offset_t>(std::numeric_limits<T>::max());
  } else {
    return std::numeric_limits<offset_t>::max();
  }
}();

/// The smallest N such that it holds every whole number from N to 0.
template <class T>
  requires std::is_arithmetic_v<T>
inline constexpr offset_t smallest_whole = [] {
  if constexpr (std::floating_point<T>) {
    return -largest_whole<T>;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<offset_t>(std::numeric_limits<T>::min());
  } else {
    return offset_t{0};
  }
}();

/// Whether a type holds every value of another one, both arithmetic. A floating type that is wider
/// holds those of a narrower one.
template <class To, class From>
inline constexpr bool holds_all = [] {
  if constexpr (std::same_as<To, From>) {
    return true;
  } else if constexpr (std::floating_point<From>) {
    return std::floating_point<To> && sizeof(To) >= sizeof(From);
  } else {
    const bool large = std::is_unsigned_v<From> && sizeof(From) >= sizeof(offset_t);
    return smallest_whole<From> >= smallest_whole<To> && largest_whole<From> <= largest_whole<To> &&
           (!large || (std::is_unsigned_v<To> && sizeof(To) >= sizeof(From)));
  }
}();

/// The largest finite number of a type; the function of std::numeric_limits is not for device code.
template <class T>
  requires std::is_arithmetic_v<T>
inline constexpr T largest_value = std::numeric_limits<T>::max();

/// Neither infinite nor a NaN; std::isfinite is not for device code.
template <std::floating_point T>
SEQPACK_HD constexpr bool is_finite(T value) noexcept {
  return value <= largest_value<T> && value >= -largest_value<T>;
}

/// Whether an arithmetic type holds a number exactly. Of one floating type in another one the
/// rounding is no loss, but an infinity where there was none is. NaN is held by floating types.
template <class To, class From>
  requires std::is_arithmetic_v<To> && std::is_arithmetic_v<From>
SEQPACK_HD constexpr bool holds_exactly(From value) noexcept {
  if constexpr (holds_all<To, From>) {
    return true;
  } else if constexpr (std::floating_point<From> && std::floating_point<To>) {
    constexpr From most = largest_value<To>;
    return !is_finite(value) || (value <= most && value >= -most);
  } else if constexpr (std::floating_point<From>) {
    // 2^digits, the first number behind the range, is exact in any floating type.
    constexpr int digits = std::numeric_limits<To>::digits;
    From end = 1;
    for (int k = 0; k < digits; ++k) end *= 2;
    const From begin = std::is_signed_v<To> ? -end : From{0};
    if (!(value >= begin && value < end)) return false;  // nor is a NaN
    return static_cast<From>(static_cast<To>(value)) == value;
  } else if constexpr (std::floating_point<To>) {
    // Back again only from what surely is in the range of the integer type.
    constexpr int digits = std::numeric_limits<From>::digits;
    To end = 1;
    for (int k = 0; k < digits; ++k) end *= 2;
    const To there = static_cast<To>(value);
    return there < end && static_cast<From>(there) == value;
  } else {
    if constexpr (std::is_unsigned_v<From> && sizeof(From) >= sizeof(offset_t)) {
      if (value > static_cast<From>(largest_value<offset_t>)) return false;
    }
    const auto whole = static_cast<offset_t>(value);
    return whole >= smallest_whole<To> && whole <= largest_whole<To>;
  }
}

/// A type that is no arithmetic one to the compiler, but can be looked at as a float: half precision.
template <class T>
concept as_float = !std::is_arithmetic_v<T> && requires(offset_t whole, float number, T value) {
  static_cast<T>(whole);
  static_cast<T>(number);
  static_cast<float>(value);
};

/// Whether any type that counts are converted to, half precision for example, holds a whole number
/// exactly. A type that cannot be converted back is taken to hold everything.
template <class To>
SEQPACK_HD constexpr bool holds_whole(offset_t value) {
  if constexpr (std::is_arithmetic_v<To>) {
    return holds_exactly<To>(value);
  } else if constexpr (as_float<To>) {
    const auto kept = static_cast<float>(static_cast<To>(value));
    return holds_exactly<offset_t>(kept) && static_cast<offset_t>(kept) == value;
  } else {
    return true;
  }
}

/// Whether it holds all whole numbers from 0 to `largest`. A floating type that does not hold all of
/// them lacks the number behind a power of two.
template <class To>
constexpr bool counts_to(offset_t largest) {
  if constexpr (std::is_arithmetic_v<To>) {
    return largest <= largest_whole<To>;
  } else {
    for (offset_t power = 1; power < largest && power < max_tokens; power *= 2) {
      if (!holds_whole<To>(power + 1)) return false;
    }
    return holds_whole<To>(largest);
  }
}

/// "-128 to 127", the whole numbers that an arithmetic type holds.
template <class T>
std::string whole_range() {
  return std::to_string(smallest_whole<T>) + " to " +
         (std::unsigned_integral<T> ? std::to_string(std::numeric_limits<T>::max())
                                    : std::to_string(largest_whole<T>));
}

}  // namespace seqpack::detail
