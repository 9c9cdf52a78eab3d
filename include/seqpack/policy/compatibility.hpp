/// \file
/// What a padding policy and a context-parallel policy must agree on, at compile time where the
/// numbers are static and at run time where they are not.
#pragma once

#include <string>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/policy/detail/compatibility.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

/// True, or a compile-time error that names the two numbers that do not fit. An `each` of 1 fits
/// any sharding: every length is then checked when the layout is made.
template <padding_policy P, context_parallel_policy C>
constexpr bool policies_fit() {
  constexpr offset_t each = P::static_each;
  constexpr offset_t multiple = P::static_total_multiple;
  constexpr detail::static_divisors divisors = detail::divisors_of<C>();
  bool fit = true;
  if constexpr (each > 1 && divisors.each != dynamic) {
    fit = detail::each_is_a_multiple_of_the_sharding_divisor<each, divisors.each>::value;
  }
  if constexpr (detail::static_fixed_total<P>()) {
    if constexpr (multiple != dynamic) {
      fit = detail::fixed_total_is_a_multiple_of_the_total_multiple<P::static_fixed_total,
                                                                    multiple>::value;
    }
    if constexpr (divisors.total != dynamic) {
      fit = detail::fixed_total_is_a_multiple_of_the_sharding_divisor<P::static_fixed_total,
                                                                      divisors.total>::value;
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
    const offset_t of_total = cp.total_divisor();
    if (total % of_total != 0) reject("fixed_total", total, multiple_of(of_total, for_sharding));
  }
}

}  // namespace seqpack
