/// \file
/// Rows of a softmax on a device: the threads of a team go through a row together, chunk by chunk.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/exec/detail/team.hpp"
#include "seqpack/exec/team.hpp"
#include "seqpack/logprob/detail/softmax.hpp"

namespace seqpack::detail::softmax {

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

  /// What all threads of a team have added; all team.
  template <team Team>
  SEQPACK_HD part<C> total(const Team& team) const {
    const auto plus = [](C a, C b) { return a + b; };
    const C max = team.reduce(max_, larger<C>);
    const C d = weight_of(reference_ - shift_of(max));
    const C factor = exp_of(d);
    const C sum = team.reduce(product(factor, sum_.value), plus);
    if constexpr (!Entropy) return {max, sum, 0};
    const C weighted = weighted_.value + product(d, sum_.value);
    return {max, sum, team.reduce(product(factor, weighted), plus)};
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

/// One read of a row, as on the host, by the threads of a team, each of which returns it. Columns
/// are added up in an order that depends on their number and on that of the threads: not on the
/// address of the row. A chunk is summed as a tree, the chunks of a thread one after the other,
/// compensated.
template <bool Entropy, team Team, class T, class C>
SEQPACK_HD part<C> scan_row(const Team& team, const T* x, offset_t n, C scale) {
  constexpr int length = elements_per_chunk<T>;
  chunk_sums<Entropy, C> sums;
  team.read_row(
      x, n, [&](const T* chunk) { sums.template add<length>(chunk, scale); },
      [&](const T* rest, int count) { sums.template add<length>(rest, count, scale); });
  return sums.total(team);
}

}  // namespace seqpack::detail::softmax
