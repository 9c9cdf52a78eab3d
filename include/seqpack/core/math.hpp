/// \file
/// Integer arithmetic on token counts, callable on the device.
#pragma once

#include <cstdint>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// The smaller number: std::min is not for device code.
SEQPACK_HD constexpr offset_t min_of(offset_t a, offset_t b) noexcept {
  return b < a ? b : a;
}
/// The larger number.
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

/// What `divide` leaves.
SEQPACK_HD constexpr offset_t remainder(offset_t a, offset_t b) noexcept {
  return a - divide(a, b) * b;
}

/// Whether a mask can do what a division would.
SEQPACK_HD constexpr bool is_power_of_two(offset_t value) noexcept {
  return value > 0 && (value & (value - 1)) == 0;
}

namespace detail {
/// For the high half of a 64-bit product.
__extension__ typedef unsigned __int128 uint128;
}  // namespace detail

/// A divisor that is known only at run time, made ready for many divisions: a multiplication and a
/// shift in the place of each. (Lemire, Kaser, Kurz: Faster remainder by direct computation, 2019.)
class fast_divisor {
 public:
  constexpr fast_divisor() = default;
  /// \pre value >= 1
  constexpr explicit fast_divisor(offset_t value) noexcept
      : value_(value),
        reciprocal_(value == 1 ? 0 : ~std::uint64_t{0} / unsigned_of(value) + 1),
        largest_(value == 1 || value >> 32 != 0 ? 0 : 0xFFFFFFFF),
        power_of_two_(is_power_of_two(value)) {}

  SEQPACK_HD constexpr offset_t value() const noexcept { return value_; }

  /// x / value, x >= 0. Exact: the short way is taken where both numbers fit 32 bits.
  SEQPACK_HD constexpr offset_t divide(offset_t x) const noexcept {
    if (unsigned_of(x) > largest_) {
      return static_cast<offset_t>(unsigned_of(x) / unsigned_of(value_));
    }
    return static_cast<offset_t>(
        static_cast<std::uint64_t>((static_cast<detail::uint128>(x) * reciprocal_) >> 64));
  }

  /// Whether x, x >= 0, is a multiple of the divisor.
  SEQPACK_HD constexpr bool divides(offset_t x) const noexcept {
    if (power_of_two_) return (x & (value_ - 1)) == 0;
    return divide(x) * value_ == x;
  }

  /// The smallest multiple of the divisor that is at least x, x >= 0.
  SEQPACK_HD constexpr offset_t round_up(offset_t x) const noexcept {
    if (power_of_two_) return (x + value_ - 1) & -value_;
    return divide(x + value_ - 1) * value_;
  }

 private:
  SEQPACK_HD static constexpr std::uint64_t unsigned_of(offset_t x) noexcept {
    return static_cast<std::uint64_t>(x);
  }

  offset_t value_ = 1;
  std::uint64_t reciprocal_ = 0;
  std::uint64_t largest_ = 0;  // what the short way can divide
  bool power_of_two_ = true;
};

/// The smallest multiple of `multiple` that is at least `value`; value >= 0, multiple >= 1.
SEQPACK_HD constexpr offset_t round_up(offset_t value, offset_t multiple) noexcept {
  if (is_power_of_two(multiple)) return (value + multiple - 1) & -multiple;
  return divide(value + multiple - 1, multiple) * multiple;
}
/// The same for a multiple that is used many times.
SEQPACK_HD constexpr offset_t round_up(offset_t value, const fast_divisor& multiple) noexcept {
  return multiple.round_up(value);
}

}  // namespace seqpack
