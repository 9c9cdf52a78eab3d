/// \file
/// What a padding policy and a context-parallel policy must agree on, at compile time where the
/// numbers are static and at run time where they are not.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

// The assertions live in templates of the two numbers, so that every compiler prints them:
// "each_is_a_multiple_of_the_sharding_divisor<12, 8>".

/// Refuses an `each` that the sharding cannot cut.
template <offset_t Each, offset_t Divisor>
struct each_is_a_multiple_of_the_sharding_divisor {
  static_assert(Each % Divisor == 0,
                "each_multiple_of must be a multiple of what the sharding divides by "
                "(2 * CP for zigzag, CP for contiguous and striped)");
  static constexpr bool value = true;
};

/// Refuses a fixed total that is no multiple of the total multiple.
template <offset_t Total, offset_t Multiple>
struct fixed_total_is_a_multiple_of_the_total_multiple {
  static_assert(Total % Multiple == 0, "fixed_total must be a multiple of total_multiple_of");
  static constexpr bool value = true;
};

/// Refuses a fixed total that the sharding cannot cut.
template <offset_t Total, offset_t Divisor>
struct fixed_total_is_a_multiple_of_the_sharding_divisor {
  static_assert(Total % Divisor == 0,
                "fixed_total must be a multiple of what the sharding divides by "
                "(2 * CP for zigzag, CP for contiguous and striped)");
  static constexpr bool value = true;
};

/// Whether every object of a context-parallel policy is the same.
template <class C>
inline constexpr bool stateless = std::is_empty_v<C>;
template <offset_t Size, class Sharding>
inline constexpr bool stateless<context_parallel<Size, Sharding>> =
    Size != dynamic && std::is_empty_v<Sharding>;

/// The divisor of a context-parallel policy of static size, or `dynamic`. Only a policy without
/// state can be asked at compile time: another one's divisor may be its own.
template <context_parallel_policy C>
constexpr offset_t static_divisor() {
  if constexpr (C::static_size == dynamic || !stateless<C> || !std::default_initializable<C>) {
    return dynamic;
  } else {
    return C{}.divisor();
  }
}

/// Whether a padding policy is known at compile time to have a fixed total.
template <padding_policy P>
constexpr bool static_fixed_total() {
  if constexpr (requires { typename std::bool_constant<P::has_fixed_total>; }) {
    return P::has_fixed_total && P::static_fixed_total != dynamic;
  } else {
    return false;
  }
}

/// True, or a compile-time error that names the two numbers that do not fit. An `each` of 1 fits
/// any sharding: every length is then checked when the layout is made.
template <padding_policy P, context_parallel_policy C>
constexpr bool policies_fit() {
  constexpr offset_t each = P::static_each;
  constexpr offset_t multiple = P::static_total_multiple;
  constexpr offset_t divisor = static_divisor<C>();
  bool fit = true;
  if constexpr (each > 1 && divisor != dynamic) {
    fit = each_is_a_multiple_of_the_sharding_divisor<each, divisor>::value;
  }
  if constexpr (static_fixed_total<P>()) {
    if constexpr (multiple != dynamic) {
      fit = fixed_total_is_a_multiple_of_the_total_multiple<P::static_fixed_total, multiple>::value;
    }
    if constexpr (divisor != dynamic) {
      fit =
          fixed_total_is_a_multiple_of_the_sharding_divisor<P::static_fixed_total, divisor>::value;
    }
  }
  return fit;
}

/// The same for dynamic numbers.
/// \throws invalid_input naming the number and what it must be a multiple of.
template <padding_policy P, context_parallel_policy C>
constexpr void require_policies_fit(const P& padding, const C& cp) {
  static_assert(policies_fit<P, C>());
  const offset_t divisor = cp.divisor();
  const auto multiple_of = [](offset_t number, const char* what) {
    return "it must be a multiple of " + std::to_string(number) + ", " + what;
  };
  const char* const for_sharding = "what the sharding divides by";
  if (padding.each() > 1 && padding.each() % divisor != 0) {
    reject("each_multiple_of", padding.each(), multiple_of(divisor, for_sharding));
  }
  if (padding.has_fixed_total) {
    const offset_t total = padding.fixed_total();
    if (total % padding.total_multiple() != 0) {
      reject("fixed_total", total, multiple_of(padding.total_multiple(), "the total multiple"));
    }
    if (total % divisor != 0) reject("fixed_total", total, multiple_of(divisor, for_sharding));
  }
}

}  // namespace seqpack
