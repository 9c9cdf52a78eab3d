/// \file
/// How long the sequences and the packed row become: the padding policies.
#pragma once

#include <concepts>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/extent.hpp"
#include "seqpack/core/math.hpp"

namespace seqpack {

/// Who gets the tokens between the content and the total.
enum class tail {
  absorb,  ///< the last sequence: its padded length takes the tail
  ghost    ///< a sequence of its own, of real length 0, after the last one
};

/// What a part of `padding` sets; each may occur once.
enum class padding_part { each, total_multiple, fixed_total, tail };

/// Pads every sequence to a multiple of M tokens. `each_multiple_of<16>` or
/// `each_multiple_of<>{m}`.
template <offset_t M = dynamic>
struct each_multiple_of : extent<M> {
  static constexpr padding_part part = padding_part::each;
  constexpr each_multiple_of() = default;
  /// \throws invalid_input unless 1 <= m <= max_tokens.
  constexpr explicit each_multiple_of(offset_t m)
    requires(M == dynamic)
      : extent<M>(m, "each_multiple_of") {}
};

/// Pads the packed row to a multiple of M tokens.
template <offset_t M = dynamic>
struct total_multiple_of : extent<M> {
  static constexpr padding_part part = padding_part::total_multiple;
  constexpr total_multiple_of() = default;
  /// \throws invalid_input unless 1 <= m <= max_tokens.
  constexpr explicit total_multiple_of(offset_t m)
    requires(M == dynamic)
      : extent<M>(m, "total_multiple_of") {}
};

/// Pads the packed row to exactly N tokens; more content than that is an error.
template <offset_t N = dynamic>
struct fixed_total : extent<N> {
  static constexpr padding_part part = padding_part::fixed_total;
  constexpr fixed_total() = default;
  /// \throws invalid_input unless 1 <= n <= max_tokens.
  constexpr explicit fixed_total(offset_t n)
    requires(N == dynamic)
      : extent<N>(n, "fixed_total") {}
};

/// The tail belongs to the last sequence. The default.
struct absorb_tail {
  static constexpr padding_part part = padding_part::tail;
  static constexpr offset_t static_value = static_cast<offset_t>(tail::absorb);
  SEQPACK_HD constexpr offset_t value() const noexcept { return static_value; }
};

/// The tail is a sequence of its own, so that no real sequence is inflated.
struct ghost_tail {
  static constexpr padding_part part = padding_part::tail;
  static constexpr offset_t static_value = static_cast<offset_t>(tail::ghost);
  SEQPACK_HD constexpr offset_t value() const noexcept { return static_value; }
};

/// A padding policy: pure arithmetic on lengths, no data. All values are tokens.
///
/// - `p.padded_length(n)`, n >= 0: at least n, 0 for 0, and not decreasing in n
/// - `p.each()`: a number that divides every padded length (1: nothing is promised)
/// - `p.total_multiple()`: divides the total (1: anything does)
/// - `p.fixed_total()`: the total, meaningful when `p.has_fixed_total`
/// - `P::static_each`, `P::static_total_multiple`, `P::static_fixed_total`: the same at
///   compile time, or `dynamic`; what is wrong with them does not compile
/// - `p.has_total`: whether there is a total multiple or a fixed total
/// - `p.has_fixed_total`: whether there is a fixed total
/// - `p.tail_goes_to`: who gets the tail
///
/// The last three are constants of the type or, as in any_padding, members.
///
/// The functions are called on the device too, so a user's own must be SEQPACK_HD there.
template <class P>
concept padding_policy = std::is_trivially_copyable_v<P> && requires(const P& p, offset_t n) {
  { p.padded_length(n) } -> std::same_as<offset_t>;
  { p.each() } -> std::same_as<offset_t>;
  { p.total_multiple() } -> std::same_as<offset_t>;
  { p.fixed_total() } -> std::same_as<offset_t>;
  { p.tail_goes_to } -> std::convertible_to<tail>;
  { p.has_total } -> std::convertible_to<bool>;
  { p.has_fixed_total } -> std::convertible_to<bool>;
  typename std::integral_constant<offset_t, P::static_each>;
  typename std::integral_constant<offset_t, P::static_total_multiple>;
  typename std::integral_constant<offset_t, P::static_fixed_total>;
};

/// A part of `padding`.
template <class P>
concept padding_component = std::is_trivially_copyable_v<P> && requires(const P& p) {
  { P::part } -> std::convertible_to<padding_part>;
  { p.value() } -> std::same_as<offset_t>;
};

/// The composed padding policy: any of each_multiple_of, total_multiple_of, fixed_total and
/// absorb_tail or ghost_tail, in any order, each at most once. No part at all means no padding.
///
///     padding{each_multiple_of<16>{}, total_multiple_of<>{m}, ghost_tail{}}
template <padding_component... Parts>
class padding : private Parts... {
  template <padding_part K>
  static constexpr int count = (int{Parts::part == K} + ... + 0);

  template <padding_part K>
  static constexpr offset_t static_part(offset_t absent) {
    return count<K> == 0 ? absent : ((Parts::part == K ? Parts::static_value : 0) + ... + 0);
  }

  template <padding_part K>
  SEQPACK_HD constexpr offset_t part(offset_t absent) const noexcept {
    if constexpr (count<K> == 0) {
      return absent;
    } else {
      return ((Parts::part == K ? static_cast<const Parts&>(*this).value() : 0) + ... + 0);
    }
  }

 public:
  static_assert(count<padding_part::each> <= 1, "padding has each_multiple_of more than once");
  static_assert(count<padding_part::total_multiple> <= 1,
                "padding has total_multiple_of more than once");
  static_assert(count<padding_part::fixed_total> <= 1, "padding has fixed_total more than once");
  static_assert(count<padding_part::tail> <= 1, "padding names where the tail goes more than once");

  static constexpr offset_t static_each = static_part<padding_part::each>(1);
  static constexpr offset_t static_total_multiple = static_part<padding_part::total_multiple>(1);
  static constexpr offset_t static_fixed_total = static_part<padding_part::fixed_total>(0);
  static constexpr bool has_fixed_total = count<padding_part::fixed_total> == 1;
  static constexpr bool has_total = has_fixed_total || count<padding_part::total_multiple> == 1;
  static constexpr tail tail_goes_to = static_cast<tail>(static_part<padding_part::tail>(0));

  constexpr padding() = default;
  constexpr explicit padding(Parts... parts)
    requires(sizeof...(Parts) > 0)
      : Parts(parts)... {}

  SEQPACK_HD constexpr offset_t each() const noexcept { return part<padding_part::each>(1); }
  SEQPACK_HD constexpr offset_t total_multiple() const noexcept {
    return part<padding_part::total_multiple>(1);
  }
  SEQPACK_HD constexpr offset_t fixed_total() const noexcept {
    return part<padding_part::fixed_total>(0);
  }
  SEQPACK_HD constexpr offset_t padded_length(offset_t length) const noexcept {
    if constexpr (count<padding_part::each> == 0) {
      return length;
    } else {
      return ((Parts::part == padding_part::each ? rounded<Parts>(length) : 0) + ...);
    }
  }

 private:
  template <class Part>
  SEQPACK_HD constexpr offset_t rounded(offset_t length) const noexcept {
    if constexpr (Part::part == padding_part::each) {
      return static_cast<const Part&>(*this).round_up(length);
    } else {
      return 0;
    }
  }
};

/// No padding at all: the packed row holds the real tokens and nothing else.
using no_padding = padding<>;

namespace detail {

/// The total of content of a given size, from a policy's numbers. A fixed total below 0: none.
SEQPACK_HD constexpr offset_t total_of(offset_t content, offset_t multiple,
                                       offset_t fixed) noexcept {
  return fixed < 0 ? round_up(content, multiple) : fixed;
}

}  // namespace detail

/// The total that content of a given size gets: the fixed one, or the content rounded up.
template <padding_policy P>
constexpr offset_t total_for(const P& p, offset_t content) noexcept {
  return detail::total_of(content, p.total_multiple(), p.has_fixed_total ? p.fixed_total() : -1);
}

/// Whether a layout of this policy ends in a ghost segment, which may be empty.
template <padding_policy P>
constexpr bool has_ghost(const P& p) noexcept {
  return p.has_total && p.tail_goes_to == tail::ghost;
}

}  // namespace seqpack
