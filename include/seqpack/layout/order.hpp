/// \file
/// The order of a packed row: which sequence of the batch lies in which slot.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <utility>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// The sequence in each slot of the packed row, or, default constructed, no order at all: slot k
/// is row k. An order of no slots is an order too: it packs nothing. Refers to the rows, does not
/// own them.
template <class Row>
class basic_slot_order {
 public:
  constexpr basic_slot_order() = default;
  template <class Rows>
    requires std::convertible_to<Rows&&, std::span<const Row>>
  constexpr basic_slot_order(Rows&& rows) : rows_(rows), given_(true) {}

  constexpr explicit operator bool() const noexcept { return given_; }
  constexpr std::span<const Row> rows() const noexcept { return rows_; }
  constexpr std::size_t size() const noexcept { return rows_.size(); }

 private:
  std::span<const Row> rows_;
  bool given_ = false;
};

/// The order of a layout that is made on the host: sequences of 64 bits, or of 32 as those of the
/// order of another layout.
class slot_order {
 public:
  constexpr slot_order() = default;
  template <class Rows>
    requires std::convertible_to<Rows&&, basic_slot_order<offset_t>>
  constexpr slot_order(Rows&& rows) : wide_(std::forward<Rows>(rows)) {}
  template <class Rows>
    requires std::convertible_to<Rows&&, basic_slot_order<std::int32_t>>
  constexpr slot_order(Rows&& rows) : narrow_(std::forward<Rows>(rows)) {}

  constexpr explicit operator bool() const noexcept { return wide_ || narrow_; }
  constexpr std::size_t size() const noexcept { return narrow_ ? narrow_.size() : wide_.size(); }
  constexpr offset_t operator[](offset_t slot) const {
    const auto k = static_cast<std::size_t>(slot);
    return narrow_ ? static_cast<offset_t>(narrow_.rows()[k]) : wide_.rows()[k];
  }
  /// Calls f with the rows as a span of their own type.
  template <class F>
  constexpr decltype(auto) visit(F&& f) const {
    return narrow_ ? f(narrow_.rows()) : f(wide_.rows());
  }

 private:
  basic_slot_order<offset_t> wide_;
  basic_slot_order<std::int32_t> narrow_;
};

}  // namespace seqpack
