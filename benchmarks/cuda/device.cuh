/// \file
/// What the CUDA benchmarks share: device memory with an owner, random inputs, lengths.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <thrust/tabulate.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "seqpack/seqpack.cuh"

namespace bench {

using seqpack::cuda_stream;
using seqpack::offset_t;

constexpr std::size_t as_size(offset_t n) {
  return static_cast<std::size_t>(n);
}

/// Elements in device memory, at an address aligned to 256 bytes, not initialised.
template <class T>
class device_array {
 public:
  explicit device_array(offset_t size) : size_(size) {
    seqpack::check_cuda(cudaMalloc(&data_, std::max<std::size_t>(words() * 8, 8)));
  }
  device_array(const std::vector<T>& values, cudaStream_t stream)
      : device_array(static_cast<offset_t>(values.size())) {
    upload(values, stream);
  }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;
  ~device_array() { cudaFree(data_); }

  T* data() const noexcept { return static_cast<T*>(data_); }
  offset_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return as_size(size_) * sizeof(T); }
  /// Words of 8 bytes, which cover the elements.
  std::size_t words() const noexcept { return (bytes() + 7) / 8; }

  void upload(const std::vector<T>& values, cudaStream_t stream) const {
    seqpack::check_cuda(
        cudaMemcpyAsync(data_, values.data(), bytes(), cudaMemcpyHostToDevice, stream));
  }
  /// The elements, once the stream has got there.
  std::vector<T> download(cudaStream_t stream) const {
    std::vector<T> values(as_size(size_));
    seqpack::check_cuda(
        cudaMemcpyAsync(values.data(), data_, bytes(), cudaMemcpyDeviceToHost, stream));
    seqpack::check_cuda(cudaStreamSynchronize(stream));
    return values;
  }
  /// Bytes that no result has.
  void poison(cudaStream_t stream) const {
    seqpack::check_cuda(cudaMemsetAsync(data_, 0xA5, bytes(), stream));
  }

 private:
  offset_t size_;
  void* data_ = nullptr;
};

/// A random word for every k (splitmix64), so that inputs are made where they are read.
struct random_word {
  std::uint64_t seed;

  SEQPACK_HD std::uint64_t operator()(std::uint64_t k) const {
    std::uint64_t x = (k + seed) * 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }
};

/// A random logit for every k: uniform in [-8, 8).
template <class T>
struct random_logit {
  random_word random;

  SEQPACK_HD T operator()(std::uint64_t k) const {
    return static_cast<T>(static_cast<float>(random(k) >> 40) * (16.0F / (1 << 24)) - 8);
  }
};

/// Random bytes.
template <class T>
void randomise(const device_array<T>& array, std::uint64_t seed, cudaStream_t stream) {
  auto* const words = reinterpret_cast<std::uint64_t*>(array.data());
  thrust::tabulate(thrust::cuda::par_nosync.on(stream), words, words + array.words(),
                   random_word{seed << 40});
}

/// Random logits.
template <class T>
void randomise_logits(const device_array<T>& array, std::uint64_t seed, cudaStream_t stream) {
  thrust::tabulate(thrust::cuda::par_nosync.on(stream), array.data(), array.data() + array.size(),
                   random_logit<T>{{seed << 40}});
}

/// Lengths as batches have them: uniform between a quarter of the width and the width.
inline std::vector<int> random_lengths(offset_t count, offset_t width, unsigned seed = 7) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> length(static_cast<int>(width / 4), static_cast<int>(width));
  std::vector<int> result(as_size(count));
  for (int& l : result) l = length(random);
  return result;
}

/// The layout of random lengths. Its numbers are known at run time alone, as frameworks have them.
inline auto random_layout(offset_t batch, offset_t width, offset_t each, offset_t cp) {
  return seqpack::make_layout(random_lengths(batch, width),
                              seqpack::padding{seqpack::each_multiple_of<>{each}},
                              seqpack::context_parallel{cp});
}

/// Pools give memory back at every synchronisation unless they are told to keep it, as programs do
/// that allocate in every step.
inline void keep_pool_memory() {
  int device = 0;
  cudaMemPool_t pool{};
  std::uint64_t all = ~std::uint64_t{0};
  seqpack::check_cuda(cudaGetDevice(&device));
  seqpack::check_cuda(cudaDeviceGetDefaultMemPool(&pool, device));
  seqpack::check_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
}

}  // namespace bench
