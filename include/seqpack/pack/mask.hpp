/// \file
/// Lengths and start columns of a padded batch, from its attention mask.
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/pack/field.hpp"

namespace seqpack {

namespace masks {

template <class M, std::integral Length, std::integral Start>
struct mask_operation {
  batch_view<M> mask;
  row_view<Length> lengths;
  row_view<Start> starts;

  offset_t rows() const noexcept { return mask.batch(); }
  offset_t row_bytes() const noexcept { return mask.width(); }
  offset_t units() const noexcept { return mask.batch(); }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t b) const {
    offset_t start = -1;
    offset_t end = 0;
    offset_t count = 0;
    for (offset_t s = 0; s < mask.width(); ++s) {
      if (!static_cast<bool>(*mask.at(b, s))) continue;
      if (start < 0) start = s;
      end = s + 1;
      ++count;
    }
    const bool whole = start < 0 || end - start == count;
    *starts.at(b) = static_cast<Start>(start < 0 ? 0 : start);
    *lengths.at(b) = static_cast<Length>(whole ? count : -1);
  }
};

}  // namespace masks

/// Reads a mask [B, S] whose non-zero entries mark the real tokens: writes each row's number of
/// real tokens and the column of the first (0 for an empty row), for make_layout and
/// left_padded_view.
///
/// The real tokens of a row must be contiguous, wherever the padding is. On a host executor a row
/// where they are not throws invalid_input after the arrays are written; on a device, where nothing
/// can be thrown, its length is -1, which every layout refuses. \throws invalid_input for arrays of
/// the wrong size, before anything is written. Allocates nothing, does not synchronise; one launch
/// on a device. O(B * S).
template <executor E, class M, class Lengths, class Starts>
void lengths_from_mask(const E& where, const batch_view<M>& mask, Lengths&& lengths,
                       Starts&& starts) {
  const row_view length_row(lengths);
  const row_view start_row(starts);
  fields::require_equal(0, "mask payload", mask.payload(), 1, "one entry per token");
  fields::require_equal(0, "lengths", length_row.rows, mask.batch(), "the rows of the mask");
  fields::require_equal(0, "starts", start_row.rows, mask.batch(), "the rows of the mask");
  using Length = typename std::remove_const_t<decltype(length_row)>::element_type;
  using Start = typename std::remove_const_t<decltype(start_row)>::element_type;
  static_assert(std::signed_integral<Length>, "a row that is refused has length -1");
  fields::require_range<Length>(0, "largest length", mask.width());
  fields::require_range<Start>(0, "largest start", max_of(mask.width() - 1, 0));
  execute(where, masks::mask_operation<M, Length, Start>{mask, length_row, start_row});
  if constexpr (host_executor<E>) {
    for (offset_t b = 0; b < mask.batch(); ++b) {
      if (*length_row.at(b) < 0) {
        reject("mask row " + std::to_string(b), "with gaps", "its real tokens must be contiguous");
      }
    }
  }
}

}  // namespace seqpack
