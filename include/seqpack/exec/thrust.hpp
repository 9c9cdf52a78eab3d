/// \file
/// Thrust's host execution policies as executors: thrust::seq, thrust::host, thrust::omp::par,
/// thrust::tbb::par. Include the header of the policy yourself; its backend must be linked.
#pragma once

#include <thrust/for_each.h>

#include <concepts>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/detail/thrust_pieces.hpp"
#include "seqpack/exec/executor.hpp"

namespace seqpack {

/// Any execution policy of Thrust.
template <class P>
concept thrust_policy = std::derived_from<P, thrust::detail::execution_policy_base<P>>;

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
