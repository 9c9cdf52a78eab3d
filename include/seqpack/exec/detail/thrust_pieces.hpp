/// \file
/// A bulk operation as one Thrust algorithm over pieces of its rows.
#pragma once

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"

namespace seqpack::detail {

/// Rows of a bulk operation in pieces of equal size; run as one Thrust algorithm over the pieces.
template <class Op>
struct piece {
  Op op;
  offset_t size;

  void operator()(offset_t index) const {
    const offset_t first = index * size;
    op.process(first, min_of(first + size, op.rows()));
  }
};

template <class Policy, class Op>
void for_each_piece(Policy policy, const Op& op, offset_t pieces) {
  const offset_t size = divide(op.rows() + pieces - 1, pieces);
  thrust::for_each_n(policy, thrust::counting_iterator<offset_t>(0),
                     divide(op.rows() + size - 1, size), piece<Op>{op, size});
}

}  // namespace seqpack::detail
