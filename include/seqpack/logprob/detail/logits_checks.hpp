/// \file
/// Checks of logits, of the columns that they hold, and of their gradients.
// For the folders above too.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/logprob/logits.hpp"

namespace seqpack::detail {

/// \throws invalid_input unless the range is one of its vocabulary.
inline void require_column_range(const column_range& columns) {
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
inline void require_all_columns(const column_range& columns) {
  if (columns.first == 0 && columns.last == columns.total) return;
  reject("vocabulary columns",
         "[" + std::to_string(columns.first) + ", " + std::to_string(columns.last) + ")",
         "a rank that shares them with nobody must hold all " + std::to_string(columns.total));
}

/// \throws invalid_input for logits that are null or misaligned.
template <class T>
void require_logits(const matrix_view<T>& logits) {
  require_memory(alone, "logits", logits.data, logits.rows * logits.columns);
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
  require_equal(alone, "gradient rows", gradient.rows, logits.rows, "as the logits have");
  require_equal(alone, "gradient columns", gradient.columns, logits.columns, "as the logits have");
  require_memory(alone, "gradient", gradient.data,
                 gradient.rows * (padded_columns ? gradient.stride : gradient.columns));
  const bool in_place = std::same_as<std::remove_const_t<T>, G> &&
                        static_cast<const void*>(gradient.data) == logits.data &&
                        gradient.stride == logits.stride;
  if (in_place) return;
  regions<1, 1> memory;
  memory.read(logits.touched(), alone, "logits");
  memory.write(written_bytes(gradient, padded_columns), alone, "gradient");
  memory.require_apart();
}

}  // namespace seqpack::detail
