/// \file
/// Views of logits, and which columns of the vocabulary they hold.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/detail/text.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/team.hpp"
#include "seqpack/logprob/detail/softmax.hpp"

namespace seqpack {

/// What logits can be made of: float, double, and 16-bit types that convert to float and back, such
/// as half and bfloat16. Arithmetic is in float, of double in double.
template <class T>
concept logit = element<T> && !std::integral<T> && requires(const T& x, float f) {
  static_cast<float>(x);
  static_cast<std::remove_const_t<T>>(f);
};

/// What arithmetic on logits of type T is done in: float, or double for double.
template <logit T>
using compute_type = detail::softmax::compute_t<T>;

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

namespace detail::logits_checks {

/// \throws invalid_input unless the range is one of its vocabulary.
inline void require_range(const column_range& columns) {
  if (columns.total > max_tokens) {
    reject("vocabulary", columns.total,
           "it must have at most " + std::to_string(max_tokens) + " columns");
  }
  if (columns.first < 0 || columns.first > columns.last || columns.last > columns.total) {
    reject("vocabulary columns",
           "[" + std::to_string(columns.first) + ", " + std::to_string(columns.last) + ")",
           "they must be within [0, " + std::to_string(columns.total) + ")");
  }
}

/// \throws invalid_input unless the range is all of its vocabulary.
inline void require_all(const column_range& columns) {
  if (columns.first == 0 && columns.last == columns.total) return;
  reject("vocabulary columns",
         "[" + std::to_string(columns.first) + ", " + std::to_string(columns.last) + ")",
         "a rank that shares them with nobody must hold all " + std::to_string(columns.total));
}

/// \returns 1 / temperature
/// \throws invalid_input unless both are finite and the temperature is positive.
template <class C = double>
C reciprocal(double temperature) {
  if (!(temperature > 0) || std::isinf(temperature)) {
    reject("temperature", detail::text_of(temperature), "it must be finite and above 0");
  }
  const auto result = static_cast<C>(1 / temperature);
  if (std::isinf(result) || result == 0) {
    reject("temperature", detail::text_of(temperature), "its reciprocal must be finite and not 0");
  }
  return result;
}

/// \throws invalid_input for logits that are null or misaligned.
template <class T>
void require_logits(const matrix_view<T>& logits) {
  detail::require_memory(detail::alone, "logits", logits.data, logits.rows * logits.columns);
}

/// What is written of a gradient: its columns or, with all between the rows, everything.
template <class G>
footprint written_bytes(const matrix_view<G>& gradient, bool padded_columns) {
  return padded_columns ? gradient.whole_rows().touched() : gradient.touched();
}

/// \throws invalid_input unless a gradient has the shape of its logits and is they themselves, the
/// same view, or apart from them.
template <class T, class G>
void require_gradient(const matrix_view<T>& logits, const matrix_view<G>& gradient,
                      bool padded_columns) {
  detail::require_equal(detail::alone, "gradient rows", gradient.rows, logits.rows,
                        "as the logits have");
  detail::require_equal(detail::alone, "gradient columns", gradient.columns, logits.columns,
                        "as the logits have");
  detail::require_memory(detail::alone, "gradient", gradient.data,
                         gradient.rows * (padded_columns ? gradient.stride : gradient.columns));
  const bool in_place = std::same_as<std::remove_const_t<T>, G> &&
                        static_cast<const void*>(gradient.data) == logits.data &&
                        gradient.stride == logits.stride;
  if (in_place) return;
  detail::regions<1, 1> memory;
  memory.read(logits.touched(), detail::alone, "logits");
  memory.write(written_bytes(gradient, padded_columns), detail::alone, "gradient");
  memory.require_apart();
}

/// Every element of a matrix times a number.
template <class T>
struct scale_operation {
  matrix_view<T> logits;
  compute_type<T> factor;

  offset_t rows() const noexcept { return logits.rows; }
  offset_t row_bytes() const noexcept { return logits.columns * offset_t{sizeof(T)}; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) {
      T* const row = logits.at(first);
      for (offset_t v = 0; v < logits.columns; ++v) row[v] = scaled(row[v]);
    }
  }
  offset_t row_work() const noexcept { return row_bytes(); }
  template <team Group>
  SEQPACK_HD void operator()(const Group& group, offset_t row) const {
    group.rewrite_row(logits.at(row), logits.at(row), logits.columns,
                      [this](offset_t, int, const T& x) { return scaled(x); });
  }

 private:
  SEQPACK_HD T scaled(const T& x) const {
    return static_cast<T>(static_cast<compute_type<T>>(x) * factor);
  }
};

}  // namespace detail::logits_checks

/// Divides logits by a temperature, in place: only the elements of the view change, and with 1 none
/// does. Losses and log-probabilities need no such pass; they take a temperature themselves.
/// \throws invalid_input unless the temperature is finite and positive, for logits that are null or
/// misaligned; before anything is written.
///
/// No allocation, no synchronisation, one launch. One read and one write of the view.
template <executor E, logit T>
  requires(!std::is_const_v<T>)
void scale_logits(const E& where, const matrix_view<T>& logits, double temperature) {
  const auto factor = detail::logits_checks::reciprocal<compute_type<T>>(temperature);
  detail::logits_checks::require_logits(logits);
  if (temperature != 1) execute(where, detail::logits_checks::scale_operation<T>{logits, factor});
}

}  // namespace seqpack
