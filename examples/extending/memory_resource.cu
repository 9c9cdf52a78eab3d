// Layouts and results on a stream whose memory comes from a user-defined resource. Ends with 77
// where there is no device.
#include "memory_resource.hpp"

#include <iostream>
#include <seqpack/seqpack.cuh>
#include <span>
#include <vector>

using namespace seqpack;

/// Packs a batch on the device, with the lengths and everything else there.
bool packs(cudaStream_t stream, const budget_memory& memory) {
  const cuda_stream where(stream, memory);
  const std::vector<int> ids = {1, 2, 3, 99, 4, 5, 6, 99};
  const std::vector<int> expected = {1, 2, 3, 0, 4, 5, 6, 0};  // three tokens each
  const executor_array<int> batch(where, 8);
  const executor_array<int> row(where, 8);
  const executor_array<int> lengths(where, 2);
  check_cuda(
      cudaMemcpyAsync(batch.data(), ids.data(), 8 * sizeof(int), cudaMemcpyHostToDevice, stream));
  fill(where, lengths, 3);
  const auto layout =
      make_layout(where, std::span<const int>(lengths.span()), padding{each_multiple_of<4>{}});
  pack(where, layout, full_row, field(batch_view<const int>(batch.data(), 2, 4), row.rows()));
  std::vector<int> found(8);
  read_back(where, found.data(), row.data(), 8);
  return found == expected;
}

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::cout << "skipped: no CUDA device\n";
    return 77;
  }
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const budget_memory memory(64 * 1024);
  const budget_memory little(64);
  bool right = packs(stream, memory) && memory.allocations() == 4 && memory.used() == 0;
  try {
    packs(stream, little);
    right = false;
  } catch (const std::bad_alloc&) {
    right = right && little.used() == 0;  // what it had got before was given back
  }
  check_cuda(cudaStreamDestroy(stream));
  std::cout << "memory_resource: " << memory.allocations() << " allocations, "
            << (right ? "as expected" : "WRONG") << '\n';
  return right && std::cout.flush() ? 0 : 1;
}
