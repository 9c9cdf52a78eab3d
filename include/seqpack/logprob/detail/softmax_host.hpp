/// \file
/// Rows of a softmax on the host: in blocks of a fixed size, whose loops are plain ones, written so
/// that a compiler makes vector instructions of them without leave to reorder floating-point sums.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/logprob/detail/softmax.hpp"

namespace seqpack::detail::softmax {

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
