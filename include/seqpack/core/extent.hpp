/// \file
/// A number that is static or dynamic in one type.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"

namespace seqpack {

/// A number from 1 to max_tokens, known at compile time (`extent<16>`, an empty type) or at run
/// time (`extent<>{16}`), as one extent of std::extents. Both give the same results everywhere.
template <offset_t Value = dynamic>
class extent {
  static_assert(Value >= 1 && Value <= max_tokens, "a policy's number must be from 1 to 2^48");

 public:
  static constexpr offset_t static_value = Value;

  constexpr extent() = default;

  SEQPACK_HD constexpr offset_t value() const noexcept { return Value; }
  /// x rounded up to a multiple of the number, x >= 0.
  SEQPACK_HD constexpr offset_t round_up(offset_t x) const noexcept {
    return seqpack::round_up(x, Value);
  }
};

/// The dynamic case.
/// \throws invalid_input when constructed from a number outside [1, max_tokens].
template <>
class extent<dynamic> {
 public:
  static constexpr offset_t static_value = dynamic;

  constexpr extent() = default;
  constexpr explicit extent(offset_t value, const char* name = "extent")
      : value_(checked(value, name)) {}

  SEQPACK_HD constexpr offset_t value() const noexcept { return value_.value(); }
  SEQPACK_HD constexpr offset_t round_up(offset_t x) const noexcept {
    return seqpack::round_up(x, value_);
  }

 private:
  static constexpr offset_t checked(offset_t value, const char* name) {
    if (value < 1 || value > max_tokens) {
      reject(name, value, {"it must be from 1 to ", max_tokens});
    }
    return value;
  }

  fast_divisor value_{1};
};

}  // namespace seqpack
