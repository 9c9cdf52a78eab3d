/// \file
/// cuda_stream: a CUDA stream as an executor; Thrust's CUDA policies as executors. CMake component:
/// seqpack::cuda.
#pragma once

#include <cuda_runtime_api.h>
#include <thrust/system/cuda/execution_policy.h>

#include <concepts>
#include <cstddef>
#include <memory>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/exec/detail/cuda_launch.cuh"
#include "seqpack/exec/detail/cuda_staging.cuh"
#include "seqpack/exec/detail/cuda_upload.cuh"
#include "seqpack/exec/device_memory.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/pinned_memory.cuh"
#include "seqpack/exec/thrust.hpp"

namespace seqpack {

/// An executor that puts its work into a CUDA stream, and where layouts on the device get their
/// memory. Pack, unpack and the per-token arrays allocate nothing: they never touch the resources.
///
///     pack(cuda_stream{stream}, layout, full_row, field(ids, packed_ids));
///
/// \tparam Memory where memory on the device comes from
/// \tparam Pinned where pinned memory comes from: what layouts of the host go through on their way
/// to the device where they are too large to be parameters of a kernel
template <device_memory_resource Memory = stream_ordered_memory,
          pinned_memory_resource Pinned = process_pinned_memory>
struct cuda_stream {
  cudaStream_t stream = nullptr;
  Memory memory{};
  Pinned pinned{};

  constexpr cuda_stream() = default;
  constexpr explicit cuda_stream(cudaStream_t s, Memory m = {}, Pinned p = {})
      : stream(s), memory(std::move(m)), pinned(std::move(p)) {}
};

/// Memory comes from the stream's resource and is freed in the order of the stream. Reading waits for
/// the stream once. Up to 32,000 bytes are written as parameters of a launch, which may be captured:
/// they are part of the graph then; more goes through memory of `pinned`. In a capture that, and
/// reading, throw cuda_error.
template <class Memory, class Pinned>
struct executor_traits<cuda_stream<Memory, Pinned>> {
  static constexpr bool on_device = true;
  template <class Op>
  static void run(const cuda_stream<Memory, Pinned>& where, const Op& op) {
    detail::launching::launch(where.stream, op);
  }
  static std::shared_ptr<void> allocate(const cuda_stream<Memory, Pinned>& where, offset_t bytes) {
    return detail::allocate(where.memory, where.stream, static_cast<std::size_t>(bytes));
  }
  static void read(const cuda_stream<Memory, Pinned>& where, void* to, const void* from,
                   offset_t bytes) {
    detail::read_staged(where.stream, where.pinned, to, from, static_cast<std::size_t>(bytes));
  }
  template <class Fill>
  static void write(const cuda_stream<Memory, Pinned>& where, void* to, offset_t bytes,
                    const Fill& fill) {
    const auto size = static_cast<std::size_t>(bytes);
    if (size <= detail::launching::most_launch_bytes) {
      detail::launching::upload(where.stream, to, size, fill);
    } else {
      detail::write_staged(where.stream, where.pinned, to, size, fill);
    }
  }
};

/// Thrust's CUDA policies: what runs on a cuda_stream, on the policy's stream. Whether a call
/// synchronises is the policy's own choice: thrust::cuda::par does, thrust::cuda::par_nosync does
/// not.
template <thrust_policy P>
  requires std::derived_from<P, thrust::cuda::execution_policy<P>>
struct executor_traits<P> {
  static constexpr bool on_device = true;
  template <class Op>
  static void run(P policy, const Op& op) {
    detail::launching::launch(thrust::cuda_cub::stream(policy), op);
    check_cuda(thrust::cuda_cub::synchronize_optional(policy));
  }
};

}  // namespace seqpack
