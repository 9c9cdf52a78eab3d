/// \file
/// The result of a loss function: a value and its derivatives.
#pragma once

#include <cstddef>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// A value and its derivatives, one function per sequence of the loss. They are called only where a
/// gradient is asked for, once for every target t (1 <= t < length, token_mask[t] not 0), and give
/// the derivative with respect to logp(t), divided by the weight of the token: the library
/// multiplies by what it weighed the token with in sum() and mean().
///
/// For a loss on logits a function takes (t, double* out) and writes the derivative with respect to
/// the row logits(t), with the weight of the token in it: columns() numbers, 0 before. It is called
/// for t = length too where the loss declares `last_row`.
template <class... Derivatives>
struct differentiable_t;

/// No sequence, no derivative.
template <>
struct differentiable_t<> {
  static constexpr std::size_t sequences = 0;
};
/// The derivative of one sequence, and the rest of them.
template <class D, class... Rest>
struct differentiable_t<D, Rest...> {
  static constexpr std::size_t sequences = 1 + sizeof...(Rest);
  double value;
  D derivative;
  differentiable_t<Rest...> rest;
};

/// No derivative: the end of the list of those below.
SEQPACK_HD constexpr differentiable_t<> differentiable(double) {
  return {};
}
/// Makes the result of a loss: `return differentiable(value, derivative_1, ...)`. The derivatives
/// are called when the loss has returned: they capture by value.
template <class D, class... Rest>
SEQPACK_HD constexpr differentiable_t<D, Rest...> differentiable(double value, D derivative,
                                                                 Rest... rest) {
  return {value, derivative, differentiable(value, rest...)};
}

}  // namespace seqpack
