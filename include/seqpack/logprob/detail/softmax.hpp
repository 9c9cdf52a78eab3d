/// \file
/// The arithmetic of a softmax: its exponential function, the sums of a part of a row, how parts
/// become a whole, and the gradient of one logit. Rows are in softmax_host.hpp and softmax_team.hpp.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

#include "seqpack/core/config.hpp"

namespace seqpack::detail::softmax {

template <class C>
inline constexpr C infinity = std::numeric_limits<C>::infinity();

/// exp_of is 0 below this, or as good as 0.
template <class C>
inline constexpr C lowest = std::same_as<C, double> ? C(-750) : C(-87);

/// a * b, rounded, where a compiler might fuse it with a sum on a device. On the host it does not.
template <class C>
SEQPACK_HD C product(C a, C b) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::same_as<C, double>) {
    return __dmul_rn(a, b);
  } else {
    return __fmul_rn(a, b);
  }
#else
  return a * b;
#endif
}

/// exp(x), for x from -87 to 88 in float; below it is 0, or less than 2e-38. NaN gives NaN and
/// infinity gives no finite number. Float: a relative error of at most 3e-7 on the host; on a
/// device, whose instruction for 2^x it is, of 2.4e-7 + 7.3e-8 |x|.
template <class C>
SEQPACK_HD C exp_of(C x) {
  if constexpr (std::same_as<C, double>) {
    return std::exp(x);
  } else {
#if defined(__CUDA_ARCH__)
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(product(x, 1.44269504F)));
    return power;
#else
    // x = n ln 2 + r. The sum with 3 * 2^22 rounds to an integer; 127 more, the bias of exponents,
    // and its last bits are the exponent of 2^n.
    constexpr float rounding = 12582912.0F + 127.0F;
    const float shifted = x * 1.44269504F + rounding;
    const float n = shifted - rounding;
    const float r = (x - n * 0.693145752F) - n * 1.42860677e-6F;
    float p = 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * r * r + r + 1.0F;
    // A product, not a sum of bits: the sum could make a number of a NaN.
    const float power = __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, shifted) << 23);
    const auto bits = __builtin_bit_cast(std::uint32_t, p * power);
    // A choice between constants: compilers do not vectorise one that could skip arithmetic.
    const std::uint32_t kept = x < lowest<float> ? 0 : ~std::uint32_t{0};
    return __builtin_bit_cast(float, bits& kept);
#endif
  }
}

/// The larger number; b where a is NaN, and a where b is.
template <class C>
SEQPACK_HD C larger(C a, C b) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::same_as<C, double>) {
    return fmax(a, b);
  } else {
    return fmaxf(a, b);
  }
#else
  return a < b || std::isnan(a) ? b : a;
#endif
}

/// What one pass over a row, or over a part of it, leaves; y = x * scale, rounded.
template <class C>
struct part {
  C max;       ///< of y; a NaN is no candidate, but is in the sum
  C sum;       ///< of exp(y - max)
  C weighted;  ///< of (y - max) exp(y - max)
};

/// What is subtracted before exp: where everything is -inf so far, -inf - -inf would be NaN.
template <class C>
SEQPACK_HD C shift_of(C max) {
  return max == -infinity<C> ? C(0) : max;
}

/// y - shift as a factor of its exp: finite for a y of -inf, so that the product is 0.
template <class C>
SEQPACK_HD C weight_of(C difference) {
  constexpr C least = lowest<C> - 1;  // where exp_of is 0 already
  return difference < least ? least : difference;
}

/// y = x * scale, rounded as the maximum is: a product that a compiler fused with the subtraction
/// behind it would not be. On the host y lies in a block's memory in between.
template <class T, class C>
SEQPACK_HD C scaled(T x, C scale) {
  return product(static_cast<C>(x), scale);
}

/// Of two parts of a row, what one pass over both would leave. Exact where one of them is empty
/// ({-inf, 0, 0}) or all -inf. `weighted` has a meaning where both parts' has.
template <class C>
SEQPACK_HD part<C> merge(const part<C>& a, const part<C>& b) {
  const C max = a.max < b.max ? b.max : a.max;
  const C shift = shift_of(max);
  const C x = weight_of(a.max - shift);
  const C y = weight_of(b.max - shift);
  const C of_a = exp_of(x);
  const C of_b = exp_of(y);
  return {max, of_a * a.sum + of_b * b.sum,
          of_a * (a.weighted + x * a.sum) + of_b * (b.weighted + y * b.sum)};
}

/// Sums are kept relative to a reference that follows the maximum only when that has risen by more
/// than this. So a row that rises slowly is not scaled down, and rounded, at every step.
template <class C>
inline constexpr C slack = 1;

/// From sums relative to a reference to sums relative to the maximum.
template <bool Entropy, class C>
SEQPACK_HD part<C> relative_to(C max, const part<C>& sums) {
  part<C> result = merge(sums, part<C>{max, 0, 0});
  if constexpr (!Entropy) result.weighted = 0;
  return result;
}

/// What all logits of a row but the label's have as gradient: -share * exp(y - max), where `max` is
/// the maximum of the row's y and `share` the derivative of the loss over the sum of exp(y - max).
/// So it is the derivative times the probability, and no logarithm is rounded on the way.
template <class C>
SEQPACK_HD C gradient_at(C y, C max, C share) {
  return product(-share, exp_of(y - max));
}

/// The same of a logit x, for y = x * scale.
template <class T, class C>
SEQPACK_HD C gradient_of(T x, C scale, C max, C share) {
  return gradient_at(scaled(x, scale), max, share);
}

}  // namespace seqpack::detail::softmax
