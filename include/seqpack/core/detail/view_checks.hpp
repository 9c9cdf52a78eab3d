/// \file
/// What a view checks of its sizes and strides when it is made.
// For the folders above too.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/mdspan_like.hpp"

namespace seqpack::detail {

[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_size(const char* name, offset_t value) {
  if (value < 0) reject(name, value, "a size must be at least 0");
  reject(name, value, {"a size must be at most ", max_tokens});
}

/// \throws invalid_input for a size outside of [0, max_tokens].
constexpr void require_size(const char* name, offset_t value) {
  if (value < 0 || value > max_tokens) refuse_size(name, value);
}

[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_elements(const char* names, offset_t a,
                                                                   offset_t b, offset_t most) {
  reject(names, {a, " * ", b}, {"a view spans at most ", most, " elements, 2^56 bytes"});
}

/// \throws invalid_input for more elements than max_view_bytes have.
template <class T>
constexpr void require_elements(const char* names, offset_t a, offset_t b) {
  constexpr offset_t most = max_view_bytes / static_cast<offset_t>(sizeof(T));
  if (!product_within(a, b, most)) refuse_elements(names, a, b, most);
}

/// A dimension or a stride of another library's view as an offset.
/// \throws invalid_input for an unsigned number that an offset cannot hold.
template <class I>
constexpr offset_t offset_of(const char* what, std::size_t dimension, I value) {
  if constexpr (std::unsigned_integral<I> && sizeof(I) >= sizeof(offset_t)) {
    if (value > static_cast<I>(max_view_bytes)) {
      reject({what, " of dimension ", dimension}, value, {"it must be at most ", max_view_bytes});
    }
  }
  return static_cast<offset_t>(value);
}
template <mdspan_like M>
constexpr offset_t extent_of(const M& m, std::size_t dimension) {
  return offset_of("size", dimension, m.extent(dimension));
}
template <mdspan_like M>
constexpr offset_t stride_of(const M& m, std::size_t dimension) {
  return offset_of("stride", dimension, m.stride(dimension));
}

inline std::uintptr_t address_of(const void* data) noexcept {
  return reinterpret_cast<std::uintptr_t>(data);
}
inline std::uint64_t address_bits(const void* data) noexcept {
  return static_cast<std::uint64_t>(address_of(data));
}
template <class T>
constexpr std::uint64_t stride_bits(offset_t stride) noexcept {
  return static_cast<std::uint64_t>(stride) * sizeof(T);
}

/// Whether elements of type From can be looked at as To: the same, or made read-only.
template <class From, class To>
concept reads_as = std::same_as<From, To> || std::same_as<const From, To>;

/// The elements of a trailing payload [d0, d1, ...], which must be contiguous.
template <mdspan_like M>
constexpr offset_t payload_of(const M& m, std::size_t first) {
  offset_t size = 1;
  for (std::size_t r = M::rank(); r > first; --r) {
    const offset_t extent = extent_of(m, r - 1);
    const offset_t stride = stride_of(m, r - 1);
    if (extent != 1 && stride != size) {
      reject({"stride of dimension ", r - 1}, stride,
             {"the payload of a token must be contiguous, so it must be ", size});
    }
    require_size("payload", extent);
    if (!product_within(size, extent, max_tokens)) {
      reject("payload", {size, " * ", extent}, {"a size must be at most ", max_tokens});
    }
    size *= extent;
  }
  return size;
}

}  // namespace seqpack::detail
