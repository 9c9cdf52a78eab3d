/// \file
/// From lengths to the bounds of a packed row: the rules, the sizes and the two prefix sums. The
/// rules are shared by the host, which throws, and by the device, which sets a status word.
// For the folders above too.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/extent.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/detail/checks.hpp"
#include "seqpack/layout/detail/status.hpp"
#include "seqpack/layout/layout_status.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/policy/any_padding.hpp"
#include "seqpack/policy/compatibility.hpp"
#include "seqpack/policy/padding.hpp"

namespace seqpack::detail {

/// Sums stay here where they would become larger, so that no input can make them wrap.
inline constexpr offset_t saturated_sum = offset_t{1} << 61;

/// The largest total that an index type can hold.
template <layout_index I>
inline constexpr offset_t max_total =
    sizeof(I) == 4 ? offset_t{std::int64_t{1} << 31} - 1 : max_tokens;

/// The sums over the lengths that a plan needs.
struct length_sums {
  offset_t sequences = 0;
  offset_t real = 0;
  offset_t content = 0;
  offset_t longest = 0;
  offset_t last = 0;  ///< the last length
};

/// Whether a padding is one of the library: a number for each sequence, and numbers for the row.
template <class P>
inline constexpr bool ships = false;
template <class... Parts>
inline constexpr bool ships<padding<Parts...>> = true;
template <>
inline constexpr bool ships<any_padding> = true;

/// What of a padding the loops over lengths see, and so all of it that building a layout is
/// instantiated for: the number of one of the library, or the whole policy of a user.
template <padding_policy P>
constexpr auto rounding_of(const P& padding) {
  if constexpr (!ships<P>) {
    return padding;
  } else if constexpr (P::static_each == dynamic) {
    return extent<>(padding.each());
  } else {
    return extent<P::static_each>();
  }
}

/// The same for a device, where one instantiation serves all paddings of the library: a kernel that
/// reads lengths from memory does not wait for a multiplication.
template <padding_policy P>
constexpr auto rounding_on_device(const P& padding) {
  if constexpr (ships<P>) {
    return extent<>(padding.each());
  } else {
    return padding;
  }
}

template <padding_policy P>
using device_rounding = decltype(rounding_on_device(std::declval<const P&>()));

/// What deferred validation needs of a padding, at compile time where its type says it.
/// \throws invalid_input where it does not.
template <padding_policy P>
constexpr void require_fixed_total(const P& padding) {
  if constexpr (requires { typename std::bool_constant<P::has_fixed_total>; }) {
    static_assert(P::has_fixed_total,
                  "deferred validation needs a capacity: give the padding policy a fixed_total");
  } else if (!padding.has_fixed_total) {
    reject("fixed_total of the padding", "missing", "deferred validation needs a capacity");
  }
}

template <class Rounding>
SEQPACK_HD constexpr offset_t padded_length(const Rounding& rounding, offset_t length) noexcept {
  if constexpr (padding_policy<Rounding>) {
    return rounding.padded_length(length);
  } else {
    return rounding.round_up(length);
  }
}

/// What lengths must satisfy under two policies, as numbers: of their types only what rounds
/// lengths is left.
template <layout_index Index, class Rounding>
struct bounds_rules {
  Rounding rounding{};
  fast_divisor divisor{};      ///< of the sharding, for every length
  fast_divisor row_divisor{};  ///< of a sharding that cuts the row, for the total; 1 for others
  offset_t width = max_tokens;
  offset_t each = 1;
  offset_t total_multiple = 1;
  offset_t fixed_total = -1;  ///< below 0: none
  bool has_total = false;
  bool ghost = false;

  static constexpr offset_t limit = max_total<Index>;

  SEQPACK_HD constexpr bool absorbs() const noexcept { return has_total && !ghost; }
  /// The same for an order of no slots: the tail, which nobody absorbs, is a ghost.
  constexpr bounds_rules for_no_slots() const noexcept {
    bounds_rules rules = *this;
    rules.ghost = has_total;
    return rules;
  }
  SEQPACK_HD constexpr offset_t longest_allowed() const noexcept { return min_of(width, limit); }
  SEQPACK_HD constexpr offset_t padded(offset_t length) const noexcept {
    return padded_length(rounding, length);
  }
  SEQPACK_HD constexpr offset_t total_for(offset_t content) const noexcept {
    return total_of(content, total_multiple, fixed_total);
  }
  /// The total where it does not depend on the lengths, else max_tokens.
  SEQPACK_HD constexpr offset_t known_total() const noexcept {
    return fixed_total < 0 ? max_tokens : fixed_total;
  }

  /// Whether the sharding divides every padded length, so that none must be looked at.
  SEQPACK_HD constexpr bool each_divides() const noexcept { return divisor.divides(each); }
  /// Whether the sums must be known for all checks: those of a total, or one of a row's divisor that
  /// no policy keeps.
  SEQPACK_HD constexpr bool checks_sums() const noexcept {
    return has_total || !row_divisor.divides(each);
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
    if (divisor.divides(padded)) return {};
    return {layout_error::not_divisible, slot, padded, divisor.value()};
  }

  /// Both checks for slot `slot` of `sequences`. The last slot may yet take the tail: its padded
  /// length is checked with it.
  SEQPACK_HD constexpr layout_status check(offset_t slot, offset_t sequences,
                                           offset_t length) const noexcept {
    const layout_status status = check_length(slot, length);
    if (!status.ok() || (absorbs() && slot + 1 == sequences)) return status;
    return check_padded(slot, padded(length));
  }

  SEQPACK_HD constexpr layout_status check_total(offset_t total) const noexcept {
    if (row_divisor.divides(total)) return {};
    return {layout_error::total_not_divisible, -1, total, row_divisor.value()};
  }

  /// Of a sequence that another system has padded.
  SEQPACK_HD constexpr layout_status check_adopted(offset_t slot, offset_t real,
                                                   offset_t padded) const noexcept {
    if (real > padded) return {layout_error::real_above_padded, slot, real, padded};
    const layout_status status = check_length(slot, real);
    return status.ok() ? check_padded(slot, padded) : status;
  }

  /// All sizes, and the status of the sums. Where that is not ok, the total is still one that the
  /// arrays can be cut at.
  SEQPACK_HD constexpr layout_sizes finish(const length_sums& sums) const noexcept {
    layout_sizes sizes{.sequences = sums.sequences,
                       .segments = sums.sequences + ghost,
                       .real = sums.real,
                       .content = sums.content,
                       .total = total_for(min_of(sums.content, limit)),
                       .longest = sums.longest,
                       .longest_padded = sums.sequences == 0 ? 0 : padded(sums.longest)};
    if (sums.content > limit || sizes.total > limit) {
      sizes.status = sums.content > limit
                         ? layout_status{layout_error::sum_above_range, -1, sums.content, limit}
                         : layout_status{layout_error::total_above_range, -1, sizes.total, limit};
      sizes.total = min_of(sizes.total, limit);
      return sizes;
    }
    if (sums.content > sizes.total) {
      sizes.status = {layout_error::content_above_total, -1, sums.content, sizes.total};
      return sizes;
    }
    const offset_t tail_length = sizes.total - sums.content;
    if (ghost) {
      sizes.status = check_padded(layout_status::ghost, tail_length);
      sizes.longest_padded = max_of(sizes.longest_padded, tail_length);
    } else if (has_total && sums.sequences == 0) {
      if (tail_length > 0) sizes.status = {layout_error::nobody_absorbs, -1, 0, tail_length};
    } else if (has_total) {
      const offset_t last = padded(sums.last) + tail_length;
      sizes.status = check_padded(sums.sequences - 1, last);
      sizes.longest_padded = max_of(sizes.longest_padded, last);
    }
    if (sizes.status.ok()) sizes.status = check_total(sizes.total);
    return sizes;
  }
};

template <context_parallel_policy C>
constexpr fast_divisor row_divisor_of(const C& cp) {
  return fast_divisor(cp.cuts_row() ? cp.total_divisor() : 1);
}

/// \param rounding of the padding
/// \throws invalid_input for policies that do not fit.
template <layout_index Index, class Rounding, padding_policy P, context_parallel_policy C>
constexpr bounds_rules<Index, Rounding> rules_of(const Rounding& rounding, const P& padding,
                                                 const C& cp, offset_t width) {
  require_policies_fit(padding, cp);
  return {.rounding = rounding,
          .divisor = fast_divisor(cp.divisor()),
          .row_divisor = row_divisor_of(cp),
          .width = width,
          .each = padding.each(),
          .total_multiple = padding.total_multiple(),
          .fixed_total = padding.has_fixed_total ? padding.fixed_total() : -1,
          .has_total = padding.has_total,
          .ghost = has_ghost(padding)};
}

/// For bounds that another system has padded.
template <layout_index Index, context_parallel_policy C>
constexpr bounds_rules<Index, extent<>> rules_of_bounds(const C& cp, offset_t width) {
  return {.divisor = fast_divisor(cp.divisor()), .row_divisor = row_divisor_of(cp), .width = width};
}

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
    return {false, to_offset(longest)};
  } else {
    return {all < 0, static_cast<offset_t>(longest)};
  }
}

template <slot_lengths L>
[[noreturn, gnu::noinline, gnu::cold]] void refuse_length(const L& lengths, offset_t k,
                                                          const layout_status& status) {
  throw_status(status, lengths.name(k), std::to_string(lengths.raw(k)));
}
template <slot_lengths L>
[[noreturn, gnu::noinline, gnu::cold]] void refuse_sums(const L& lengths,
                                                        const layout_status& status) {
  throw_status(status, status.entry < 0 ? "" : lengths.name(status.entry));
}

/// Checks the lengths against the policies and computes the sizes. Writes nothing.
///
/// Without a total in the policy, and a sharding that could not divide it, nothing about the sums can be
/// wrong as long as they fit. Then they are left to write_bounds, which makes them anyway, and one pass
/// is saved.
/// \throws invalid_input for a length below 0 or above the width, a padded length that the sharding
/// does not divide, content above the fixed total, and sums above the index type.
template <slot_lengths L, layout_index Index, class Rounding>
constexpr layout_sizes check_lengths(const L& lengths, const bounds_rules<Index, Rounding>& rules) {
  const bool each_divides = rules.each_divides();
  const offset_t longest_allowed = rules.longest_allowed();
  const Rounding rounding = rules.rounding;

  length_sums sums{.sequences = lengths.count()};
  const auto add_block = [&](offset_t first, offset_t end) {
    offset_t content = 0;
    for (offset_t k = first; k < end; ++k) content += padded_length(rounding, lengths[k]);
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
        if (!status.ok()) refuse_length(lengths, k, status);
      }
    }
    sums.longest = max_of(sums.longest, found.longest);
    if (rules.checks_sums()) add_block(first, end);
  }
  if (sums.sequences > 0) sums.last = lengths[sums.sequences - 1];
  if (!rules.checks_sums() &&
      rules.padded(sums.longest) > rules.limit / max_of(sums.sequences, 1)) {
    for (offset_t first = 0; first < sums.sequences; first += block) {
      add_block(first, min_of(first + block, sums.sequences));
    }
  }

  const layout_sizes sizes = rules.finish(sums);
  if (!sizes.status.ok()) refuse_sums(lengths, sizes.status);
  return sizes;
}

/// A multiple that is a power of two.
struct mask_rounding {
  offset_t mask;
  SEQPACK_HD constexpr offset_t round_up(offset_t x) const noexcept { return (x + mask) & ~mask; }
};

/// Calls f with the rounding as a loop over many lengths wants it: what can be asked once is.
template <class Rounding, class F>
constexpr void with_loop_rounding(const Rounding& rounding, F&& f) {
  if constexpr (std::same_as<Rounding, extent<>>) {
    if (is_power_of_two(rounding.value())) return f(mask_rounding{rounding.value() - 1});
  }
  f(rounding);
}

/// Writes the two prefix sums of checked lengths, segments + 1 entries each, and completes the
/// sizes. One pass.
template <slot_lengths L, layout_index Index, class Rounding>
constexpr void write_bounds(layout_sizes& sizes, const L& lengths,
                            const bounds_rules<Index, Rounding>& rules, Index* cu,
                            Index* cu_padded) {
  offset_t real = 0;
  offset_t content = 0;
  cu[0] = 0;
  cu_padded[0] = 0;
  // A few entries of one array, then of the other: stores that alternate between two cache lines
  // take a third longer (1.41 against 1.05 ns a sequence, 1,000,000 sequences).
  constexpr int group = 4;
  with_loop_rounding(
      rules.rounding, [&](const auto rounding) {  // a copy, which no store can change
        const auto write = [&]<int Count>(std::integral_constant<int, Count>, offset_t k) {
          offset_t length[Count];
          for (int j = 0; j < Count; ++j) length[j] = lengths[k + j];
          for (int j = 0; j < Count; ++j) {
            real += length[j];
            cu[k + j + 1] = static_cast<Index>(real);
          }
          for (int j = 0; j < Count; ++j) {
            content += padded_length(rounding, length[j]);
            cu_padded[k + j + 1] = static_cast<Index>(content);
          }
        };
        offset_t k = 0;
        for (; k + group <= sizes.sequences; k += group)
          write(std::integral_constant<int, group>{}, k);
        for (; k < sizes.sequences; ++k) write(std::integral_constant<int, 1>{}, k);
      });
  sizes.real = real;
  sizes.content = content;
  if (!rules.has_total) sizes.total = content;
  cu[sizes.segments] = static_cast<Index>(real);
  cu_padded[sizes.segments] = static_cast<Index>(sizes.total);
}

}  // namespace seqpack::detail
