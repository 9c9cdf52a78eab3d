/// \file
/// Access of the devices of a process to the memory of each other's pools. CMake component:
/// seqpack::nccl.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "seqpack/comm/detail/nccl_site.hpp"

namespace seqpack::detail::nccl {

/// Whether NCCL is told to leave the memory of peers alone.
inline bool reaches_no_peers() {
  const auto is_set = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != 0 && std::string_view(value) != "0";
  };
  return is_set("NCCL_P2P_DIRECT_DISABLE") || is_set("NCCL_P2P_DISABLE");
}

/// Whether kernels of one device can use memory of another one.
inline bool can_reach(int device, int memory) noexcept {
  int can = 0;
  forget(cudaDeviceCanAccessPeer(&can, device, memory));
  return device != memory && can != 0;
}

/// Whether a device has been given access to a pool's memory; nothing where nobody can tell.
inline std::optional<bool> has_access(int device, cudaMemPool_t pool) noexcept {
  cudaMemLocation location{};
  location.type = cudaMemLocationTypeDevice;
  location.id = device;
  cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
  const cudaError_t code = cudaMemPoolGetAccess(&flags, pool, &location);
  forget(code);
  if (code != cudaSuccess) return std::nullopt;
  return flags == cudaMemAccessFlagsProtReadWrite;
}

/// Gives devices access to a pool's memory, what has been allocated already too.
inline cudaError_t give_access(cudaMemPool_t pool, std::span<const int> devices) noexcept {
  const relaxed_capture undisturbed;
  for (const int device : devices) {
    if (has_access(device, pool) == true) continue;
    cudaMemAccessDesc wanted{};
    wanted.location.type = cudaMemLocationTypeDevice;
    wanted.location.id = device;
    wanted.flags = cudaMemAccessFlagsProtReadWrite;
    const cudaError_t code = cudaMemPoolSetAccess(pool, &wanted, 1);
    forget(code);
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

/// The devices that this process has groups on.
class group_devices {
 public:
  static group_devices& of_process() {
    static group_devices& all = *new group_devices;
    return all;
  }
  void add(int device) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(devices_, device) == devices_.end()) devices_.push_back(device);
  }
  /// Each device can use what cudaMallocAsync gives on every other one, as far as the machine can
  /// do that. What fails is told by the allocations of groups.
  void open_all() {
    const std::lock_guard lock(mutex_);
    for (const int d : devices_) open_current(d);
  }
  /// The same for the current pool of one device, which the program may have changed.
  cudaError_t open(int device) {
    const std::lock_guard lock(mutex_);
    return open_current(device);
  }
  /// The same for a pool of the device.
  cudaError_t open(int device, cudaMemPool_t pool) {
    const std::lock_guard lock(mutex_);
    return give_access(pool, peers_of(device));
  }

 private:
  std::vector<int> peers_of(int device) const {
    std::vector<int> peers;
    std::ranges::copy_if(devices_, std::back_inserter(peers),
                         [&](int d) { return can_reach(d, device); });
    return peers;
  }
  cudaError_t open_current(int device) const {
    const std::vector<int> peers = peers_of(device);
    if (peers.empty()) return cudaSuccess;
    cudaMemPool_t pool = nullptr;
    const cudaError_t code = cudaDeviceGetMemPool(&pool, device);
    forget(code);
    return code == cudaSuccess ? give_access(pool, peers) : code;
  }

  std::mutex mutex_;
  std::vector<int> devices_;
};

/// The pool that memory is from; null where it is from none, or nobody can tell: only the driver
/// knows, and a runtime that has none says so.
inline cudaMemPool_t pool_of(const void* memory) noexcept {
#if CUDART_VERSION >= 12050
  using question = CUresult (*)(void*, CUpointer_attribute, CUdeviceptr);
  static const question ask = [] {
    void* found = nullptr;
    const cudaError_t code = cudaGetDriverEntryPointByVersion("cuPointerGetAttribute", &found,
                                                              12000, cudaEnableDefault, nullptr);
    forget(code);
    return code == cudaSuccess ? reinterpret_cast<question>(found) : nullptr;
  }();
  CUmemoryPool pool = nullptr;
  if (ask == nullptr || ask(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                            reinterpret_cast<std::uintptr_t>(memory)) != CUDA_SUCCESS) {
    return nullptr;
  }
  return pool;
#else
  return nullptr;
#endif
}

}  // namespace seqpack::detail::nccl
