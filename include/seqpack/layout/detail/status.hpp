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

/// Throws the invalid_input that describes a status. `sequence` is what the entry's sequence is
/// called, `length` the text of its length, for one that an offset cannot hold.
/// \pre !status.ok()
[[noreturn, gnu::noinline, gnu::cold]] inline void throw_status(const layout_status& status,
                                                                const std::string& sequence,
                                                                const std::string& length = {}) {
  const offset_t limit = status.limit;
  const std::string name =
      status.entry == layout_status::ghost ? std::string("the ghost sequence") : sequence;
  const auto refuse = [&](const error_text& entry, const error_text& requirement) {
    reject(entry, status.value, requirement);
  };
  const auto refuse_length = [&](const error_text& requirement) {
    if (length.empty()) refuse(name, requirement);
    reject(name, length, requirement);
  };
  switch (status.error) {
    case layout_error::negative_length: refuse_length("a length must be at least 0"); break;
    case layout_error::above_width:
      refuse_length({"a length must be at most ", limit, ", the width of the batch"});
      break;
    case layout_error::above_range:
      refuse_length({"it must be at most ", limit, ", the range of the type of cu_seqlens"});
      break;
    case layout_error::not_divisible:
      refuse({"padded length of ", name},
             {"it must be a multiple of ", limit, ", what the sharding divides by"});
      break;
    case layout_error::sum_above_range:
      refuse("sum of the padded lengths",
             {"it must be at most ", limit, ", the range of the type of cu_seqlens"});
      break;
    case layout_error::total_above_range:
      refuse("total", {"it must be at most ", limit, ", the range of the type of cu_seqlens"});
      break;
    case layout_error::content_above_total:
      refuse("content", {"the padded lengths must sum to at most ", limit, ", the fixed total"});
      break;
    case layout_error::nobody_absorbs:
      refuse("number of sequences", {"it must be at least 1, so that one can absorb the tail of ",
                                     limit, " tokens (or use ghost_tail)"});
      break;
    case layout_error::above_max_seqlen:
      refuse("longest padded length", {"it must be at most ", limit, ", the given max_seqlen"});
      break;
    case layout_error::count_out_of_range:
      refuse("number of sequences", {"it must be from 0 to ", limit, ", the capacity"});
      break;
    case layout_error::order_out_of_range:
      refuse(entry_name("order", status.entry),
             {"it must be a sequence of the batch, from 0 to ", limit});
      break;
    case layout_error::order_repeats:
      refuse(entry_name("order", status.entry), "each sequence may be packed at most once");
      break;
    case layout_error::cu_first_not_zero:
      refuse(entry_name("cu_seqlens", 0), "the first entry must be 0");
      break;
    case layout_error::cu_decreases:
      refuse(entry_name("cu_seqlens", status.entry),
             {"entries must not decrease, and the one before is ", limit});
      break;
    case layout_error::cu_padded_first_not_zero:
      refuse(entry_name("cu_seqlens_padded", 0), "the first entry must be 0");
      break;
    case layout_error::cu_padded_decreases:
      refuse(entry_name("cu_seqlens_padded", status.entry),
             {"entries must not decrease, and the one before is ", limit});
      break;
    case layout_error::real_above_padded:
      refuse({"real length of ", name}, {"it must be at most ", limit, ", its padded length"});
      break;
    case layout_error::total_differs:
      refuse(entry_name("cu_seqlens_padded", status.entry),
             {"the last entry must be ", limit, ", the tokens of the packed row"});
      break;
    case layout_error::label_refused:
      refuse(
          {"tokens[", status.entry, "][", status.column, "]"},
          {status.value > limit ? "a label must be at most " : "a label must be at least ", limit});
      break;
    case layout_error::none: break;
  }
  reject("status", static_cast<offset_t>(status.error), "unknown");
}

}  // namespace seqpack::detail
