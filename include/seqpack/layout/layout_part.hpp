/// \file
/// layout_part: some sequences of a layout, as a layout.
#pragma once

#include <string>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/layout/adopt.hpp"
#include "seqpack/layout/layout.hpp"

namespace seqpack {

/// The slots [first, first + count) of a layout as a layout of their own, whose rows are those from
/// `layout.view().shard_begin(first)` on in every shard, and from `begin_of(first)` in the full
/// row.
///
/// \returns a layout of `count` sequences, in the order of the slots, without a ghost
/// \throws invalid_input for slots that do not exist.
///
/// Allocates the arrays. O(count).
template <class P, class C, class Index>
packed_layout<no_padding, C, Index> layout_part(const packed_layout<P, C, Index>& layout,
                                                offset_t first, offset_t count) {
  const auto view = layout.view();
  if (first < 0 || first > view.sequences) {
    reject("first slot", first, "it must be from 0 to " + std::to_string(view.sequences));
  }
  if (count < 0 || count > view.sequences - first) {
    reject("number of slots", count,
           "it must be from 0 to " + std::to_string(view.sequences - first) +
               ", those of the layout from slot " + std::to_string(first) + " on");
  }
  std::vector<offset_t> cu{0};
  std::vector<offset_t> cu_padded{0};
  for (offset_t slot = first; slot < first + count; ++slot) {
    cu.push_back(cu.back() + view.length(slot));
    cu_padded.push_back(view.begin_of(slot + 1) - view.begin_of(first));
  }
  return from_cu_seqlens<Index>(cu, cu_padded, cu_padded.back(), view.cp);
}

}  // namespace seqpack
