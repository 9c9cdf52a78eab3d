/// \file
/// Checks of a temperature, and the pass that divides logits by it.
// For the folders above too.
#pragma once

#include <cmath>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/text.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/team.hpp"
#include "seqpack/logprob/logits.hpp"

namespace seqpack::detail {

/// \returns 1 / temperature
/// \throws invalid_input unless both are finite and the temperature is positive.
template <class C = double>
C reciprocal(double temperature) {
  if (!(temperature > 0) || std::isinf(temperature)) {
    reject("temperature", text_of(temperature), "it must be finite and above 0");
  }
  const auto result = static_cast<C>(1 / temperature);
  if (std::isinf(result) || result == 0) {
    reject("temperature", text_of(temperature), "its reciprocal must be finite and not 0");
  }
  return result;
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
  template <team Team>
  SEQPACK_HD void operator()(const Team& team, offset_t row) const {
    team.rewrite_row(logits.at(row), logits.at(row), logits.columns,
                     [this](offset_t, int, const T& x) { return scaled(x); });
  }

 private:
  SEQPACK_HD T scaled(const T& x) const {
    return static_cast<T>(static_cast<compute_type<T>>(x) * factor);
  }
};

}  // namespace seqpack::detail
