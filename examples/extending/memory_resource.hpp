// A user-defined memory resource: no more than a number of bytes, and a count of what is in use.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <seqpack/exec/device_memory.hpp>

/// A handle: copies share the budget.
class budget_memory {
 public:
  explicit budget_memory(std::size_t most) : shared_(std::make_shared<budget>(most)) {}

  /// \throws std::bad_alloc beyond the budget; cuda_error
  void* allocate(cudaStream_t stream, std::size_t bytes, std::size_t /*alignment*/) {
    if ((shared_->used += bytes) > shared_->most) {
      shared_->used -= bytes;
      throw std::bad_alloc();
    }
    void* made = nullptr;  // aligned to 256 bytes, as all memory of cudaMallocAsync
    if (const cudaError_t code = cudaMallocAsync(&made, bytes, stream); code != cudaSuccess) {
      shared_->used -= bytes;
      throw seqpack::cuda_error(code);
    }
    ++shared_->allocations;
    return made;
  }
  /// Called by destructors: it must not throw.
  void deallocate(cudaStream_t stream, void* p, std::size_t bytes,
                  std::size_t /*alignment*/) noexcept {
    shared_->used -= bytes;
    static_cast<void>(cudaFreeAsync(p, stream));
  }

  std::size_t used() const { return shared_->used; }
  int allocations() const { return shared_->allocations; }

 private:
  struct budget {
    explicit budget(std::size_t bytes) : most(bytes) {}
    const std::size_t most;
    std::atomic<std::size_t> used = 0;
    std::atomic<int> allocations = 0;
  };
  std::shared_ptr<budget> shared_;
};

static_assert(seqpack::device_memory_resource<budget_memory>);
