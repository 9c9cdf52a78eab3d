/// \file
/// Lengths and start columns of a padded batch, from its attention mask.
#pragma once

#include <concepts>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/tokens/detail/mask_operation.hpp"

namespace seqpack {

/// Reads a mask [B, S] of 0 and 1, where 1 marks the real tokens: writes each row's number of real
/// tokens and the column of the first (0 for an empty row), for make_layout and left_padded_view.
///
/// The real tokens of a row must be contiguous, wherever the padding is. On a host executor a row
/// where they are not, or with another entry than 0 and 1, throws invalid_input before anything is
/// written; on a device, where nothing can be thrown, its length is -1, which every layout refuses.
/// \throws invalid_input for arrays of the wrong size, before anything is written.
///
/// Allocates nothing, does not synchronise; one launch on a device. O(B * S).
template <executor E, class M, class Lengths, class Starts>
void lengths_from_mask(const E& where, const batch_view<M>& mask, Lengths&& lengths,
                       Starts&& starts) {
  const row_view length_row(lengths);
  const row_view start_row(starts);
  detail::require_equal(detail::alone, "mask payload", mask.payload(), 1, "one entry per token");
  detail::require_equal(detail::alone, "lengths", length_row.rows, mask.batch(),
                        "the rows of the mask");
  detail::require_equal(detail::alone, "starts", start_row.rows, mask.batch(),
                        "the rows of the mask");
  using Length = typename std::remove_const_t<decltype(length_row)>::element_type;
  using Start = typename std::remove_const_t<decltype(start_row)>::element_type;
  static_assert(std::signed_integral<Length>, "a row that is refused has length -1");
  detail::require_range<Length>(detail::alone, "largest length", mask.width());
  detail::require_range<Start>(detail::alone, "largest start", max_of(mask.width() - 1, 0));
  detail::require_memory(detail::alone, "mask", mask.data(), mask.positions());
  detail::require_memory(detail::alone, "lengths", length_row.data, length_row.rows);
  detail::require_memory(detail::alone, "starts", start_row.data, start_row.rows);
  detail::regions<1, 2> memory;
  memory.read(mask.touched(), detail::alone, "mask");
  memory.write(length_row.touched(), detail::alone, "lengths");
  memory.write(start_row.touched(), detail::alone, "starts");
  memory.require_apart();
  const detail::mask_operation<M, Length, Start> operation{mask, length_row, start_row};
  if constexpr (host_executor<E>) {
    for (offset_t b = 0; b < mask.batch(); ++b) {
      if (operation.extent_of(b).length < 0) operation.refuse(b);
    }
  }
  execute(where, operation);
}

}  // namespace seqpack
