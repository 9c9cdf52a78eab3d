/// \file
/// CUDA streams as executors, and the device memory that layouts need. CMake component:
/// seqpack::cuda.
#pragma once

#include <cuda_runtime_api.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/system_error.h>

#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/exec/detail/cuda_rows.cuh"
#include "seqpack/exec/detail/cuda_tiles.cuh"
#include "seqpack/exec/detail/cuda_upload.cuh"
#include "seqpack/exec/device_memory.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/pinned_memory.cuh"
#include "seqpack/exec/thrust.hpp"
#include "seqpack/exec/tiled.hpp"

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

namespace detail::launching {

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

}  // namespace detail::launching

namespace detail::staging {

/// What is read in a capture would be recorded instead, and the host would have nothing.
inline void require_no_capture(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status));
  if (status != cudaStreamCaptureStatusNone) throw cuda_error(cudaErrorStreamCaptureUnsupported);
}

/// Through pinned memory, so that there is one wait, and the copy has finished when it returns. Of
/// copies to other memory the runtime says that they may wait, not that they do.
template <pinned_memory_resource Pinned>
void read(cudaStream_t stream, const Pinned& pinned, void* to, const void* from,
          std::size_t bytes) {
  require_no_capture(stream);
  if (bytes == 0) return;
  const auto copy = detail::allocate(pinned, stream, bytes);
  check_cuda(cudaMemcpyAsync(copy.get(), from, bytes, cudaMemcpyDeviceToHost, stream));
  check_cuda(cudaStreamSynchronize(stream));
  std::memcpy(to, copy.get(), bytes);
}

/// Through pinned memory too, so that nothing waits: fill(p) writes what is copied. A graph could
/// not keep the memory.
template <pinned_memory_resource Pinned, class Fill>
void write(cudaStream_t stream, const Pinned& pinned, void* to, std::size_t bytes,
           const Fill& fill) {
  require_no_capture(stream);
  const auto copy = detail::allocate(pinned, stream, bytes);
  fill(copy.get());
  check_cuda(cudaMemcpyAsync(to, copy.get(), bytes, cudaMemcpyHostToDevice, stream));
}

}  // namespace detail::staging

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
    detail::staging::read(where.stream, where.pinned, to, from, static_cast<std::size_t>(bytes));
  }
  template <class Fill>
  static void write(const cuda_stream<Memory, Pinned>& where, void* to, offset_t bytes,
                    const Fill& fill) {
    const auto size = static_cast<std::size_t>(bytes);
    if (size <= detail::launching::most_launch_bytes) {
      detail::launching::upload(where.stream, to, size, fill);
    } else {
      detail::staging::write(where.stream, where.pinned, to, size, fill);
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
