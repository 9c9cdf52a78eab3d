/// \file
/// any_padding: a padding of the library whose parts are chosen at run time.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/core/extent.hpp"
#include "seqpack/policy/padding.hpp"

namespace seqpack {

/// Does what the `padding` does that it is made from. With it a program, or a binding for another
/// language, instantiates make_layout once for all paddings.
///
///     any_padding how = no_padding{};
///     if (m > 1) how = padding{each_multiple_of<>{m}, total_multiple_of<>{n}, ghost_tail{}};
class any_padding {
 public:
  static constexpr offset_t static_each = dynamic;
  static constexpr offset_t static_total_multiple = dynamic;
  static constexpr offset_t static_fixed_total = dynamic;

  bool has_total = false;
  bool has_fixed_total = false;
  tail tail_goes_to = tail::absorb;

  /// No padding.
  constexpr any_padding() = default;
  template <padding_component... Parts>
  constexpr any_padding(const padding<Parts...>& p)
      : has_total(p.has_total),
        has_fixed_total(p.has_fixed_total),
        tail_goes_to(p.tail_goes_to),
        each_(p.each()),
        total_multiple_(p.total_multiple()),
        fixed_total_(p.fixed_total()) {}

  SEQPACK_HD constexpr offset_t each() const noexcept { return each_.value(); }
  SEQPACK_HD constexpr offset_t total_multiple() const noexcept { return total_multiple_; }
  SEQPACK_HD constexpr offset_t fixed_total() const noexcept { return fixed_total_; }
  SEQPACK_HD constexpr offset_t padded_length(offset_t length) const noexcept {
    return each_.round_up(length);
  }

 private:
  extent<> each_;
  offset_t total_multiple_ = 1;
  offset_t fixed_total_ = 0;
};

static_assert(padding_policy<any_padding>);

}  // namespace seqpack
