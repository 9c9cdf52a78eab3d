/// \file
/// A layout whose arrays are there.
// For the folders above too.
#pragma once

#include "seqpack/core/error.hpp"

namespace seqpack::detail {

/// \throws invalid_input for a layout of tokens without arrays.
template <class View>
void require_layout(const View& view) {
  if (view.total > 0 && (view.cu == nullptr || view.cu_padded == nullptr)) {
    reject("the layout's cu_seqlens", "null", "a layout of tokens needs its arrays");
  }
}

}  // namespace seqpack::detail
