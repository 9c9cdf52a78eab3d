/// \file
/// Device memory with guard zones, streams, and what a call puts into a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "seqpack/exec/cuda.cuh"

namespace seqpack::testing {

/// Leaves with the status that CTest counts as skipped where nothing can run CUDA.
struct needs_device {
  needs_device() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return;
    std::puts("skipped: no CUDA device");
    std::_Exit(77);
  }
};

/// A stream of its own that the legacy stream does not wait for, so that a missing order shows.
class test_stream {
 public:
  test_stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  test_stream(const test_stream&) = delete;
  test_stream& operator=(const test_stream&) = delete;
  ~test_stream() { cudaStreamDestroy(stream_); }

  operator cudaStream_t() const { return stream_; }
  cuda_stream<> executor() const { return cuda_stream<>(stream_); }
  void wait() const { check_cuda(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// `size` elements of device memory between guard zones, poisoned, `offset` bytes behind a 16-byte
/// boundary.
template <class T>
class device_array {
 public:
  explicit device_array(std::size_t size, std::size_t offset = 0)
      : size_(size), first_(guard + offset), bytes_(first_ + size * sizeof(T) + guard) {
    check_cuda(cudaMalloc(&memory_, bytes_));
    check_cuda(cudaMemset(memory_, poison, bytes_));
    check_cuda(cudaDeviceSynchronize());
  }
  explicit device_array(const std::vector<T>& values, std::size_t offset = 0)
      : device_array(values.size(), offset) {
    upload(values);
  }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;
  ~device_array() { cudaFree(memory_); }

  T* data() const { return reinterpret_cast<T*>(memory_ + first_); }
  std::size_t size() const { return size_; }

  void upload(const std::vector<T>& values) {
    check_cuda(
        cudaMemcpy(data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    check_cuda(cudaDeviceSynchronize());
  }
  /// The elements; the stream must have been waited for.
  std::vector<T> values() const {
    std::vector<T> result(size_);
    check_cuda(cudaMemcpy(result.data(), data(), size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return result;
  }
  /// Whether nothing was written outside of the elements.
  bool guards_intact() const {
    std::vector<unsigned char> all(bytes_);
    check_cuda(cudaMemcpy(all.data(), memory_, bytes_, cudaMemcpyDeviceToHost));
    const std::size_t end = first_ + size_ * sizeof(T);
    for (std::size_t k = 0; k < bytes_; ++k) {
      if ((k < first_ || k >= end) && all[k] != poison) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t guard = 256;
  static constexpr unsigned char poison = 0xA5;

  std::size_t size_;
  std::size_t first_;
  std::size_t bytes_;
  unsigned char* memory_ = nullptr;
};

/// A copy of device memory that a layout owns.
template <class T>
std::vector<T> read_device(std::span<const T> from) {
  std::vector<T> result(from.size());
  check_cuda(cudaMemcpy(result.data(), from.data(), from.size_bytes(), cudaMemcpyDeviceToHost));
  return result;
}

/// A captured call: what it put into the stream. Capturing proves that it neither synchronised nor
/// allocated outside of stream order: both are errors during a capture.
class captured_call {
 public:
  template <class Call>
  captured_call(cudaStream_t stream, Call&& call) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    call();
    check_cuda(cudaStreamEndCapture(stream, &graph_));
    std::size_t count = 0;
    check_cuda(cudaGraphGetNodes(graph_, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    check_cuda(cudaGraphGetNodes(graph_, nodes.data(), &count));
    for (cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type;
      check_cuda(cudaGraphNodeGetType(node, &type));
      if (type == cudaGraphNodeTypeKernel) {
        ++launches;
      } else if (type == cudaGraphNodeTypeMemset) {
        ++memsets;
      } else {
        ++others;
      }
    }
    check_cuda(cudaGraphInstantiate(&executable_, graph_, 0));
  }
  captured_call(const captured_call&) = delete;
  captured_call& operator=(const captured_call&) = delete;
  ~captured_call() {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }

  void replay(cudaStream_t stream) const { check_cuda(cudaGraphLaunch(executable_, stream)); }

  int launches = 0;
  int memsets = 0;
  int others = 0;

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace seqpack::testing
