/// \file
/// Small arrays of the host to a device, as parameters of a kernel.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/cuda_error.hpp"

namespace seqpack::detail::launching {

/// Bytes that travel with a launch.
template <std::size_t Bytes>
struct alignas(16) launch_bytes {
  static_assert(Bytes % 16 == 0);
  unsigned char at[Bytes];
};

inline constexpr int upload_threads = 256;

/// Own kernel: no call of CUB or Thrust takes its input as parameters, and a copy would have the
/// host wait, or need pinned memory.
template <std::size_t Bytes>
static __global__ void __launch_bounds__(upload_threads)
    write_bytes(const __grid_constant__ launch_bytes<Bytes> from, uint4* to, int bytes) {
  const auto thread = static_cast<int>(threadIdx.x);
  const int count = bytes / 16;
  const auto* const words = reinterpret_cast<const uint4*>(from.at);
  for (int k = thread; k < count; k += upload_threads) to[k] = words[k];
  const int last = 16 * count + thread;
  if (last < bytes) reinterpret_cast<unsigned char*>(to)[last] = from.at[last];
}

/// The parameters of a kernel are at most 32,764 bytes.
inline constexpr std::size_t most_launch_bytes = 32'000;

/// Calls fill(bytes), a host pointer, and puts a launch into the stream that writes them to `to`.
/// \pre bytes is at most Bytes; `to` is aligned to 16
template <std::size_t Bytes, class Fill>
void upload(cudaStream_t stream, void* to, std::size_t bytes, const Fill& fill) {
  launch_bytes<Bytes> parameters;
  fill(static_cast<void*>(parameters.at));
  auto* target = static_cast<uint4*>(to);
  int size = static_cast<int>(bytes);
  void* arguments[] = {&parameters, &target, &size};
  check_cuda(cudaLaunchKernel(reinterpret_cast<const void*>(&write_bytes<Bytes>), dim3(1),
                              dim3(upload_threads), arguments, 0, stream));
}

/// The same in the smallest of a few sizes: a launch costs by its parameters.
template <class Fill>
void upload(cudaStream_t stream, void* to, std::size_t bytes, const Fill& fill) {
  if (bytes <= 1024) return upload<1024>(stream, to, bytes, fill);
  if (bytes <= 4000) return upload<4000>(stream, to, bytes, fill);
  upload<most_launch_bytes>(stream, to, bytes, fill);
}

}  // namespace seqpack::detail::launching
