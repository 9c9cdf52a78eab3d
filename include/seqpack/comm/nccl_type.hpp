/// \file
/// nccl_type: the element types that NCCL reduces. CMake component: seqpack::nccl.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <concepts>
#include <type_traits>

namespace seqpack {

/// NCCL's name for a type that it reduces, as `value`. Specialise it for a user-defined type
/// that is laid out as one of these; all others travel, and cannot be reduced.
template <class T>
struct nccl_type {};
/// Every integer of 1, 4 or 8 bytes; NCCL has none of 2.
template <std::integral T>
  requires(!std::same_as<T, bool> && (sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8))
struct nccl_type<T> {
  static constexpr ncclDataType_t value =
      sizeof(T) == 1   ? (std::is_signed_v<T> ? ncclInt8 : ncclUint8)
      : sizeof(T) == 4 ? (std::is_signed_v<T> ? ncclInt32 : ncclUint32)
                       : (std::is_signed_v<T> ? ncclInt64 : ncclUint64);
};
template <>
struct nccl_type<float> : std::integral_constant<ncclDataType_t, ncclFloat32> {};
template <>
struct nccl_type<double> : std::integral_constant<ncclDataType_t, ncclFloat64> {};
template <>
struct nccl_type<__half> : std::integral_constant<ncclDataType_t, ncclFloat16> {};
template <>
struct nccl_type<__nv_bfloat16> : std::integral_constant<ncclDataType_t, ncclBfloat16> {};
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0) && CUDART_VERSION >= 11080
/// On devices of compute capability 9.0 and more.
template <>
struct nccl_type<__nv_fp8_e4m3> : std::integral_constant<ncclDataType_t, ncclFloat8e4m3> {};
/// On devices of compute capability 9.0 and more.
template <>
struct nccl_type<__nv_fp8_e5m2> : std::integral_constant<ncclDataType_t, ncclFloat8e5m2> {};
#endif

}  // namespace seqpack
