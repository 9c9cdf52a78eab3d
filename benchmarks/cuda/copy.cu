// A device-to-device copy: the floor of every operation that moves as many bytes.
#include "axes.cuh"

namespace {

void copy(nvbench::state& state) {
  const auto bytes = state.get_int64("Bytes");
  const bench::device_array<char> from(bytes);
  const bench::device_array<char> to(bytes);
  bench::randomise(from, 1, state.get_cuda_stream());
  state.add_global_memory_reads(from.bytes());
  state.add_global_memory_writes(to.bytes());
  state.exec([&](nvbench::launch& launch) {
    seqpack::check_cuda(cudaMemcpyAsync(to.data(), from.data(), from.bytes(),
                                        cudaMemcpyDeviceToDevice, launch.get_stream()));
  });
}
NVBENCH_BENCH(copy).add_int64_power_of_two_axis("Bytes", nvbench::range(20, 30, 2));

}  // namespace
