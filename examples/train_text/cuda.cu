// seqpack-train-text-cuda: the same training on a GPU. All of it, from packing to the step of the
// optimizer, is put into one stream; the host waits for losses alone. Ends with 77 where there is
// no device.
#include <cuda_runtime_api.h>

#include <iostream>
#include <seqpack/seqpack.cuh>
#include <vector>

#include "options.hpp"
#include "program.hpp"

namespace train_text {

/// Values of the host come to a device in the order of the stream.
template <class Memory, class Pinned>
struct upload_to<seqpack::cuda_stream<Memory, Pinned>> {
  template <class T>
  static void copy(const seqpack::cuda_stream<Memory, Pinned>& where, T* to,
                   const std::vector<T>& from) {
    if (from.empty()) return;
    seqpack::check_cuda(cudaMemcpyAsync(to, from.data(), from.size() * sizeof(T),
                                        cudaMemcpyHostToDevice, where.stream));
    seqpack::check_cuda(cudaStreamSynchronize(where.stream));  // the vector may go
  }
};

}  // namespace train_text

namespace {

/// A stream that outlives all memory that is freed in its order.
struct owned_stream {
  cudaStream_t handle = nullptr;
  owned_stream() { seqpack::check_cuda(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking)); }
  owned_stream(const owned_stream&) = delete;
  owned_stream& operator=(const owned_stream&) = delete;
  ~owned_stream() { cudaStreamDestroy(handle); }
};

}  // namespace

int main(int argc, char** argv) {
  return train_text::tell_errors(true, [&] {
    const auto options = train_text::parse_options(argc, argv, {});
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
      std::cerr << "seqpack-train-text-cuda: there is no CUDA device\n";
      return 77;
    }
    const owned_stream stream;
    seqpack::self_communicator world;
    return train_text::run(seqpack::cuda_stream<>(stream.handle), world, options);
  });
}
