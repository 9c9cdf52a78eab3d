/// \file
/// What fits a row: the capacity, and the rules by which a layout of the row will be made.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/detail/bounds.hpp"
#include "seqpack/layout/detail/status.hpp"
#include "seqpack/layout/layout_status.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack::detail {

/// The most sequences, pieces and rows that are planned at once: no layout of 32-bit indices has more.
inline constexpr offset_t most_planned = (offset_t{1} << 31) - 3;

/// What a row of a plan must satisfy. Lengths become padded ones, and rows are judged, by the rules of
/// make_layout itself.
template <class Rounding>
struct row_rules {
  bounds_rules<std::int64_t, Rounding> layout;
  offset_t capacity;      ///< as the caller has given it
  offset_t most_content;  ///< how many padded tokens of sequences that leaves

  constexpr offset_t padded(offset_t length) const noexcept { return layout.padded(length); }
  /// T of a row.
  constexpr offset_t total(offset_t content) const noexcept { return layout.total_for(content); }
};

/// \param capacity tokens; `dynamic`: the fixed total
/// \param name what the caller calls it
/// \throws invalid_input for policies that do not fit, and a capacity that is no number of tokens.
template <padding_policy P, context_parallel_policy C>
constexpr auto row_rules_of(offset_t capacity, const P& padding, const C& cp,
                            const char* name = "capacity") {
  // As on a device, one instantiation serves all paddings of the library: planning is much code.
  const auto rounding = rounding_on_device(padding);
  const auto layout = rules_of<std::int64_t>(rounding, padding, cp, max_tokens);
  if (capacity == dynamic) {
    if (!padding.has_fixed_total) {
      reject(name, "dynamic", "it must be given where the padding has no fixed_total");
    }
    capacity = padding.fixed_total();
  }
  if (capacity < 1 || capacity > max_tokens) {
    reject(name, capacity, {"it must be from 1 to ", max_tokens});
  }
  offset_t most_content = capacity;
  if (padding.has_fixed_total) {
    most_content = min_of(capacity, padding.fixed_total());
  } else {
    most_content -= remainder(capacity, padding.total_multiple());
    if (most_content == 0) {
      reject(name, capacity,
             {"it must be at least ", padding.total_multiple(), ", the multiple of a row"});
    }
  }
  return row_rules<std::remove_const_t<decltype(rounding)>>{layout, capacity, most_content};
}

/// The longest sequence whose padded length is at most `most`.
template <class Rounding>
constexpr offset_t longest_within(const row_rules<Rounding>& rules, offset_t most) {
  offset_t low = 0;
  offset_t high = most;  // a padded length is at least the length
  while (low < high) {
    const offset_t middle = high - (high - low) / 2;
    if (rules.padded(middle) <= most) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

/// Where a sequence that is cut ends: at most at `longest`, and so that the sharding divides the piece
/// if that can be.
template <class Rounding>
constexpr offset_t cut_within(const row_rules<Rounding>& rules, offset_t longest) {
  const fast_divisor& divisor = rules.layout.divisor;
  const offset_t beside = remainder(rules.padded(longest), divisor.value());
  if (beside == 0 || beside >= longest) return longest;
  return divisor.divides(rules.padded(longest - beside)) ? longest - beside : longest;
}

/// The lengths as numbers of 64 bits.
/// \param first the number of the first one, for errors
/// \throws invalid_input for a length that no layout takes, and for more than can be planned at once.
template <class Lengths, class Rounding>
constexpr std::vector<offset_t> lengths_of(Lengths&& lengths, const row_rules<Rounding>& rules,
                                           offset_t first = 0) {
  const auto require_count = [](offset_t count) {
    if (count > most_planned) {
      reject("number of sequences", count, {"it must be at most ", most_planned});
    }
  };
  std::vector<offset_t> result;
  if constexpr (std::ranges::sized_range<Lengths>) {
    require_count(to_offset(std::ranges::size(lengths)));
    result.reserve(static_cast<std::size_t>(std::ranges::size(lengths)));
  }
  for (const auto raw : lengths) {
    const auto k = static_cast<offset_t>(result.size());
    if constexpr (!std::ranges::sized_range<Lengths>) require_count(k + 1);
    const offset_t length = to_bounded_offset(raw);
    const layout_status status = rules.layout.check_length(k, length);
    if (!status.ok()) throw_status(status, entry_name("lengths", first + k), std::to_string(raw));
    result.push_back(length);
  }
  return result;
}

/// How a refusal of a row is told.
[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_row_layout(const layout_status& status,
                                                                     offset_t row,
                                                                     const std::string& sequence) {
  if (status.error == layout_error::nobody_absorbs) {
    reject({"number of sequences of row ", row}, 0,
           {"it must be at least 1, so that one can absorb the tail of ", status.limit,
            " tokens (or use ghost_tail)"});
  }
  if (status.error == layout_error::total_not_divisible) {
    reject({"tokens of row ", row}, status.value,
           {"they must be a multiple of ", status.limit,
            ", what the sharding divides the row by (total_multiple_of pads it)"});
  }
  if (status.entry == layout_status::ghost) {
    reject({"padded length of the ghost sequence of row ", row}, status.value,
           {"it must be a multiple of ", status.limit, ", what the sharding divides by"});
  }
  throw_status(status, sequence);
}

/// Refuses what make_layout would refuse of a row.
/// \param entries the row, numbers of `lengths`, which check_length has passed
/// \param name what they are numbers of, for errors
template <class Rounding>
constexpr void require_row_layout(const row_rules<Rounding>& rules, offset_t row,
                                  std::span<const offset_t> entries,
                                  std::span<const offset_t> lengths, const char* name) {
  const auto count = static_cast<offset_t>(entries.size());
  const bool each_divides = rules.layout.each_divides();
  length_sums sums{.sequences = count};
  for (offset_t k = 0; k < count; ++k) {
    const offset_t entry = entries[static_cast<std::size_t>(k)];
    const offset_t length = lengths[static_cast<std::size_t>(entry)];
    if (!each_divides) {
      const layout_status status = rules.layout.check(k, count, length);
      if (!status.ok()) refuse_row_layout(status, row, entry_name(name, entry));
    }
    sums.content = min_of(sums.content + rules.padded(length), saturated_sum);
    sums.longest = max_of(sums.longest, length);
    sums.last = length;
  }
  const layout_status status = rules.layout.finish(sums).status;
  if (status.ok()) return;
  refuse_row_layout(status, row, count == 0 ? std::string() : entry_name(name, entries.back()));
}

}  // namespace seqpack::detail
