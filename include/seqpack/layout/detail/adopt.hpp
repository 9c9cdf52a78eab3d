/// \file
/// What bounds and position ids that another system made must satisfy.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/extent.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/detail/bounds.hpp"
#include "seqpack/layout/detail/build.hpp"
#include "seqpack/layout/detail/status.hpp"
#include "seqpack/layout/layout_status.hpp"

namespace seqpack::detail {

/// Copies bounds after checking what can be checked of one array.
template <layout_index Index, class Bounds>
std::vector<Index> checked_bounds(Bounds&& bounds, const char* name, layout_error decreases) {
  std::vector<Index> result;
  offset_t previous = 0;
  for (const auto entry : bounds) {
    const offset_t value = to_offset(entry);
    const auto index = static_cast<offset_t>(result.size());
    if (index == 0 && value != 0) {
      reject(entry_name(name, 0), entry, "the first entry must be 0");
    }
    if (value < previous) throw_status({decreases, index, value, previous}, "");
    if (value > max_total<Index>) {
      throw_status({layout_error::above_range, index, value, max_total<Index>},
                   entry_name(name, index), std::to_string(entry));
    }
    result.push_back(static_cast<Index>(value));
    previous = value;
  }
  if (result.empty()) {
    reject({"size of ", name}, 0, "it must have at least 1 entry");
  }
  return result;
}

/// Checks the sequences of adopted bounds, and finds the longest.
template <layout_index Index>
void require_sequences(const std::vector<Index>& cu, const std::vector<Index>& cu_padded,
                       const bounds_rules<Index, extent<>>& rules, layout_sizes& sizes) {
  for (std::size_t k = 0; k + 1 < cu.size(); ++k) {
    const auto slot = static_cast<offset_t>(k);
    const offset_t real = cu[k + 1] - cu[k];
    const offset_t padded = cu_padded[k + 1] - cu_padded[k];
    const layout_status status = rules.check_adopted(slot, real, padded);
    if (!status.ok()) throw_status(status, error_text{"sequence ", k}.joined());
    if (slot == sizes.sequences && real != 0) {
      reject("real length of the ghost sequence", real, "it must be 0");
    }
    sizes.longest = max_of(sizes.longest, real);
    sizes.longest_padded = max_of(sizes.longest_padded, padded);
  }
}

/// \throws invalid_input for a claim that is less than what the bounds have.
inline void require_max_seqlen(offset_t claimed, const layout_sizes& sizes) {
  if (claimed != dynamic && sizes.longest_padded > claimed) {
    reject("max_seqlen", claimed,
           {"it must be at least ", sizes.longest_padded,
            ", the longest padded length of the bounds"});
  }
}

inline void require_entries(const char* name, std::size_t size, offset_t expected) {
  if (static_cast<offset_t>(size) != expected) {
    reject({"number of entries of ", name}, static_cast<offset_t>(size),
           {"it must be ", expected, ", one more than there are sequences"});
  }
}

/// \throws invalid_input for a number that no layout has.
template <layout_index Index, class Options>
void require_options(const Options& options) {
  const auto require = [](const char* name, offset_t value) {
    if (value == dynamic || (value >= 0 && value <= max_total<Index>)) return;
    reject(name, value, {"it must be from 0 to ", max_total<Index>});
  };
  require("number of sequences", options.sequences);
  require("max_seqlen", options.max_seqlen);
  require("batch", options.batch);
  require("tail", options.tail);
}

/// Checks bounds that were copied, and everything that the options say of them.
/// \param options adopt_options
template <layout_index Index, class Options>
made_layout<Index> adopt(std::vector<Index> cu, std::vector<Index> cu_padded, offset_t total,
                         const bounds_rules<Index, extent<>>& rules, const Options& options) {
  const auto entries = static_cast<offset_t>(cu.size());
  if (options.sequences != dynamic) {
    require_entries("cu_seqlens", cu.size(), options.sequences + options.ghost + 1);
  }
  require_entries("cu_seqlens_padded", cu_padded.size(), entries);
  if (options.ghost && entries < 2) {
    reject("number of entries of cu_seqlens", entries, "a ghost needs at least 2");
  }
  if (cu_padded.back() != total) {
    throw_status({layout_error::total_differs, entries - 1, cu_padded.back(), total}, "");
  }

  layout_sizes sizes{.sequences = entries - 1 - options.ghost,
                     .segments = entries - 1,
                     .real = cu.back(),
                     .total = total};
  require_sequences(cu, cu_padded, rules, sizes);
  const layout_status divided = rules.check_total(total);
  if (!divided.ok()) throw_status(divided, "");
  require_max_seqlen(options.max_seqlen, sizes);

  const offset_t batch = options.batch == dynamic ? sizes.sequences : options.batch;
  const std::size_t slots = options.order ? options.order.size() : 0;
  if (options.order && static_cast<offset_t>(slots) != sizes.sequences) {
    reject("size of order", static_cast<offset_t>(slots),
           {"it must be ", sizes.sequences, ", the number of sequences"});
  }
  if (!options.order && batch != sizes.sequences) {
    reject("batch", batch,
           {"without an order it must be ", sizes.sequences, ", the number of sequences"});
  }
  host_arrays<Index> arrays{std::move(cu), std::move(cu_padded), {}, {}};
  if (options.order) {
    arrays.order.resize(slots);
    arrays.slot_of.resize(static_cast<std::size_t>(batch));
    require_order(options.order, batch);
    write_order<Index>(options.order, arrays.order, arrays.slot_of);
  }
  return {sizes, batch, std::move(arrays)};
}

/// What position ids tell of a row.
struct row_starts {
  std::vector<offset_t> starts;  ///< rows of the zeros
  offset_t total = 0;
  offset_t first_bad = max_tokens;  ///< the first id that neither is 0 nor counts on
  std::string bad_value;
  offset_t expected = 0;  ///< in its place, beside 0

  void require_good_before(offset_t end) const {
    if (first_bad >= end) return;
    reject(entry_name("position_ids", first_bad), bad_value,
           first_bad == 0
               ? std::string("the first must be 0")
               : "it must be 0 or " + std::to_string(expected) + ", one more than the last");
  }
};

template <class Ids>
row_starts find_starts(Ids&& position_ids) {
  row_starts found;
  offset_t expected = 0;
  for (const auto entry : position_ids) {
    const offset_t id = to_bounded_offset(entry);
    if (id == 0) {
      found.starts.push_back(found.total);
    } else if (id != expected && found.first_bad == max_tokens) {
      found.first_bad = found.total;
      found.bad_value = std::to_string(entry);
      found.expected = expected;
    }
    expected = id + 1;
    ++found.total;
  }
  return found;
}

}  // namespace seqpack::detail
