/// \file
/// Views of logits, and which columns of the vocabulary they hold.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"

namespace seqpack {

/// What logits can be made of: float, double, and 16-bit types that convert to float and back, such
/// as half and bfloat16. Arithmetic is in float, of double in double.
template <class T>
concept logit = element<T> && !std::integral<T> && requires(const T& x, float f) {
  static_cast<float>(x);
  static_cast<std::remove_const_t<T>>(f);
};

/// What arithmetic on logits of type T is done in: float for 16-bit and 32-bit ones, double for
/// double.
template <logit T>
using compute_type =
    std::conditional_t<std::same_as<std::remove_const_t<T>, double>, double, float>;

/// Rows of logits: [rows, columns] with a distance between rows, so that a part of the columns of a
/// larger buffer is a view too.
template <element T>
struct matrix_view {
  using element_type = T;
  using value_type = std::remove_const_t<T>;

  T* data = nullptr;
  offset_t rows = 0;
  offset_t columns = 0;
  offset_t stride = 0;  ///< elements from one row to the next

  constexpr matrix_view() = default;
  /// \throws invalid_input for a size that is negative, a size or stride above max_tokens, rows that
  /// overlap, or more bytes than max_view_bytes.
  constexpr matrix_view(T* pointer, offset_t row_count, offset_t column_count, offset_t row_stride)
      : data(pointer), rows(row_count), columns(column_count), stride(row_stride) {
    detail::require_size("rows", rows);
    detail::require_size("columns", columns);
    if (stride < columns) {
      reject("row stride", stride,
             "it must be at least " + std::to_string(columns) + ", the columns of a row");
    }
    detail::require_size("row stride", stride);
    detail::require_elements<T>("rows * row stride", rows, stride);
  }
  /// Dense rows.
  constexpr matrix_view(T* pointer, offset_t row_count, offset_t column_count)
      : matrix_view(pointer, row_count, column_count, column_count) {}
  /// Packed rows, whose payload are the columns.
  constexpr matrix_view(const row_view<T>& packed)
      : matrix_view(packed.data, packed.rows, packed.payload) {}
  /// A view that only reads, of one that may write.
  template <class U>
    requires(!std::same_as<U, T> && std::same_as<const U, T>)
  constexpr matrix_view(const matrix_view<U>& other)
      : matrix_view(other.data, other.rows, other.columns, other.stride) {}

  SEQPACK_HD constexpr T* at(offset_t row) const noexcept { return data + row * stride; }

  /// The rows [first, first + count).
  constexpr matrix_view part(offset_t first, offset_t count) const {
    return {data == nullptr ? nullptr : at(first), count, columns, stride};
  }
  /// The same rows with everything up to the next one: stride columns.
  constexpr matrix_view whole_rows() const { return {data, rows, stride, stride}; }

  footprint touched() const noexcept {
    if (rows == 0 || columns == 0) return {};
    constexpr auto size = static_cast<offset_t>(sizeof(T));
    footprint bytes = bytes_of(data, (rows - 1) * stride + columns);
    if (rows > 1) {
      bytes.stride = stride * size;
      bytes.piece = columns * size;
    }
    return bytes;
  }
};

template <element T>
matrix_view(T*, offset_t, offset_t) -> matrix_view<T>;
template <element T>
matrix_view(T*, offset_t, offset_t, offset_t) -> matrix_view<T>;
template <element T>
matrix_view(row_view<T>) -> matrix_view<T>;

/// The columns [first, last) of a vocabulary of `total` tokens: what one tensor-parallel rank
/// holds. Shards may be uneven, also empty.
struct column_range {
  offset_t first = 0;
  offset_t last = 0;
  offset_t total = 0;

  constexpr column_range() = default;
  constexpr column_range(offset_t begin, offset_t end, offset_t vocabulary)
      : first(begin), last(end), total(vocabulary) {}
  /// The whole vocabulary.
  constexpr explicit column_range(offset_t vocabulary) : column_range(0, vocabulary, vocabulary) {}

  SEQPACK_HD constexpr offset_t size() const noexcept { return last - first; }
  SEQPACK_HD constexpr bool contains(offset_t column) const noexcept {
    return column >= first && column < last;
  }
  friend constexpr bool operator==(const column_range&, const column_range&) = default;
};

}  // namespace seqpack
