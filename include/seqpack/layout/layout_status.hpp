/// \file
/// Why lengths or bounds were refused, and the sizes of a layout, in a form that device memory holds.
#pragma once

#include <cstdint>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// Why lengths or bounds were refused.
enum class layout_error : std::int32_t {
  none,
  negative_length,           ///< a length is below 0
  above_width,               ///< a length is above the width of the batch
  above_range,               ///< a length does not fit the type of cu_seqlens
  not_divisible,             ///< the sharding does not divide a padded length
  sum_above_range,           ///< the sum of the padded lengths does not fit the type of cu_seqlens
  total_above_range,         ///< the total does not fit it
  content_above_total,       ///< the padded lengths sum to more than the fixed total
  nobody_absorbs,            ///< there is a tail and no sequence to absorb it
  above_max_seqlen,          ///< a padded length is above the bound that the caller gave
  count_out_of_range,        ///< the number of sequences is below 0 or above the capacity
  order_out_of_range,        ///< an entry of the order is not a sequence of the batch
  order_repeats,             ///< an entry of the order occurs twice
  cu_first_not_zero,         ///< adopted cu_seqlens do not start at 0
  cu_decreases,              ///< adopted cu_seqlens decrease
  cu_padded_first_not_zero,  ///< adopted cu_seqlens_padded do not start at 0
  cu_padded_decreases,       ///< adopted cu_seqlens_padded decrease
  real_above_padded,         ///< an adopted real length is above its padded one
  total_differs,             ///< the last adopted bound is not the total
  total_not_divisible,       ///< the sharding cuts the whole row, and does not divide its total
  label_refused              ///< a token id is no label of the label's type or of the vocabulary
};

/// What was refused: the entry (a slot, the ghost, or -1 for none), its value, and the limit that
/// it broke.
struct layout_status {
  static constexpr offset_t ghost = -2;

  layout_error error = layout_error::none;
  offset_t entry = -1;
  offset_t value = 0;
  offset_t limit = 0;
  offset_t column = -1;  ///< with a sequence as the entry: the token

  SEQPACK_HD constexpr bool ok() const noexcept { return error == layout_error::none; }
};

/// All sizes of a layout, in tokens, and what was refused.
struct layout_sizes {
  offset_t sequences = 0;       ///< packed sequences, which is the number of slots
  offset_t segments = 0;        ///< slots and the ghost
  offset_t real = 0;            ///< real tokens
  offset_t content = 0;         ///< the padded lengths together
  offset_t total = 0;           ///< T
  offset_t longest = 0;         ///< the longest real length
  offset_t longest_padded = 0;  ///< the longest padded length
  layout_status status{};
};

/// What building a layout on a device leaves there besides the arrays.
struct device_summary {
  layout_sizes sizes{};
  /// A slot that was found to have the sequence of another one, and that sequence, in the high and
  /// the low 32 bits; all bits set: none was. Of a sequence that three slots have, either later one
  /// may be named.
  std::uint64_t repeated = no_repetition;

  static constexpr std::uint64_t no_repetition = ~std::uint64_t{0};

  SEQPACK_HD layout_status status() const noexcept {
    if (!sizes.status.ok() || repeated == no_repetition) return sizes.status;
    return {layout_error::order_repeats, static_cast<offset_t>(repeated >> 32),
            static_cast<offset_t>(repeated & 0xFFFFFFFFU), 0};
  }
};

}  // namespace seqpack
