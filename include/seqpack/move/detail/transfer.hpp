/// \file
/// How one token's payload moves: blocks on the host, units of up to 16 bytes on a device.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"

namespace seqpack::detail {

/// A value for the elements of a token that nobody sent: a constant, or a function of the column
/// (0 <= column < D), for example the expert routes 0, 1, 2, ...
template <class F, class T>
concept filler = std::is_trivially_copyable_v<F> &&
                 (std::invocable<const F&, offset_t> || std::constructible_from<T, const F&>);

/// A filler of bytes that begins again every period() of them, and can write many at once.
template <class F>
concept pattern_filler = requires(const F& f, std::byte* to, offset_t count) {
  { f.period() } -> std::same_as<offset_t>;
  f.pattern();
  f.write(to, count);
};

/// The fill of one column.
template <class T, filler<T> F>
SEQPACK_HD constexpr T fill_value(const F& fill, offset_t column) {
  if constexpr (std::invocable<const F&, offset_t>) {
    return static_cast<T>(fill(column));
  } else {
    return static_cast<T>(fill);
  }
}

/// Copies bytes on the host; as many as common elements have without a call.
inline void copy_bytes(std::byte* to, const std::byte* from, offset_t count) {
  switch (count) {
    case 0: return;
    case 1: *to = *from; return;
    case 2: std::memcpy(to, from, 2); return;
    case 4: std::memcpy(to, from, 4); return;
    case 8: std::memcpy(to, from, 8); return;
    case 16: std::memcpy(to, from, 16); return;
    default: std::memcpy(to, from, static_cast<std::size_t>(count));
  }
}

/// Copies tokens of Size bytes on the host.
template <int Size>
void copy_strided(std::byte* to, offset_t to_stride, const std::byte* from, offset_t from_stride,
                  offset_t count) {
  for (offset_t k = 0; k < count; ++k) {
    std::memcpy(to + k * to_stride, from + k * from_stride, Size);
  }
}

/// Copies whole tokens on the host, in one block where both sides are dense.
/// \pre payload >= 1
template <element T>
void copy_tokens(T* to, offset_t to_stride, const T* from, offset_t from_stride, offset_t payload,
                 offset_t count) {
  if (to_stride == payload && from_stride == payload) {
    if (count == 1 && payload == 1) {
      *to = *from;
    } else if (count > 0) {
      std::memcpy(to, from, static_cast<std::size_t>(count * payload) * sizeof(T));
    }
    return;
  }
  for (offset_t k = 0; k < count; ++k) {
    if (payload == 1) {
      to[k * to_stride] = from[k * from_stride];
    } else {
      std::memcpy(to + k * to_stride, from + k * from_stride,
                  static_cast<std::size_t>(payload) * sizeof(T));
    }
  }
}

/// The same for bytes, which are elements of any size: what tokens of common sizes cost is what they
/// would cost as elements of that size.
template <>
inline void copy_tokens<std::byte>(std::byte* to, offset_t to_stride, const std::byte* from,
                                   offset_t from_stride, offset_t payload, offset_t count) {
  if (to_stride == payload && from_stride == payload) {
    if (count > 0) copy_bytes(to, from, count * payload);
    return;
  }
  switch (payload) {
    case 1: return copy_strided<1>(to, to_stride, from, from_stride, count);
    case 2: return copy_strided<2>(to, to_stride, from, from_stride, count);
    case 4: return copy_strided<4>(to, to_stride, from, from_stride, count);
    case 8: return copy_strided<8>(to, to_stride, from, from_stride, count);
    case 16: return copy_strided<16>(to, to_stride, from, from_stride, count);
    default: break;
  }
  for (offset_t k = 0; k < count; ++k) {
    std::memcpy(to + k * to_stride, from + k * from_stride, static_cast<std::size_t>(payload));
  }
}

/// Fills whole tokens of bytes on the host.
template <pattern_filler F>
void fill_tokens(std::byte* to, offset_t stride, offset_t payload, offset_t count, const F& fill) {
  if (count <= 0) return;
  if (stride == payload) return fill.write(to, count * payload);
  fill.write(to, payload);
  copy_tokens<std::byte>(to + stride, stride, to, 0, payload, count - 1);
}

/// Fills whole tokens on the host.
template <element T, filler<T> F>
  requires(!pattern_filler<F>)
void fill_tokens(T* to, offset_t stride, offset_t payload, offset_t count, const F& fill) {
  if constexpr (!std::invocable<const F&, offset_t>) {
    if (stride == payload) {
      std::fill_n(to, count * payload, fill_value<T>(fill, 0));
      return;
    }
  }
  for (offset_t k = 0; k < count; ++k) {
    for (offset_t column = 0; column < payload; ++column) {
      to[k * stride + column] = fill_value<T>(fill, column);
    }
  }
}

/// An unsigned block of 1, 2, 4, 8 or 16 bytes that may alias anything.
template <int Bytes>
struct [[gnu::may_alias]] alignas(Bytes) block {
  std::uint8_t bytes[Bytes];
};
template <>
struct [[gnu::may_alias]] alignas(16) block<16> {
  std::uint64_t low, high;
};
template <>
struct [[gnu::may_alias]] alignas(8) block<8> {
  std::uint64_t value;
};
template <>
struct [[gnu::may_alias]] alignas(4) block<4> {
  std::uint32_t value;
};
template <>
struct [[gnu::may_alias]] alignas(2) block<2> {
  std::uint16_t value;
};

/// Cuts the payload of every token into units of the widest access that pointers, strides and width
/// allow, so that a device moves 16 bytes at a time wherever it can.
class unit_shape {
 public:
  constexpr unit_shape() = default;
  /// \param row_bytes bytes of one token's payload
  /// \param address_bits those of all views that take part
  constexpr unit_shape(offset_t row_bytes, std::uint64_t address_bits) : row_bytes_(row_bytes) {
    const std::uint64_t bits = address_bits | static_cast<std::uint64_t>(row_bytes) | 16U;
    bytes_ = static_cast<std::int32_t>(bits & (~bits + 1));
    per_row_ = row_bytes / bytes_;
  }

  SEQPACK_HD constexpr std::int32_t bytes() const noexcept { return bytes_; }
  SEQPACK_HD constexpr offset_t per_row() const noexcept { return per_row_; }
  SEQPACK_HD constexpr offset_t row_bytes() const noexcept { return row_bytes_; }

 private:
  offset_t row_bytes_ = 0;
  offset_t per_row_ = 0;
  std::int32_t bytes_ = 1;
};

/// Fills one unit that begins `offset` bytes into the row.
template <int Bytes, class T, class F>
SEQPACK_HD inline void fill_unit(char* to, offset_t offset, const F& value) {
  constexpr int size = static_cast<int>(sizeof(T));
  if constexpr (Bytes % size == 0) {
    // Whole elements: they are put together in registers and leave as one store.
    block<Bytes> out;
    const offset_t first = divide(offset, size);
    for (int k = 0; k < Bytes / size; ++k) {
      const T element = fill_value<T>(value, first + k);
      memcpy(reinterpret_cast<char*>(&out) + offset_t{k} * size, &element, sizeof(T));
    }
    *reinterpret_cast<block<Bytes>*>(to) = out;
  } else {
    // Elements wider than the unit, or of a size that does not divide it.
    for (int k = 0; k < Bytes; ++k) {
      const offset_t column = divide(offset + k, size);
      const T element = fill_value<T>(value, column);
      to[k] = reinterpret_cast<const char*>(&element)[offset + k - column * size];
    }
  }
}

/// Calls f with the unit size as a constant, which is at least `Least`: what elements are aligned to.
template <int Least, int Most = 16, class F>
SEQPACK_HD inline void with_unit_size(std::int32_t bytes, F&& f) {
  if constexpr (Least >= Most) {
    f(std::integral_constant<int, Most>{});
  } else if (bytes == Most) {
    f(std::integral_constant<int, Most>{});
  } else {
    with_unit_size<Least, Most / 2>(bytes, f);
  }
}

}  // namespace seqpack::detail
