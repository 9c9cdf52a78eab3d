/// \file
/// The axes of the nvbench programs, and what a state says about them.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <nvbench/nvbench.cuh>
#include <string>

#include "device.cuh"

NVBENCH_DECLARE_TYPE_STRINGS(__nv_bfloat16, "BF16", "bfloat16");

namespace bench {

/// Ids, and rows of activations.
using element_types = nvbench::type_list<std::int64_t, __nv_bfloat16, float>;

/// One point of the axes B, S, D, CP and Each; 1 where a benchmark has no such axis.
struct shape {
  offset_t batch;
  offset_t width;
  offset_t payload;
  offset_t cp;
  offset_t each;

  explicit shape(const nvbench::state& state)
      : batch(state.get_int64("B")),
        width(state.get_int64_or_default("S", 1)),
        payload(state.get_int64_or_default("D", 1)),
        cp(state.get_int64_or_default("CP", 1)),
        each(state.get_int64_or_default("Each", 1)) {}

  auto layout() const { return random_layout(batch, width, each, cp); }
  offset_t batch_elements() const { return batch * width * payload; }
};

/// Skips what a small card cannot hold.
template <class T>
bool too_large(nvbench::state& state, offset_t elements) {
  constexpr offset_t limit = offset_t{4} << 30;
  if (elements * offset_t{sizeof(T)} <= limit) return false;
  state.skip("an array of more than 4 GiB");
  return true;
}

/// The stream that nvbench measures; its memory is the pool of the device.
inline cuda_stream<> executor(const nvbench::launch& launch) {
  return cuda_stream<>(launch.get_stream());
}

}  // namespace bench
