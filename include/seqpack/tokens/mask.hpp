/// \file
/// Lengths and start columns of a padded batch, from its attention mask.
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/move/detail/checks.hpp"

namespace seqpack {

namespace detail::masks {

struct row_extent {
  offset_t start;
  offset_t length;
};

template <class M, std::integral Length, std::integral Start>
struct mask_operation {
  batch_view<M> mask;
  row_view<Length> lengths;
  row_view<Start> starts;

  offset_t rows() const noexcept { return mask.batch(); }
  offset_t row_bytes() const noexcept { return mask.width(); }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  /// Where the real tokens of a row begin, and how many there are: -1 where they have gaps, or where
  /// an entry is neither 0 nor 1, as those of segment ids are.
  SEQPACK_HD row_extent extent_of(offset_t b) const {
    offset_t start = -1;
    offset_t end = 0;
    offset_t count = 0;
    for (offset_t s = 0; s < mask.width(); ++s) {
      const M entry = *mask.at(b, s);
      if (!is_flag(entry)) return {max_of(start, 0), -1};
      if (!static_cast<bool>(entry)) continue;
      if (start < 0) start = s;
      end = s + 1;
      ++count;
    }
    if (start < 0) return {0, 0};
    return {start, end - start == count ? count : -1};
  }
  SEQPACK_HD static bool is_flag(const M& entry) {
    return !static_cast<bool>(entry) || entry == static_cast<M>(1);
  }
  /// Throws for a row whose length is -1.
  [[noreturn]] void refuse(offset_t b) const {
    const std::string row = "[" + std::to_string(b) + "]";
    for (offset_t s = 0; s < mask.width(); ++s) {
      if (is_flag(*mask.at(b, s))) continue;
      reject({"mask", row, "[", s, "]"}, text_of(*mask.at(b, s)),
             "a mask holds 0 and 1; ids that tell documents of a row apart are segment ids");
    }
    reject({"mask row ", b}, "with gaps", "its real tokens must be contiguous");
  }
  static std::string text_of(const M& entry) {
    if constexpr (std::is_arithmetic_v<std::remove_const_t<M>>) {
      return std::to_string(entry);
    } else {
      return "neither";
    }
  }
  SEQPACK_HD void operator()(offset_t b) const {
    const row_extent row = extent_of(b);
    *starts.at(b) = static_cast<Start>(row.start);
    *lengths.at(b) = static_cast<Length>(row.length);
  }
};

}  // namespace detail::masks

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
  const detail::masks::mask_operation<M, Length, Start> operation{mask, length_row, start_row};
  if constexpr (host_executor<E>) {
    for (offset_t b = 0; b < mask.batch(); ++b) {
      if (operation.extent_of(b).length < 0) operation.refuse(b);
    }
  }
  execute(where, operation);
}

}  // namespace seqpack
