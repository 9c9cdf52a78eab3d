/// \file
/// The launch of tiled operations.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/exec/tiled.hpp"

namespace seqpack::detail::launching {

/// The threads of a block of `Size`, all of which must make the same calls.
template <std::int32_t Size>
struct block_threads {
  __device__ std::int32_t rank() const { return static_cast<std::int32_t>(threadIdx.x); }
  __device__ static constexpr std::int32_t size() { return Size; }
  __device__ void sync() const { __syncthreads(); }
  __device__ bool any(bool mine) const { return __syncthreads_or(mine) != 0; }
  template <class F>
  __device__ std::int32_t count_of(std::int32_t n, const F& f) const {
    std::int32_t count = 0;
    for (std::int32_t first = 0; first < n; first += Size) {
      const std::int32_t k = first + rank();
      count += __syncthreads_count(k < n && f(k));
    }
    return count;
  }
};

inline constexpr std::int32_t tile_threads = 256;

// A kernel of our own, for bandwidth. Thrust gives a thread one unit of 16 bytes, whose sequence it
// searches in global memory: rows of 128 bytes to 1 KiB asked for 1.4 times the sectors that they are
// and took 186 instructions for 16 bytes and more, 4-byte ids 3 times the sectors; here it is 1.02, 34
// to 75 instructions, and 1.2. CUB's batched copies take pointers that a launch of their own would
// have to write first, and fill nothing. Blocks have consecutive tiles, so that the next one mostly
// needs sequences that are in shared memory already. With two blocks at once nothing spills.
template <class Op>
static __global__ void __launch_bounds__(tile_threads, 2)
    run_tiles(const __grid_constant__ Op op, offset_t tiles, offset_t per_block) {
  __shared__ typename Op::scratch_type scratch;
  constexpr block_threads<tile_threads> threads;
  const offset_t first = blockIdx.x * per_block;
  const offset_t last = min_of(first + per_block, tiles);
  op.prepare(threads, scratch);
  for (offset_t tile = first; tile < last; ++tile) op.tile(threads, scratch, tile, tile > first);
}

inline int multiprocessors() {
  int device = 0;
  int count = 0;
  check_cuda(cudaGetDevice(&device));
  check_cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

/// One launch. Blocks for 8 of them on every multiprocessor, each with as many tiles as it takes.
template <tiled_operation Op>
void for_each_tile(cudaStream_t stream, const Op& op) {
  offset_t tiles = op.tiles();
  if (tiles == 0) return;
  offset_t per_block = divide(tiles - 1, offset_t{8} * multiprocessors()) + 1;
  const dim3 blocks(static_cast<unsigned>(divide(tiles - 1, per_block) + 1));
  void* arguments[] = {const_cast<Op*>(&op), &tiles, &per_block};
  check_cuda(cudaLaunchKernel(reinterpret_cast<const void*>(&run_tiles<Op>), blocks,
                              dim3(tile_threads), arguments, 0, stream));
}

}  // namespace seqpack::detail::launching
