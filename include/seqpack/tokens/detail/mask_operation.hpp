/// \file
/// Reads the rows of a mask.
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

namespace seqpack::detail {

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

}  // namespace seqpack::detail
