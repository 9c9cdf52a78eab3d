/// \file
/// The two forms of a source of memory in the order of a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <concepts>
#include <cstddef>

namespace seqpack::detail {

template <class R>
concept stream_first = requires(R r, void* p, std::size_t n, cudaStream_t s) {
  { r.allocate(s, n, n) } -> std::convertible_to<void*>;
  r.deallocate(s, p, n, n);
};
template <class R>
concept stream_last = requires(R r, void* p, std::size_t n, cudaStream_t s) {
  { r.allocate_async(n, n, s) } -> std::convertible_to<void*>;
  r.deallocate_async(p, n, n, s);
};

}  // namespace seqpack::detail
