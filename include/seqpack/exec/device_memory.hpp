/// \file
/// Sources of device memory and of pinned memory in the order of a stream. Needs the headers of the
/// CUDA toolkit, but no CUDA compiler.
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
#include "seqpack/exec/detail/open_releases.hpp"
#include "seqpack/exec/detail/stream_resource.hpp"

namespace seqpack {

/// A source of memory in the order of a stream, as cuda::mr and RMM have them: memory that was given
/// back may be used again once the stream reaches that point. It is copied, so it must be a handle.
/// Either form is taken, the first one where a resource has both:
///
/// - `r.allocate(stream, bytes, alignment)`, `r.deallocate(stream, p, bytes, alignment)`: CCCL from
///   3.1 on and today's RMM
/// - `r.allocate_async(bytes, alignment, stream)`, `r.deallocate_async(p, bytes, alignment, stream)`:
///   CCCL up to 3.0, RMM up to 25
///
/// The library asks for an alignment of 256 bytes. Allocating may throw anything, and the call that needed
/// the memory then gives back what it has; giving back is called by destructors and must not throw.
/// Both are called on the host, by whatever thread calls the library, and during a capture of the
/// stream too.
template <class R>
concept stream_memory_resource =
    std::copy_constructible<R> && (detail::stream_first<R> || detail::stream_last<R>);

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

/// Options of a device_pool.
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

namespace detail {

/// What a resource aligns memory to: as much as cudaMalloc does.
inline constexpr std::size_t stream_alignment = 256;

/// Memory of a resource, given back in the order of the stream when its last owner goes.
template <stream_memory_resource R>
std::shared_ptr<void> allocate(R resource, cudaStream_t stream, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if constexpr (stream_first<R>) {
    void* const p = resource.allocate(stream, bytes, stream_alignment);
    return {p, [resource, stream, bytes](void* q) mutable {
              resource.deallocate(stream, q, bytes, stream_alignment);
            }};
  } else {
    void* const p = resource.allocate_async(bytes, stream_alignment, stream);
    return {p, [resource, stream, bytes](void* q) mutable {
              resource.deallocate_async(q, bytes, stream_alignment, stream);
            }};
  }
}

}  // namespace detail

}  // namespace seqpack
