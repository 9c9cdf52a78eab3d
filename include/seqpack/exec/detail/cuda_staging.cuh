/// \file
/// Reading and writing device memory by way of pinned memory.
// For the folders above too.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>

#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/exec/device_memory.hpp"

namespace seqpack::detail {

/// What is read in a capture would be recorded instead, and the host would have nothing.
inline void require_no_capture(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status));
  if (status != cudaStreamCaptureStatusNone) throw cuda_error(cudaErrorStreamCaptureUnsupported);
}

/// Through pinned memory, so that there is one wait, and the copy has finished when it returns. Of
/// copies to other memory the runtime says that they may wait, not that they do.
template <pinned_memory_resource Pinned>
void read_staged(cudaStream_t stream, const Pinned& pinned, void* to, const void* from,
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
void write_staged(cudaStream_t stream, const Pinned& pinned, void* to, std::size_t bytes,
                  const Fill& fill) {
  require_no_capture(stream);
  const auto copy = detail::allocate(pinned, stream, bytes);
  fill(copy.get());
  check_cuda(cudaMemcpyAsync(to, copy.get(), bytes, cudaMemcpyHostToDevice, stream));
}

}  // namespace seqpack::detail
