/// \file
/// The row kernels of a softmax: maximum, sums and gradient of a row of logits.
///
/// On the host a row goes through blocks of a fixed size. Their loops are plain ones, written so
/// that a compiler makes vector instructions of them without leave to reorder floating-point sums.
/// On a device the threads of a group go through it together, chunk by chunk.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/team.hpp"

namespace seqpack::detail::softmax {

/// What logits of type T are computed in: float for 16-bit and 32-bit ones, double for double.
template <class T>
using compute_t = std::conditional_t<std::same_as<std::remove_const_t<T>, double>, double, float>;

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

/// Numbers that are loaded, and summed, side by side. An inner loop over so many is short enough
/// for full vectors without a rest, and too long to be unrolled before it is vectorised.
inline constexpr offset_t lanes = 32;
/// Numbers between two looks at the maximum; their sums in one lane are of few enough terms to be
/// kept in float.
inline constexpr offset_t block = 16 * lanes;

/// A block of a row in the type that it is computed in.
template <class C>
struct alignas(64) row_block {
  C at[block];

  /// Takes min(n, block) elements and -inf to the next multiple of `lanes`, which it returns.
  template <class T>
  offset_t load(const T* x, offset_t n, C scale) {
    const offset_t count = min_of(n, block);
    for (offset_t k = 0; k < count; ++k) at[k] = scaled(x[k], scale);
    const offset_t end = round_up(count, lanes);
    for (offset_t k = count; k < end; ++k) at[k] = -infinity<C>;
    return end;
  }

  /// The maximum of the first `end`, without NaNs.
  C max(offset_t end) const {
    alignas(64) C most[lanes];
    for (offset_t l = 0; l < lanes; ++l) most[l] = -infinity<C>;
    for (offset_t k = 0; k < end; k += lanes) {
      for (offset_t l = 0; l < lanes; ++l) most[l] = most[l] < at[k + l] ? at[k + l] : most[l];
    }
    C result = most[0];
    for (offset_t l = 1; l < lanes; ++l) result = result < most[l] ? most[l] : result;
    return result;
  }
};

/// Sums of a row relative to a reference. Between blocks in double: the error of a sum does not
/// grow with the row.
template <bool Entropy, class C>
class row_sums {
 public:
  /// Makes room for a block with this maximum.
  void raise(C max) {
    if (!(max > reference_ + slack<C>)) return;
    const C d = weight_of(reference_ - max);
    const double factor = static_cast<double>(exp_of(d));
    if constexpr (Entropy) {
      for (offset_t l = 0; l < lanes; ++l) {
        weighted_[l] = factor * (weighted_[l] + static_cast<double>(d) * sum_[l]);
      }
    }
    for (offset_t l = 0; l < lanes; ++l) sum_[l] *= factor;
    reference_ = max;
  }

  /// Adds a block that raise() was told the maximum of.
  void add(const row_block<C>& y, offset_t end) {
    const C shift = shift_of(reference_);
    alignas(64) C sum[lanes] = {};
    alignas(64) C weighted[lanes] = {};
    for (offset_t k = 0; k < end; k += lanes) {
      for (offset_t l = 0; l < lanes; ++l) {
        const C difference = y.at[k + l] - shift;
        const C e = exp_of(difference);
        sum[l] += e;
        if constexpr (Entropy) weighted[l] += weight_of(difference) * e;
      }
    }
    for (offset_t l = 0; l < lanes; ++l) sum_[l] += static_cast<double>(sum[l]);
    if constexpr (Entropy) {
      for (offset_t l = 0; l < lanes; ++l) weighted_[l] += static_cast<double>(weighted[l]);
    }
  }

  part<C> total() const {
    double sum = 0;
    double weighted = 0;
    for (offset_t l = 0; l < lanes; ++l) {
      sum += sum_[l];
      weighted += weighted_[l];
    }
    return {reference_, static_cast<C>(sum), static_cast<C>(weighted)};
  }

 private:
  C reference_ = -infinity<C>;
  alignas(64) double sum_[lanes] = {};
  alignas(64) double weighted_[lanes] = {};
};

/// One read of a row, on the host. -inf counts as probability 0; a NaN anywhere makes the sum NaN,
/// and +inf makes it no finite number. The result depends on the elements and on nothing else, such
/// as their address.
template <bool Entropy, class T, class C>
part<C> scan_row(const T* x, offset_t n, C scale) {
  C max = -infinity<C>;
  row_sums<Entropy, C> sums;
  row_block<C> y;
  for (offset_t first = 0; first < n; first += block) {
    const offset_t end = y.load(x + first, n - first, scale);
    const C most = y.max(end);
    if (max < most) max = most;
    sums.raise(most);
    sums.add(y, end);
  }
  return relative_to<Entropy>(max, sums.total());
}

/// A sum whose error does not grow with the number of terms (Kahan).
template <class C>
struct compensated_sum {
  C value = 0;
  C excess = 0;  // what rounding has added to the value so far

  SEQPACK_HD void add(C term) {
    const C wanted = term - excess;
    const C next = value + wanted;
    excess = (next - value) - wanted;
    value = next;
  }
  SEQPACK_HD void scale(C factor) {
    value = product(value, factor);
    excess = product(excess, factor);
  }
};

/// Length numbers, folded in the shape of a tree.
template <int Length, class C, class Combine>
SEQPACK_HD C folded(const C* x, const Combine& combine) {
  if constexpr (Length == 1) {
    return *x;
  } else {
    constexpr int half = Length / 2;
    return combine(folded<half>(x, combine), folded<Length - half>(x + half, combine));
  }
}

/// Sums of some chunks of a row, relative to a reference.
template <bool Entropy, class C>
class chunk_sums {
 public:
  /// Adds the elements of a chunk.
  template <int Length, class T>
  SEQPACK_HD void add(const T* x, C scale) {
    C y[Length];
    for (int k = 0; k < Length; ++k) y[k] = scaled(x[k], scale);
    add(y);
  }
  /// Adds `count` elements, fewer than a chunk has.
  template <int Length, class T>
  SEQPACK_HD void add(const T* x, int count, C scale) {
    C y[Length];
    for (int k = 0; k < Length; ++k) y[k] = k < count ? scaled(x[k], scale) : -infinity<C>;
    add(y);
  }

  /// What all threads of a group have added; all threads.
  template <team Group>
  SEQPACK_HD part<C> total(const Group& group) const {
    const auto plus = [](C a, C b) { return a + b; };
    const C max = group.reduce(max_, larger<C>);
    const C d = weight_of(reference_ - shift_of(max));
    const C factor = exp_of(d);
    const C sum = group.reduce(product(factor, sum_.value), plus);
    if constexpr (!Entropy) return {max, sum, 0};
    const C weighted = weighted_.value + product(d, sum_.value);
    return {max, sum, group.reduce(product(factor, weighted), plus)};
  }

 private:
  template <int Length>
  SEQPACK_HD void add(const C (&y)[Length]) {
    const auto plus = [](C a, C b) { return a + b; };
    const C most = folded<Length>(y, larger<C>);
    max_ = larger(max_, most);
    if (most > reference_ + slack<C>) raise(most);
    const C shift = shift_of(reference_);
    C difference[Length];
    C e[Length];
    for (int k = 0; k < Length; ++k) difference[k] = y[k] - shift;
    for (int k = 0; k < Length; ++k) e[k] = exp_of(difference[k]);
    sum_.add(folded<Length>(e, plus));
    if constexpr (Entropy) {
      // As weight_of, in one instruction; a NaN is in e.
      for (int k = 0; k < Length; ++k) e[k] = product(larger(difference[k], lowest<C> - 1), e[k]);
      weighted_.add(folded<Length>(e, plus));
    }
  }
  SEQPACK_HD void raise(C reference) {
    const C d = weight_of(reference_ - reference);
    const C factor = exp_of(d);
    if constexpr (Entropy) {
      weighted_.add(product(d, sum_.value));
      weighted_.scale(factor);
    }
    sum_.scale(factor);
    reference_ = reference;
  }

  C max_ = -infinity<C>;
  C reference_ = -infinity<C>;
  compensated_sum<C> sum_;
  compensated_sum<C> weighted_;
};

/// The same by the threads of a group, each of which returns it. Columns are added up in an order
/// that depends on their number and on that of the threads: not on the address of the row. A chunk
/// is summed as a tree, the chunks of a thread one after the other, compensated.
template <bool Entropy, team Group, class T, class C>
SEQPACK_HD part<C> scan_row(const Group& group, const T* x, offset_t n, C scale) {
  constexpr int length = detail::length<T>;
  chunk_sums<Entropy, C> sums;
  group.read_row(
      x, n, [&](const T* chunk) { sums.template add<length>(chunk, scale); },
      [&](const T* rest, int count) { sums.template add<length>(rest, count, scale); });
  return sums.total(group);
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

/// The gradients of a row, on the host: out[v] = gradient_of(x[v], ...). `out` may be x itself,
/// where it is of the same type.
template <class T, class G, class C>
void gradient_row(const T* x, G* out, offset_t n, C scale, C max, C share) {
  row_block<C> y;
  for (offset_t first = 0; first < n; first += block) {
    const offset_t end = y.load(x + first, n - first, scale);
    for (offset_t k = 0; k < end; k += lanes) {
      for (offset_t l = 0; l < lanes; ++l) y.at[k + l] = gradient_at(y.at[k + l], max, share);
    }
    const offset_t count = min_of(n - first, block);
    for (offset_t k = 0; k < count; ++k) out[first + k] = static_cast<G>(y.at[k]);
  }
}

}  // namespace seqpack::detail::softmax
