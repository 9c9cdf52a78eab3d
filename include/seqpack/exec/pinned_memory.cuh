/// \file
/// Pools of pinned host memory, from which copies to a device never wait.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "seqpack/core/source_location.hpp"
#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/exec/detail/open_releases.hpp"

namespace seqpack {

/// Blocks of pinned memory that are used again once the stream that they were given back in reaches
/// that point. It never waits: where no block is free it takes another. A handle; copies share the
/// blocks, which stay until the last copy is gone. Safe to use from several threads.
///
/// Taking a block asks the driver for memory only while the pool grows, which can take long;
/// blocks are powers of two from 1 MiB on. The stream is one of the current device.
class pinned_pool {
 public:
  pinned_pool() : blocks_(std::make_shared<shared_blocks>()) {}

  /// \throws cuda_error, also where earlier memory could not be given back
  void* allocate_async(std::size_t bytes, std::size_t /*alignment*/, cudaStream_t stream) const {
    const detail::releasing::relaxed_capture guard;
    auto& open = detail::releasing::open_releases::of_process();
    open.check_host();
    open.check(stream);
    int device = 0;  // whose streams the events of a block are for
    check_cuda(cudaGetDevice(&device));
    const std::lock_guard lock(blocks_->mutex);
    blocks_->record_owed(stream);
    for (block& b : blocks_->all) {
      if (b.device == device && b.bytes >= bytes && b.is_free()) {
        b.taken = true;
        return b.data;
      }
    }
    return blocks_->add(bytes, device);
  }
  /// The block is free for others once all that is in the stream now has finished; in a capture,
  /// once the next call of the pool for this stream after it finds that so. Where that cannot be
  /// told, the block is never used again, and the next allocation in the stream throws.
  void deallocate_async(void* p, std::size_t, std::size_t, cudaStream_t stream) const noexcept {
    const std::lock_guard lock(blocks_->mutex);
    for (block& b : blocks_->all) {
      if (b.data != p) continue;
      b.stream = stream;
      b.owed = true;
      ++blocks_->owed;
      break;
    }
    blocks_->record_owed(stream);
  }
  /// Blocks that it has taken from the driver so far.
  std::size_t size() const {
    const std::lock_guard lock(blocks_->mutex);
    return blocks_->all.size();
  }

 private:
  struct block {
    void* data = nullptr;
    std::size_t bytes = 0;
    int device = 0;
    cudaEvent_t used = nullptr;
    bool taken = true;
    bool owed = false;  ///< it was handed back in this stream, and the event is not yet recorded
    cudaStream_t stream = nullptr;

    bool is_free() const { return !taken && cudaEventQuery(used) == cudaSuccess; }
  };
  struct shared_blocks {
    std::mutex mutex;
    std::vector<block> all;
    std::size_t owed = 0;

    /// An event that is recorded in a capture is the graph's, and nobody could ask it.
    void record_owed(cudaStream_t stream) noexcept {
      if (owed == 0 || detail::releasing::stream_capture(stream).holds_up()) return;
      for (block& b : all) {
        if (!b.owed || b.stream != stream) continue;
        b.owed = false;
        --owed;
        const cudaError_t code = cudaEventRecord(b.used, stream);
        detail::forget(code);
        b.taken = code != cudaSuccess;
        if (b.taken) {
          detail::releasing::open_releases::of_process().add_failure(code, stream,
                                                                     source_location::current());
        }
      }
    }
    void* add(std::size_t bytes, int device) {
      std::size_t size = std::size_t{1} << 20;
      while (size < bytes) size *= 2;
      all.reserve(all.size() + 1);
      block b;
      b.bytes = size;
      b.device = device;
      check_cuda(cudaMallocHost(&b.data, size));
      const cudaError_t status = cudaEventCreateWithFlags(&b.used, cudaEventDisableTiming);
      if (status != cudaSuccess) give_back(b);
      check_cuda(status);
      all.push_back(b);
      return b.data;
    }
    static void give_back(const block& b) noexcept {
      const cudaError_t code = cudaFreeHost(b.data);
      detail::forget(code);
      if (code == cudaSuccess) return;
      detail::releasing::open_releases::of_process().add_host_failure(code,
                                                                      source_location::current());
    }
    ~shared_blocks() {
      const detail::releasing::relaxed_capture guard;
      for (const block& b : all) {
        cudaEventDestroy(b.used);
        give_back(b);
      }
    }
  };

  std::shared_ptr<shared_blocks> blocks_;
};

/// The pool of the process, the default of cuda_stream. Its blocks stay until the process ends.
struct process_pinned_memory {
  void* allocate_async(std::size_t bytes, std::size_t alignment, cudaStream_t stream) const {
    return pool().allocate_async(bytes, alignment, stream);
  }
  void deallocate_async(void* p, std::size_t bytes, std::size_t alignment,
                        cudaStream_t stream) const noexcept {
    pool().deallocate_async(p, bytes, alignment, stream);
  }

 private:
  /// Never destroyed: at the end of a process the runtime may be gone before it.
  static const pinned_pool& pool() {
    static const pinned_pool& all = *new pinned_pool;
    return all;
  }
};

}  // namespace seqpack
