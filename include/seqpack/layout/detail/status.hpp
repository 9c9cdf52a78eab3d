/// \file
/// A status word that is set on the device, and the exception that the host makes of it.
// For the folders above too.
#pragma once

#include <string>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/layout/layout_status.hpp"

namespace seqpack::detail {

/// Sets a status that is still ok. Of several threads of a device one is heard.
SEQPACK_HD inline void refuse(layout_status* status, const layout_status& what) {
  static_assert(sizeof(layout_error) == sizeof(int));
#if defined(__CUDA_ARCH__)
  if (atomicCAS(reinterpret_cast<int*>(&status->error), 0, static_cast<int>(what.error)) != 0) {
    return;
  }
  status->entry = what.entry;
  status->value = what.value;
  status->limit = what.limit;
  status->column = what.column;
#else
  if (status != nullptr && status->ok()) *status = what;
#endif
}

/// How an error is described: what the entry is called, `before` the limit, and `after` it; without
/// `after` no limit is named.
struct status_text {
  enum class entry_kind : unsigned char { none, sequence, index };

  layout_error error;
  entry_kind kind;  ///< what follows `entry`: nothing, the name of the sequence, or "[index]"
  const char* entry;
  const char* before;
  const char* after;
};

inline constexpr const char* of_index_type = ", the range of the type of cu_seqlens";
inline constexpr status_text status_texts[] = {
    {layout_error::negative_length, status_text::entry_kind::sequence, "",
     "a length must be at least 0", nullptr},
    {layout_error::above_width, status_text::entry_kind::sequence, "", "a length must be at most ",
     ", the width of the batch"},
    {layout_error::above_range, status_text::entry_kind::sequence, "", "it must be at most ",
     of_index_type},
    {layout_error::not_divisible, status_text::entry_kind::sequence, "padded length of ",
     "it must be a multiple of ", ", what the sharding divides by"},
    {layout_error::sum_above_range, status_text::entry_kind::none, "sum of the padded lengths",
     "it must be at most ", of_index_type},
    {layout_error::total_above_range, status_text::entry_kind::none, "total", "it must be at most ",
     of_index_type},
    {layout_error::content_above_total, status_text::entry_kind::none, "content",
     "the padded lengths must sum to at most ", ", the fixed total"},
    {layout_error::nobody_absorbs, status_text::entry_kind::none, "number of sequences",
     "it must be at least 1, so that one can absorb the tail of ", " tokens (or use ghost_tail)"},
    {layout_error::above_max_seqlen, status_text::entry_kind::none, "longest padded length",
     "it must be at most ", ", the given max_seqlen"},
    {layout_error::count_out_of_range, status_text::entry_kind::none, "number of sequences",
     "it must be from 0 to ", ", the capacity"},
    {layout_error::order_out_of_range, status_text::entry_kind::index, "order",
     "it must be a sequence of the batch, from 0 to ", ""},
    {layout_error::order_repeats, status_text::entry_kind::index, "order",
     "each sequence may be packed at most once", nullptr},
    {layout_error::cu_first_not_zero, status_text::entry_kind::index, "cu_seqlens",
     "the first entry must be 0", nullptr},
    {layout_error::cu_decreases, status_text::entry_kind::index, "cu_seqlens",
     "entries must not decrease, and the one before is ", ""},
    {layout_error::cu_padded_first_not_zero, status_text::entry_kind::index, "cu_seqlens_padded",
     "the first entry must be 0", nullptr},
    {layout_error::cu_padded_decreases, status_text::entry_kind::index, "cu_seqlens_padded",
     "entries must not decrease, and the one before is ", ""},
    {layout_error::real_above_padded, status_text::entry_kind::sequence, "real length of ",
     "it must be at most ", ", its padded length"},
    {layout_error::total_differs, status_text::entry_kind::index, "cu_seqlens_padded",
     "the last entry must be ", ", the tokens of the packed row"},
    {layout_error::total_not_divisible, status_text::entry_kind::none, "total",
     "it must be a multiple of ",
     ", what the sharding divides the row by (total_multiple_of pads it)"},
};

/// Throws the invalid_input that describes a status. `sequence` is what the entry's sequence is
/// called, `length` the text of its length, for one that an offset cannot hold.
/// \pre !status.ok()
[[noreturn, gnu::noinline, gnu::cold]] inline void throw_status(const layout_status& status,
                                                                const std::string& sequence,
                                                                const std::string& length = {}) {
  if (status.error == layout_error::label_refused) {
    reject({"tokens[", status.entry, "][", status.column, "]"}, status.value,
           {status.value > status.limit ? "a label must be at most " : "a label must be at least ",
            status.limit});
  }
  for (const status_text& text : status_texts) {
    if (text.error != status.error) continue;
    std::string entry = text.entry;
    if (text.kind == status_text::entry_kind::index) entry = entry_name(text.entry, status.entry);
    if (text.kind == status_text::entry_kind::sequence) {
      entry += status.entry == layout_status::ghost ? std::string("the ghost sequence") : sequence;
    }
    const bool of_length = entry == sequence && !length.empty();
    const std::string value = of_length ? length : std::to_string(status.value);
    if (text.after == nullptr) reject(entry, value, text.before);
    reject(entry, value, {text.before, status.limit, text.after});
  }
  reject("status", static_cast<offset_t>(status.error), "unknown");
}

}  // namespace seqpack::detail
