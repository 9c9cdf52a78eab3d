/// \file
/// unpacked_layout: a batch as it is, as a layout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/layout/adopt.hpp"
#include "seqpack/layout/layout.hpp"

namespace seqpack {

/// The layout of a batch that is not packed: every sequence of the batch takes all of its width. What is
/// true of packed rows is true of it: shards, labels, log-probabilities and losses need no second
/// form.
///
/// \param lengths real tokens of each row
/// \param width S; what the sharding divides by must divide it
/// \throws invalid_input as from_cu_seqlens does.
template <layout_index Index = std::int32_t, integer_range Lengths,
          context_parallel_policy C = no_context_parallel>
packed_layout<no_padding, C, Index> unpacked_layout(const Lengths& lengths, offset_t width,
                                                    const C& cp = {}) {
  detail::require_width(width);
  std::vector<offset_t> cu{0};
  std::vector<offset_t> cu_padded{0};
  for (const auto length : lengths) {
    const auto k = static_cast<offset_t>(cu.size()) - 1;
    const offset_t real = detail::to_offset(length);
    if (real < 0 || real > width) {
      reject(entry_name("lengths", k), std::to_string(length),
             "it must be from 0 to " + std::to_string(width) + ", the width of the batch");
    }
    const offset_t end = cu_padded.back() + width;
    if (end > max_total<Index>) {
      throw_status({layout_error::total_above_range, -1, end, max_total<Index>}, "");
    }
    cu.push_back(cu.back() + real);
    cu_padded.push_back(end);
  }
  return from_cu_seqlens<Index>(cu, cu_padded, cu_padded.back(), cp, {.width = width});
}

}  // namespace seqpack
