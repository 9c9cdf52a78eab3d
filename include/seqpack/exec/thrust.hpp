/// \file
/// Thrust's host execution policies as executors: thrust::seq, thrust::host, thrust::omp::par,
/// thrust::tbb::par. Include the header of the policy yourself; its backend must be linked.
#pragma once

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include <concepts>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/executor.hpp"

namespace seqpack {

/// Any execution policy of Thrust.
template <class P>
concept thrust_policy = std::derived_from<P, thrust::detail::execution_policy_base<P>>;

namespace detail {

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

}  // namespace detail

template <thrust_policy P>
struct executor_traits<P> : host_executor_traits {
  /// Pieces of 64 KiB of output or more, which hide what starting one costs; up to 512 of them, so
  /// that any usual number of threads is busy.
  template <class Op>
  static void run(const P& policy, const Op& op) {
    constexpr offset_t grain = 64 * 1024;
    constexpr offset_t most = 512;
    const offset_t bytes = op.rows() * max_of(op.row_bytes(), 1);
    detail::for_each_piece(policy, op, max_of(1, min_of(min_of(bytes / grain, most), op.rows())));
  }
};

}  // namespace seqpack
