/// \file
/// The order of a packed row: which sequence of the batch lies in which slot.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <utility>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// The sequence in each slot of the packed row or, default constructed, no order: slot k holds
/// sequence k. An order of no slots is an order too: it packs nothing. It refers to its entries and
/// does not own them.
template <class Sequence>
class basic_slot_order {
 public:
  constexpr basic_slot_order() = default;
  template <class Sequences>
    requires std::convertible_to<Sequences&&, std::span<const Sequence>>
  constexpr basic_slot_order(Sequences&& sequences) : sequences_(sequences), given_(true) {}

  constexpr explicit operator bool() const noexcept { return given_; }
  constexpr std::span<const Sequence> sequences() const noexcept { return sequences_; }
  constexpr std::size_t size() const noexcept { return sequences_.size(); }

 private:
  std::span<const Sequence> sequences_;
  bool given_ = false;
};

/// The order of a layout that is made on the host: sequences of 64 bits, or of 32 as those of the
/// order of another layout.
class slot_order {
 public:
  constexpr slot_order() = default;
  template <class Sequences>
    requires std::convertible_to<Sequences&&, basic_slot_order<offset_t>>
  constexpr slot_order(Sequences&& sequences) : wide_(std::forward<Sequences>(sequences)) {}
  template <class Sequences>
    requires std::convertible_to<Sequences&&, basic_slot_order<std::int32_t>>
  constexpr slot_order(Sequences&& sequences) : narrow_(std::forward<Sequences>(sequences)) {}

  constexpr explicit operator bool() const noexcept { return wide_ || narrow_; }
  constexpr std::size_t size() const noexcept { return narrow_ ? narrow_.size() : wide_.size(); }
  constexpr offset_t operator[](offset_t slot) const {
    const auto k = static_cast<std::size_t>(slot);
    return narrow_ ? static_cast<offset_t>(narrow_.sequences()[k]) : wide_.sequences()[k];
  }
  /// Calls f with the entries as a span of their own type.
  template <class F>
  constexpr decltype(auto) visit(F&& f) const {
    return narrow_ ? f(narrow_.sequences()) : f(wide_.sequences());
  }

 private:
  basic_slot_order<offset_t> wide_;
  basic_slot_order<std::int32_t> narrow_;
};

}  // namespace seqpack
