/// \file
/// Integer arithmetic on token counts, callable on the device.
#pragma once

#include "seqpack/core/config.hpp"

namespace seqpack {

SEQPACK_HD constexpr offset_t min_of(offset_t a, offset_t b) noexcept {
  return b < a ? b : a;
}
SEQPACK_HD constexpr offset_t max_of(offset_t a, offset_t b) noexcept {
  return a < b ? b : a;
}

/// The quotient of two numbers >= 0 (divisor >= 1). 64-bit division costs several times a 32-bit
/// one on CPUs and GPUs alike, and almost every count fits 32 bits.
SEQPACK_HD constexpr offset_t divide(offset_t a, offset_t b) noexcept {
  constexpr auto limit = std::uint64_t{0xFFFFFFFF};
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  if ((x | y) <= limit) {
    return static_cast<offset_t>(static_cast<std::uint32_t>(x) / static_cast<std::uint32_t>(y));
  }
  return static_cast<offset_t>(x / y);
}

SEQPACK_HD constexpr offset_t remainder(offset_t a, offset_t b) noexcept {
  return a - divide(a, b) * b;
}

SEQPACK_HD constexpr bool is_power_of_two(offset_t value) noexcept {
  return value > 0 && (value & (value - 1)) == 0;
}

/// The smallest multiple of `multiple` that is at least `value`; value >= 0, multiple >= 1.
SEQPACK_HD constexpr offset_t round_up(offset_t value, offset_t multiple) noexcept {
  if (is_power_of_two(multiple)) return (value + multiple - 1) & -multiple;
  return divide(value + multiple - 1, multiple) * multiple;
}

}  // namespace seqpack
