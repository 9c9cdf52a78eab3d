/// \file
/// CUDA streams as executors, and the device memory that layouts need. CMake component:
/// seqpack::cuda.
#pragma once

#include <cuda_runtime_api.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/system_error.h>

#include <concepts>
#include <memory>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"
#include "seqpack/exec/thrust.hpp"

namespace seqpack {

/// A source of device memory in stream order, as cuda::mr and RMM have them. It is copied, so it
/// must be a handle.
template <class R>
concept device_memory_resource =
    std::copy_constructible<R> && requires(R r, void* p, std::size_t n, cudaStream_t s) {
      { r.allocate_async(n, n, s) } -> std::convertible_to<void*>;
      r.deallocate_async(p, n, n, s);
    };

/// cudaMallocAsync and cudaFreeAsync: the default memory pool of the device.
struct stream_ordered_memory {
  void* allocate_async(std::size_t bytes, std::size_t /*alignment*/, cudaStream_t stream) const {
    void* p = nullptr;
    check_cuda(cudaMallocAsync(&p, bytes, stream));
    return p;
  }
  void deallocate_async(void* p, std::size_t, std::size_t, cudaStream_t stream) const noexcept {
    cudaFreeAsync(p, stream);  // an error here is one of earlier work, which its own caller sees
  }
};

/// An executor that puts its work into a CUDA stream, and where layouts on the device get their
/// memory. Pack, unpack and the per-token arrays allocate nothing: they never touch the resource.
///
///     pack(cuda_stream{stream}, layout, full_row, field(ids, packed_ids));
template <device_memory_resource Memory = stream_ordered_memory>
struct cuda_stream {
  cudaStream_t stream = nullptr;
  Memory memory{};

  constexpr cuda_stream() = default;
  constexpr explicit cuda_stream(cudaStream_t s, Memory m = {}) : stream(s), memory(std::move(m)) {}
};

namespace launching {

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

}  // namespace launching

template <class Memory>
struct executor_traits<cuda_stream<Memory>> {
  static constexpr bool on_device = true;
  template <class Op>
  static void run(const cuda_stream<Memory>& where, const Op& op) {
    launching::for_each_unit(thrust::cuda::par_nosync.on(where.stream), op);
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
    launching::for_each_unit(policy, op);
  }
};

/// Device memory with an owner: allocated and freed in the order of one stream.
template <device_memory_resource Memory = stream_ordered_memory>
class device_buffer {
 public:
  device_buffer() = default;
  device_buffer(const cuda_stream<Memory>& where, std::size_t bytes)
      : where_(where), bytes_(bytes) {
    if (bytes > 0) data_ = where_.memory.allocate_async(bytes, alignment, where_.stream);
  }
  device_buffer(device_buffer&& other) noexcept
      : where_(other.where_),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  device_buffer& operator=(device_buffer&& other) noexcept {
    std::swap(where_, other.where_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~device_buffer() {
    if (data_ != nullptr) where_.memory.deallocate_async(data_, bytes_, alignment, where_.stream);
  }

  void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t alignment = 256;
  cuda_stream<Memory> where_{};
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Memory from the stream's resource, freed in the order of the stream.
template <class Memory>
struct executor_memory<cuda_stream<Memory>> {
  static std::shared_ptr<void> allocate(const cuda_stream<Memory>& where, offset_t bytes) {
    auto owner = std::make_shared<device_buffer<Memory>>(where, static_cast<std::size_t>(bytes));
    return {owner, owner->data()};
  }
  static void read(const cuda_stream<Memory>& where, void* to, const void* from, offset_t bytes) {
    check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost,
                               where.stream));
    check_cuda(cudaStreamSynchronize(where.stream));
  }
};

}  // namespace seqpack
