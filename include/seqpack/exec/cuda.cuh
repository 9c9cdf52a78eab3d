/// \file
/// CUDA streams as executors, and the device memory that layouts need. CMake component:
/// seqpack::cuda.
#pragma once

#include <cuda_runtime_api.h>
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
#include "seqpack/exec/device_memory.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"
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

/// One launch over the units of an operation. Thrust starts a grid-strided kernel of the right
/// shape and allocates nothing for it.
template <class Policy, class Op>
void for_each_unit(const Policy& policy, const Op& op) {
  try {
    thrust::for_each_n(policy, thrust::counting_iterator<offset_t>(0), op.units(), op);
  } catch (const thrust::system_error& e) {
    throw cuda_error(static_cast<cudaError_t>(e.code().value()));
  }
}

}  // namespace detail::launching

template <class Memory, class Pinned>
struct executor_traits<cuda_stream<Memory, Pinned>> {
  static constexpr bool on_device = true;
  template <class Op>
  static void run(const cuda_stream<Memory, Pinned>& where, const Op& op) {
    if constexpr (tiled_operation<Op>) {
      detail::launching::for_each_tile(where.stream, op);
    } else if constexpr (cooperative_operation<Op>) {
      detail::launching::for_each_row(where.stream, op);
    } else {
      detail::launching::for_each_unit(thrust::cuda::par_nosync.on(where.stream), op);
    }
  }
};

/// Thrust's CUDA policies. Whether a call synchronises is the policy's own choice:
/// thrust::cuda::par does, thrust::cuda::par_nosync does not.
template <thrust_policy P>
  requires std::derived_from<P, thrust::cuda::execution_policy<P>>
struct executor_traits<P> {
  static constexpr bool on_device = true;
  template <class Op>
  static void run(const P& policy, const Op& op) {
    detail::launching::for_each_unit(policy, op);
  }
};

/// Memory with an owner: allocated and freed in the order of one stream.
template <stream_memory_resource Memory = stream_ordered_memory>
class device_buffer {
 public:
  device_buffer() = default;
  device_buffer(cudaStream_t stream, const Memory& memory, std::size_t bytes)
      : stream_(stream), memory_(memory), bytes_(bytes) {
    if (bytes > 0) data_ = memory_.allocate_async(bytes, alignment, stream_);
  }
  template <class Pinned>
  device_buffer(const cuda_stream<Memory, Pinned>& where, std::size_t bytes)
      : device_buffer(where.stream, where.memory, bytes) {}
  device_buffer(device_buffer&& other) noexcept
      : stream_(other.stream_),
        memory_(other.memory_),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  device_buffer& operator=(device_buffer&& other) noexcept {
    std::swap(stream_, other.stream_);
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~device_buffer() {
    if (data_ != nullptr) memory_.deallocate_async(data_, bytes_, alignment, stream_);
  }

  void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t alignment = 256;
  cudaStream_t stream_ = nullptr;
  Memory memory_{};
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

namespace detail::staging {

/// What is read in a capture would be recorded instead, and the host would have nothing.
inline void require_no_capture(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status));
  if (status != cudaStreamCaptureStatusNone) throw cuda_error(cudaErrorStreamCaptureUnsupported);
}

/// Through pinned memory, so that there is one wait, and the copy is over when it is. The runtime
/// says of copies to other memory that they may wait, not that they do.
template <pinned_memory_resource Pinned>
void read(cudaStream_t stream, const Pinned& pinned, void* to, const void* from,
          std::size_t bytes) {
  require_no_capture(stream);
  if (bytes == 0) return;
  const device_buffer<Pinned> copy(stream, pinned, bytes);
  check_cuda(cudaMemcpyAsync(copy.data(), from, bytes, cudaMemcpyDeviceToHost, stream));
  check_cuda(cudaStreamSynchronize(stream));
  std::memcpy(to, copy.data(), bytes);
}

/// Through pinned memory too, so that nothing waits: fill(p) writes what is copied. A graph could
/// not keep the memory.
template <pinned_memory_resource Pinned, class Fill>
void write(cudaStream_t stream, const Pinned& pinned, void* to, std::size_t bytes,
           const Fill& fill) {
  require_no_capture(stream);
  const device_buffer<Pinned> copy(stream, pinned, bytes);
  fill(copy.data());
  check_cuda(cudaMemcpyAsync(to, copy.data(), bytes, cudaMemcpyHostToDevice, stream));
}

}  // namespace detail::staging

/// Memory from the stream's resource, freed in the order of the stream. Reading waits for the
/// stream once; during a capture it throws cuda_error.
template <class Memory, class Pinned>
struct executor_memory<cuda_stream<Memory, Pinned>> {
  static std::shared_ptr<void> allocate(const cuda_stream<Memory, Pinned>& where, offset_t bytes) {
    auto owner = std::make_shared<device_buffer<Memory>>(where, static_cast<std::size_t>(bytes));
    return {owner, owner->data()};
  }
  static void read(const cuda_stream<Memory, Pinned>& where, void* to, const void* from,
                   offset_t bytes) {
    detail::staging::read(where.stream, where.pinned, to, from, static_cast<std::size_t>(bytes));
  }
};

}  // namespace seqpack
