/// \file
/// The device and the stream that an NCCL communicator works on. CMake component: seqpack::nccl.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>

#include "seqpack/comm/detail/deadline.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/source_location.hpp"
#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/exec/detail/open_releases.hpp"

namespace seqpack::detail::nccl {

/// A device that is current for as long as the object lives. One that cannot become it shows in the
/// calls that follow: destructors need this too.
class current_device {
 public:
  explicit current_device(int device) noexcept {
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = device;
    if (before_ != device) cudaSetDevice(device);
    device_ = device;
  }
  current_device(const current_device&) = delete;
  current_device& operator=(const current_device&) = delete;
  ~current_device() {
    if (before_ != device_) cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  int device_ = 0;
};

using detail::forget;
using detail::is_of_capture;
using detail::releasing::relaxed_capture;

/// The number of devices, at least 1.
inline int count_devices(source_location where = source_location::current()) {
  int devices = 0;
  const cudaError_t code = cudaGetDeviceCount(&devices);
  forget(code);
  check_cuda(code == cudaSuccess && devices < 1 ? cudaErrorNoDevice : code, where);
  return devices;
}
inline int find_current_device(source_location where = source_location::current()) {
  count_devices(where);
  int device = 0;
  check_cuda(cudaGetDevice(&device), where);
  return device;
}

/// Where a communicator works, and for how long.
struct site {
  int device = 0;
  cudaStream_t stream = nullptr;
  std::chrono::milliseconds deadline = default_deadline;

  /// One of the codes of captures where the stream is being captured: what waits for it, a query
  /// too, would end the capture. Else cudaSuccess, or the error of earlier work in the stream.
  cudaError_t ask_capture() const noexcept {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t code = cudaStreamIsCapturing(stream, &status);
    forget(code);
    return code == cudaSuccess && status != cudaStreamCaptureStatusNone
               ? cudaErrorStreamCaptureUnsupported
               : code;
  }
  bool is_captured() const noexcept { return is_of_capture(ask_capture()); }

  /// cudaErrorNotReady where the stream is busy, else what became of the work in it, which nobody
  /// can tell during a capture.
  cudaError_t state() const noexcept {
    const cudaError_t asked = ask_capture();
    if (asked != cudaSuccess) return asked;
    const cudaError_t found = cudaStreamQuery(stream);
    forget(found);
    return found;
  }
};

/// Memory of the site's device, allocated and freed in the order of its stream; some also for no
/// bytes, as operator new has it.
inline std::shared_ptr<void> allocate(const site& at, offset_t bytes,
                                      source_location where = source_location::current()) {
  const auto size = static_cast<std::size_t>(std::max(bytes, offset_t{1}));
  const current_device here(at.device);
  void* const memory = detail::releasing::allocate(
      at.stream, [&](void** made) { return cudaMallocAsync(made, size, at.stream); }, where);
  return {memory, [at](void* p) {
            const current_device there(at.device);
            const relaxed_capture undisturbed;
            detail::releasing::release(p, at.stream);
          }};
}

}  // namespace seqpack::detail::nccl
