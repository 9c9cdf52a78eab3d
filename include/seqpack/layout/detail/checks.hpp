/// \file
/// What calls check of a layout and of the width of its batch.
// For the folders above too.
#pragma once

#include <string>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/policy/compatibility.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack::detail {

/// \throws invalid_input for a layout of tokens without arrays.
template <class View>
void require_layout(const View& view) {
  if (view.total > 0 && (view.cu == nullptr || view.cu_padded == nullptr)) {
    reject("the layout's cu_seqlens", "null", "a layout of tokens needs its arrays");
  }
}

/// \throws invalid_input for a sharding that cuts the whole row.
template <context_parallel_policy ContextParallel>
constexpr void require_cuts_sequences(const ContextParallel& cp, const char* why) {
  static_assert(
      !known_to_cut_row<ContextParallel>(),
      "row_contiguous cuts the whole packed row: what is not packed, and a part of a row, "
      "is cut sequence by sequence");
  if (cp.cuts_row()) reject("sharding", "of the whole row", why);
}

/// \throws invalid_input for a width that no batch has.
constexpr void require_width(offset_t width) {
  if (width < 0 || width > max_tokens) {
    reject("width", width, {"it must be from 0 to ", max_tokens});
  }
}

}  // namespace seqpack::detail
