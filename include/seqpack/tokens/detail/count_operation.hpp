/// \file
/// Counts the real tokens of every slot in a shard.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/layout/place.hpp"

namespace seqpack::detail {

template <class View, class T>
struct count_operation {
  View view;
  shard at;
  row_view<T> out;

  offset_t rows() const noexcept { return out.rows; }
  offset_t row_bytes() const noexcept { return sizeof(T); }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  /// Calls the public real_tokens of this slot, which the view's namespace has.
  SEQPACK_HD void operator()(offset_t slot) const {
    *out.at(slot) = static_cast<T>(real_tokens(view, at, slot));
  }
};

}  // namespace seqpack::detail
