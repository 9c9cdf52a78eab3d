/// \file
/// Where memory of a device comes from, in the order of a stream. Needs the toolkit's headers, and
/// no CUDA compiler.
#pragma once

#include <cuda_runtime_api.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "seqpack/core/source_location.hpp"
#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/exec/cuda_release.hpp"

namespace seqpack {

/// A source of memory in stream order, as cuda::mr and RMM have them: memory handed back may be used
/// again where the stream has got there. It is copied, so it must be a handle.
template <class R>
concept stream_memory_resource =
    std::copy_constructible<R> && requires(R r, void* p, std::size_t n, cudaStream_t s) {
      { r.allocate_async(n, n, s) } -> std::convertible_to<void*>;
      r.deallocate_async(p, n, n, s);
    };

/// A source of device memory. Models: stream_ordered_memory, device_pool; RMM's by their handles.
template <class R>
concept device_memory_resource = stream_memory_resource<R>;

/// A source of pinned host memory. Models: process_pinned_memory, pinned_pool.
template <class R>
concept pinned_memory_resource = stream_memory_resource<R>;

/// cudaMallocAsync and cudaFreeAsync: the current memory pool of the device. Unless the program has
/// set its release threshold, that pool gives all free memory back to the system whenever a stream,
/// an event or the device is waited for; device_pool keeps it.
///
/// Memory that was allocated before a capture of the stream and is given back during it is freed
/// after the capture: by the next call that allocates or frees in the stream, or by
/// check_releases().
struct stream_ordered_memory {
  /// \throws cuda_error, also where earlier memory of the stream could not be freed
  void* allocate_async(std::size_t bytes, std::size_t /*alignment*/, cudaStream_t stream) const {
    detail::releasing::open_releases::of_process().check(stream);
    return detail::releasing::allocate(
        stream, [&](void** made) { return cudaMallocAsync(made, bytes, stream); },
        source_location::current());
  }
  /// The next allocation in the stream, or check_releases(), tells where it fails.
  void deallocate_async(void* p, std::size_t, std::size_t, cudaStream_t stream) const noexcept {
    detail::releasing::release(p, stream);
  }
};

/// What a device_pool may be told.
struct device_pool_options {
  /// Bytes that the pool keeps when the host has waited; more goes back to the system.
  std::uint64_t release_threshold = std::numeric_limits<std::uint64_t>::max();
};

/// A memory pool of its own on the device that is current when it is made. It keeps what is given
/// back, by default all of it, for the allocations that follow. A handle; copies share the pool,
/// which is destroyed with the last one. Safe to use from several threads.
///
///     const device_pool pool;
///     const cuda_stream where(stream, pool);
///
/// Other devices reach its memory when the pool is told so: nccl_communicator::give_access, or
/// cudaMemPoolSetAccess.
class device_pool {
 public:
  /// \throws cuda_error
  device_pool() : device_pool(device_pool_options{}) {}
  /// \throws cuda_error
  explicit device_pool(const device_pool_options& options) {
    cudaMemPoolProps wanted{};
    wanted.allocType = cudaMemAllocationTypePinned;
    wanted.location.type = cudaMemLocationTypeDevice;
    int device = 0;
    check_cuda(cudaGetDevice(&device));
    wanted.location.id = device;
    cudaMemPool_t made = nullptr;
    check_cuda(cudaMemPoolCreate(&made, &wanted));
    pool_.reset(made, [](cudaMemPool_t pool) { detail::forget(cudaMemPoolDestroy(pool)); });
    std::uint64_t threshold = options.release_threshold;
    check_cuda(cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &threshold));
  }

  /// \throws cuda_error, also where earlier memory of the stream could not be freed
  void* allocate_async(std::size_t bytes, std::size_t /*alignment*/, cudaStream_t stream) const {
    detail::releasing::open_releases::of_process().check(stream);
    return detail::releasing::allocate(
        stream, [&](void** made) { return cudaMallocFromPoolAsync(made, bytes, handle(), stream); },
        source_location::current());
  }
  /// As stream_ordered_memory does.
  void deallocate_async(void* p, std::size_t, std::size_t, cudaStream_t stream) const noexcept {
    detail::releasing::release(p, stream);
  }
  /// The pool itself, for its other attributes.
  cudaMemPool_t handle() const noexcept { return pool_.get(); }

 private:
  std::shared_ptr<std::remove_pointer_t<cudaMemPool_t>> pool_;
};

}  // namespace seqpack
