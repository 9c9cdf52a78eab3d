/// \file
/// From lengths to the bounds of a packed row: the rules, the sizes and the two prefix sums. The
/// rules are shared by the host, which throws, and by the device, which sets a status word.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/policy/compatibility.hpp"

namespace seqpack {

namespace detail {

/// \throws invalid_input for a width that no batch has.
constexpr void require_width(offset_t width) {
  if (width < 0 || width > max_tokens) {
    reject("width", width, "it must be from 0 to " + std::to_string(max_tokens));
  }
}

}  // namespace detail

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
  const std::string limit = std::to_string(status.limit);
  const std::string name =
      status.entry == layout_status::ghost ? std::string("the ghost sequence") : sequence;
  const std::string value = std::to_string(status.value);
  const auto refuse = [&](const std::string& entry, const std::string& requirement) {
    reject(entry, value, requirement);
  };
  const auto refuse_length = [&](const std::string& requirement) {
    reject(name, length.empty() ? value : length, requirement);
  };
  switch (status.error) {
    case layout_error::negative_length: refuse_length("a length must be at least 0"); break;
    case layout_error::above_width:
      refuse_length("a length must be at most " + limit + ", the width of the batch");
      break;
    case layout_error::above_range:
      refuse_length("it must be at most " + limit + ", the range of the type of cu_seqlens");
      break;
    case layout_error::not_divisible:
      refuse("padded length of " + name,
             "it must be a multiple of " + limit + ", what the sharding divides by");
      break;
    case layout_error::sum_above_range:
      refuse("sum of the padded lengths",
             "it must be at most " + limit + ", the range of the type of cu_seqlens");
      break;
    case layout_error::total_above_range:
      refuse("total", "it must be at most " + limit + ", the range of the type of cu_seqlens");
      break;
    case layout_error::content_above_total:
      refuse("content", "the padded lengths must sum to at most " + limit + ", the fixed total");
      break;
    case layout_error::nobody_absorbs:
      refuse("number of sequences", "it must be at least 1, so that one can absorb the tail of " +
                                        limit + " tokens (or use ghost_tail)");
      break;
    case layout_error::above_max_seqlen:
      refuse("longest padded length", "it must be at most " + limit + ", the given max_seqlen");
      break;
    case layout_error::count_out_of_range:
      refuse("number of sequences", "it must be from 0 to " + limit + ", the capacity");
      break;
    case layout_error::order_out_of_range:
      refuse(entry_name("order", status.entry),
             "it must be a sequence of the batch, from 0 to " + limit);
      break;
    case layout_error::order_repeats:
      refuse(entry_name("order", status.entry), "each sequence may be packed at most once");
      break;
    case layout_error::cu_first_not_zero:
      refuse(entry_name("cu_seqlens", 0), "the first entry must be 0");
      break;
    case layout_error::cu_decreases:
      refuse(entry_name("cu_seqlens", status.entry),
             "entries must not decrease, and the one before is " + limit);
      break;
    case layout_error::cu_padded_first_not_zero:
      refuse(entry_name("cu_seqlens_padded", 0), "the first entry must be 0");
      break;
    case layout_error::cu_padded_decreases:
      refuse(entry_name("cu_seqlens_padded", status.entry),
             "entries must not decrease, and the one before is " + limit);
      break;
    case layout_error::real_above_padded:
      refuse("real length of " + name, "it must be at most " + limit + ", its padded length");
      break;
    case layout_error::total_differs:
      refuse(entry_name("cu_seqlens_padded", status.entry),
             "the last entry must be " + limit + ", the tokens of the packed row");
      break;
    case layout_error::label_refused:
      refuse(
          "tokens[" + std::to_string(status.entry) + "][" + std::to_string(status.column) + "]",
          (status.value > status.limit ? "a label must be at most " : "a label must be at least ") +
              limit);
      break;
    case layout_error::none: break;
  }
  reject("status", static_cast<offset_t>(status.error), "unknown");
}

/// Everything about a layout but its two arrays.
struct bounds_plan {
  offset_t sequences = 0;
  offset_t segments = 0;
  offset_t real = 0;
  offset_t content = 0;
  offset_t total = 0;
  offset_t longest = 0;
  offset_t longest_padded = 0;
  layout_status status{};
};

/// Sums stay here where they would become larger, so that no input can make them wrap.
inline constexpr offset_t saturated_sum = offset_t{1} << 61;

/// The sums over the lengths that a plan needs.
struct length_sums {
  offset_t sequences = 0;
  offset_t real = 0;
  offset_t content = 0;
  offset_t longest = 0;
  offset_t last = 0;  ///< the last length
};

/// What lengths must satisfy under two policies.
template <layout_index Index, padding_policy Padding, context_parallel_policy ContextParallel>
struct bounds_rules {
  Padding padding;
  ContextParallel cp;
  offset_t width = max_tokens;

  static constexpr offset_t limit = max_total<Index>;
  static constexpr bool absorbs = Padding::has_total && Padding::tail_goes_to == tail::absorb;

  SEQPACK_HD constexpr offset_t longest_allowed() const noexcept { return min_of(width, limit); }

  /// Whether padded lengths must be looked at one by one.
  SEQPACK_HD constexpr bool each_divides() const noexcept {
    return remainder(padding.each(), cp.divisor()) == 0;
  }

  SEQPACK_HD constexpr layout_status check_length(offset_t slot, offset_t length) const noexcept {
    if (length < 0) return {layout_error::negative_length, slot, length, 0};
    if (length > longest_allowed()) {
      return limit <= width ? layout_status{layout_error::above_range, slot, length, limit}
                            : layout_status{layout_error::above_width, slot, length, width};
    }
    return {};
  }

  SEQPACK_HD constexpr layout_status check_padded(offset_t slot, offset_t padded) const noexcept {
    if (remainder(padded, cp.divisor()) == 0) return {};
    return {layout_error::not_divisible, slot, padded, cp.divisor()};
  }

  /// Both checks for slot `slot` of `sequences`. The last slot may yet take the tail: its padded
  /// length is checked with it.
  SEQPACK_HD constexpr layout_status check(offset_t slot, offset_t sequences,
                                           offset_t length) const noexcept {
    const layout_status status = check_length(slot, length);
    if (!status.ok() || (absorbs && slot + 1 == sequences)) return status;
    return check_padded(slot, padding.padded_length(length));
  }

  /// All sizes, and the status of the sums. Where that is not ok, the total is still one that the
  /// arrays can be cut at.
  SEQPACK_HD constexpr bounds_plan finish(const length_sums& sums) const noexcept {
    bounds_plan plan{.sequences = sums.sequences,
                     .segments = sums.sequences + has_ghost<Padding>,
                     .real = sums.real,
                     .content = sums.content,
                     .total = total_for(padding, min_of(sums.content, limit)),
                     .longest = sums.longest,
                     .longest_padded = padding.padded_length(sums.longest)};
    if (sums.content > limit || plan.total > limit) {
      plan.status = sums.content > limit
                        ? layout_status{layout_error::sum_above_range, -1, sums.content, limit}
                        : layout_status{layout_error::total_above_range, -1, plan.total, limit};
      plan.total = min_of(plan.total, limit);
      return plan;
    }
    if (sums.content > plan.total) {
      plan.status = {layout_error::content_above_total, -1, sums.content, plan.total};
      return plan;
    }
    const offset_t tail_length = plan.total - sums.content;
    if constexpr (has_ghost<Padding>) {
      plan.status = check_padded(layout_status::ghost, tail_length);
      plan.longest_padded = max_of(plan.longest_padded, tail_length);
    } else if constexpr (absorbs) {
      if (sums.sequences == 0) {
        if (tail_length > 0) plan.status = {layout_error::nobody_absorbs, -1, 0, tail_length};
        return plan;
      }
      const offset_t last = padding.padded_length(sums.last) + tail_length;
      plan.status = check_padded(sums.sequences - 1, last);
      plan.longest_padded = max_of(plan.longest_padded, last);
    }
    return plan;
  }
};

/// The lengths of the slots, in slot order, as they are and as offsets, and how an error names one.
template <class L>
concept slot_lengths = requires(const L& l, offset_t k) {
  { l.raw(k) } -> std::integral;
  { l.count() } -> std::same_as<offset_t>;
  { l[k] } -> std::same_as<offset_t>;
  { l.name(k) } -> std::same_as<std::string>;
};

/// What the checks of a block of lengths need to know of it.
struct extremes {
  bool any_negative;
  offset_t longest;
};

/// In the lengths' own type, which is often narrower than an offset.
template <slot_lengths L>
constexpr extremes find_extremes(const L& lengths, offset_t first, offset_t end) {
  using integer = decltype(lengths.raw(0));
  integer all = 0;
  integer longest = 0;
  for (offset_t k = first; k < end; ++k) {
    const integer length = lengths.raw(k);
    all = static_cast<integer>(all | length);
    longest = length > longest ? length : longest;
  }
  if constexpr (std::is_unsigned_v<integer>) {
    return {false, detail::to_offset(longest)};
  } else {
    return {all < 0, static_cast<offset_t>(longest)};
  }
}

/// Checks the lengths against the policies and computes the sizes. Writes nothing.
///
/// Without a total in the policy nothing about the sums can be wrong as long as they fit, so then
/// they are left to write_bounds, which makes them anyway, and one pass is saved.
/// \throws invalid_input for a length below 0 or above the width, a padded length that the sharding
/// does not divide, content above the fixed total, and sums above the index type.
template <layout_index Index, slot_lengths L, padding_policy P, context_parallel_policy C>
constexpr bounds_plan plan_bounds(const L& lengths, const P& padding, const C& cp, offset_t width) {
  require_policies_fit(padding, cp);
  const bounds_rules<Index, P, C> rules{padding, cp, width};
  const bool each_divides = rules.each_divides();
  const offset_t longest_allowed = rules.longest_allowed();

  length_sums sums{.sequences = lengths.count()};
  const auto add_block = [&](offset_t first, offset_t end) {
    offset_t content = 0;
    for (offset_t k = first; k < end; ++k) content += padding.padded_length(lengths[k]);
    sums.content = min_of(sums.content + content, saturated_sum);
  };
  // Blocks that stay in the first cache, with loops that have no exit, so that compilers vectorise
  // them, and sums that cannot wrap between two checks.
  constexpr offset_t block = 4096;
  for (offset_t first = 0; first < sums.sequences; first += block) {
    const offset_t end = min_of(first + block, sums.sequences);
    const extremes found = find_extremes(lengths, first, end);
    if (found.any_negative || found.longest > longest_allowed || !each_divides) {
      for (offset_t k = first; k < end; ++k) {
        const layout_status status = rules.check(k, sums.sequences, lengths[k]);
        if (!status.ok()) throw_status(status, lengths.name(k), std::to_string(lengths.raw(k)));
      }
    }
    sums.longest = max_of(sums.longest, found.longest);
    if constexpr (P::has_total) {
      add_block(first, end);
    }
  }
  if (sums.sequences > 0) sums.last = lengths[sums.sequences - 1];
  const offset_t longest_padded = padding.padded_length(sums.longest);
  if (!P::has_total && longest_padded > rules.limit / max_of(sums.sequences, 1)) {
    for (offset_t first = 0; first < sums.sequences; first += block) {
      add_block(first, min_of(first + block, sums.sequences));
    }
  }

  const bounds_plan plan = rules.finish(sums);
  if (!plan.status.ok()) {
    const offset_t entry = plan.status.entry;
    throw_status(plan.status, entry < 0 ? "" : lengths.name(entry));
  }
  return plan;
}

/// Writes the two prefix sums of a plan, segments + 1 entries each, and completes its sums. One
/// pass.
template <layout_index Index, slot_lengths L, padding_policy P>
constexpr void write_bounds(bounds_plan& plan, const L& lengths, const P& padding, Index* cu,
                            Index* cu_padded) {
  offset_t real = 0;
  offset_t content = 0;
  cu[0] = 0;
  cu_padded[0] = 0;
  // A few entries of one array, then of the other: stores that alternate between two cache lines
  // take a third longer (1.41 against 1.05 ns a sequence, 1,000,000 sequences).
  constexpr int group = 4;
  const P policy = padding;  // which no store can change
  const auto write = [&]<int Count>(std::integral_constant<int, Count>, offset_t k) {
    offset_t length[Count];
    for (int j = 0; j < Count; ++j) length[j] = lengths[k + j];
    for (int j = 0; j < Count; ++j) {
      real += length[j];
      cu[k + j + 1] = static_cast<Index>(real);
    }
    for (int j = 0; j < Count; ++j) {
      content += policy.padded_length(length[j]);
      cu_padded[k + j + 1] = static_cast<Index>(content);
    }
  };
  offset_t k = 0;
  for (; k + group <= plan.sequences; k += group) write(std::integral_constant<int, group>{}, k);
  for (; k < plan.sequences; ++k) write(std::integral_constant<int, 1>{}, k);
  plan.real = real;
  plan.content = content;
  if constexpr (!P::has_total) plan.total = content;
  if constexpr (has_ghost<P>) cu[plan.segments] = static_cast<Index>(real);
  cu_padded[plan.segments] = static_cast<Index>(plan.total);
}

}  // namespace seqpack
