/// \file
/// What a sequence costs, as a function of its tokens: what plans balance.
#pragma once

#include <concepts>
#include <limits>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"

namespace seqpack {

/// The most that the costs of all sequences of a plan may sum up to: no difference of two sums of
/// them wraps.
inline constexpr offset_t max_cost = offset_t{1} << 61;

/// The cost of a sequence of n tokens, a whole number from 0 to max_cost. Whole, so that a sum of
/// costs does not depend on the order of its terms, and every rank balances alike.
///
///     sequence_cost{}              // n, its tokens: the default
///     sequence_cost{6 * h, 1}      // 6 h n + n^2: a transformer layer of hidden size h
///     sequence_cost{microseconds}  // a function of the user
///
/// Two words and a call through a pointer. A functor or a lambda with captures is referred to and not
/// copied, so it must be an lvalue that outlives the cost; a function and a lambda without captures
/// need not.
class sequence_cost {
 public:
  constexpr sequence_cost() = default;
  /// per_token * n + per_pair * n^2. Attention looks at pairs of tokens, everything else at tokens.
  /// \throws invalid_input for a weight below 0.
  constexpr sequence_cost(offset_t per_token, offset_t per_pair)
      : per_token_(per_token), per_pair_(per_pair) {
    if (per_token < 0) reject("cost per token", per_token, "it must be at least 0");
    if (per_pair < 0) reject("cost per pair of tokens", per_pair, "it must be at least 0");
  }
  /// f(n), called with tokens >= 0.
  template <class F>
    requires std::convertible_to<const F&, offset_t (*)(offset_t)>
  constexpr sequence_cost(const F& f) : function_(f) {}
  template <class F>
    requires std::is_class_v<F> && (!std::convertible_to<const F&, offset_t (*)(offset_t)>) &&
                 (!std::same_as<std::remove_const_t<F>, sequence_cost>) &&
                 std::is_invocable_r_v<offset_t, const F&, offset_t>
  sequence_cost(F& f)
      : callable_(&f), call_([](const void* callable, offset_t tokens) -> offset_t {
          return (*static_cast<const F*>(callable))(tokens);
        }) {}

  /// \pre tokens >= 0
  /// \returns the cost of so many tokens; of numbers that would not fit, the largest offset_t
  constexpr offset_t operator()(offset_t tokens) const {
    if (function_ != nullptr) return function_(tokens);
    if (call_ != nullptr) return call_(callable_, tokens);
    // 128 bits, and not overflow built-ins, which nvcc has not in constant expressions.
    constexpr auto most = static_cast<detail::uint128>(std::numeric_limits<offset_t>::max());
    const auto n = static_cast<detail::uint128>(tokens);
    const auto wide = [](offset_t weight) { return static_cast<detail::uint128>(weight); };
    const detail::uint128 per_one = wide(per_pair_) * n + wide(per_token_);
    if (per_one > most || per_one * n > most) return std::numeric_limits<offset_t>::max();
    return static_cast<offset_t>(per_one * n);
  }

  /// Whether the cost of a sequence is its tokens.
  constexpr bool is_tokens() const noexcept {
    return function_ == nullptr && call_ == nullptr && per_token_ == 1 && per_pair_ == 0;
  }

 private:
  offset_t per_token_ = 1;
  offset_t per_pair_ = 0;
  offset_t (*function_)(offset_t) = nullptr;
  const void* callable_ = nullptr;
  offset_t (*call_)(const void*, offset_t) = nullptr;
};

}  // namespace seqpack
