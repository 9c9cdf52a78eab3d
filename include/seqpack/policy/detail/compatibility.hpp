/// \file
/// Assertions about the numbers of two policies, and which of them are known at compile time.
#pragma once

#include <concepts>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack::detail {

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
                "(2 * CP for zigzag, CP for contiguous, striped and row_contiguous)");
  static constexpr bool value = true;
};

/// Whether every object of a context-parallel policy is the same.
template <class C>
inline constexpr bool stateless = std::is_empty_v<C>;
template <offset_t Size, class Sharding>
inline constexpr bool stateless<context_parallel<Size, Sharding>> =
    Size != dynamic && std::is_empty_v<Sharding>;

/// The divisors of a context-parallel policy of static size: of lengths, and of the total; or
/// `dynamic`. Only a policy without state can be asked at compile time: another one's may be its own.
struct static_divisors {
  offset_t each = dynamic;
  offset_t total = dynamic;
};
template <context_parallel_policy C>
constexpr static_divisors divisors_of() {
  if constexpr (C::static_size == dynamic || !stateless<C> || !std::default_initializable<C>) {
    return {};
  } else {
    return {C{}.divisor(), C{}.total_divisor()};
  }
}

/// Whether a context-parallel policy is known at compile time to cut the whole row.
template <context_parallel_policy C>
constexpr bool known_to_cut_row() {
  if constexpr (C::static_size == dynamic || !stateless<C> || !std::default_initializable<C>) {
    return false;
  } else {
    return C{}.cuts_row();
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

}  // namespace seqpack::detail
