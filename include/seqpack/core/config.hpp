/// \file
/// The index type of the library and the one macro it needs.
#pragma once

#include <cstdint>

/// Marks a function that runs on the host and, under a CUDA compiler, on the device too.
/// The only macro of the library: C++ has no other spelling for it.
#if defined(__CUDACC__)
#define SEQPACK_HD __host__ __device__
#else
#define SEQPACK_HD
#endif

namespace seqpack {

/// Counts of tokens, rows and elements, and every product of them. Always 64 bits, whatever the
/// index type of cu_seqlens is: T * D passes 2^31 long before T does.
using offset_t = std::int64_t;

/// A number that is only known at run time, as std::dynamic_extent is for std::span.
inline constexpr offset_t dynamic = -1;

/// The largest number of tokens, and the largest number in a policy, that the library accepts with
/// 64-bit cu_seqlens. Far above any use and far below 2^63, so that no sum of two can wrap.
inline constexpr offset_t max_tokens = offset_t{1} << 48;

/// The most bytes that the elements of one view take, and that lie between its first and its last:
/// more than any machine can address, and so few that the sum over a hundred views fits 64 bits.
inline constexpr offset_t max_view_bytes = offset_t{1} << 56;

}  // namespace seqpack
