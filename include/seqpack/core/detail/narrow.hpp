/// \file
/// Integers of any type as offsets, and whether numbers fit.
// For the folders above too.
#pragma once

#include <concepts>
#include <limits>
#include <type_traits>

#include "seqpack/core/config.hpp"

namespace seqpack::detail {

/// Whether an integer type holds a number; std::in_range is not for character types.
template <std::integral T>
constexpr bool holds(offset_t value) noexcept {
  if constexpr (std::is_unsigned_v<T> && sizeof(T) >= sizeof(offset_t)) {
    return value >= 0;
  } else {
    return value >= static_cast<offset_t>(std::numeric_limits<T>::min()) &&
           value <= static_cast<offset_t>(std::numeric_limits<T>::max());
  }
}

/// Whether a * b <= limit, for numbers >= 0; the product may be larger than any integer.
constexpr bool product_within(offset_t a, offset_t b, offset_t limit) noexcept {
  offset_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && product <= limit;
}

/// Integers as offsets. An unsigned 64-bit number above max_tokens becomes the next one, which every
/// check refuses.
template <std::integral I>
SEQPACK_HD constexpr offset_t to_offset(I value) noexcept {
  if constexpr (std::is_unsigned_v<I> && sizeof(I) >= sizeof(offset_t)) {
    if (value > static_cast<I>(max_tokens)) return max_tokens + 1;
  }
  return static_cast<offset_t>(value);
}

/// The same with a limit below, so that sums and differences of a few fit 64 bits.
template <std::integral I>
SEQPACK_HD constexpr offset_t to_bounded_offset(I value) noexcept {
  if constexpr (sizeof(I) >= sizeof(offset_t) && std::is_signed_v<I>) {
    if (value > static_cast<I>(max_tokens)) return max_tokens + 1;
    if (value < static_cast<I>(-max_tokens)) return -max_tokens - 1;
  }
  return to_offset(value);
}

}  // namespace seqpack::detail
