/// \file
/// The launch of any operation on a stream.
#pragma once

#include <cuda_runtime_api.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/system_error.h>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/exec/detail/cuda_rows.cuh"
#include "seqpack/exec/detail/cuda_tiles.cuh"
#include "seqpack/exec/team.hpp"
#include "seqpack/exec/tiled.hpp"

namespace seqpack::detail::launching {

/// One launch in the form that the operation has.
template <class Op>
void launch(cudaStream_t stream, const Op& op) {
  if constexpr (tiled_operation<Op>) {
    for_each_tile(stream, op);
  } else if constexpr (cooperative_operation<Op>) {
    for_each_row(stream, op);
  } else {
    // Thrust starts a kernel of the right shape and allocates nothing for it.
    try {
      thrust::for_each_n(thrust::cuda::par_nosync.on(stream),
                         thrust::counting_iterator<offset_t>(0), op.rows(), op);
    } catch (const thrust::system_error& e) {
      throw cuda_error(static_cast<cudaError_t>(e.code().value()));
    }
  }
}

}  // namespace seqpack::detail::launching
