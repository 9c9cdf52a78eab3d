#include <seqpack/seqpack.cuh>

// Compiled and linked; it runs where there is a device.
int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 0;
  const seqpack::cuda_stream<> where(nullptr);
  return where.stream == nullptr ? 0 : 1;
}
