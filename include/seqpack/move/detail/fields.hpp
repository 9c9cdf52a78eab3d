/// \file
/// What a field may be made of, and what is wrong with one that is not.
#pragma once

#include <concepts>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/detail/exact.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/detail/transfer.hpp"

namespace seqpack {

template <class From, class To, class Fill>
struct field_t;

namespace detail::fields {

template <class V>
struct is_row_view : std::false_type {};
template <class T>
struct is_row_view<row_view<T>> : std::true_type {};

template <class V>
concept packed_rows = is_row_view<V>::value;

template <class V>
concept tokens_view = token_table<V> || packed_rows<V>;

/// What an end of a field is given as: a view, or what packed rows can be made of.
template <class X>
concept viewable = tokens_view<std::remove_cvref_t<X>> || requires { row_view{std::declval<X>()}; };

/// Takes the place of a field, or of an end of one, that a static_assert has refused: nothing else
/// is said about it.
struct refused {};
using refused_field = field_t<refused, refused, refused>;

/// Whether the ends of all fields have been accepted, so that they can be looked at.
template <class... Ends>
inline constexpr bool accepted = (!std::same_as<Ends, refused> && ...);

/// Throws for a fill that the element type does not hold.
template <class T>
[[noreturn]] void refuse_fill(const std::string& name, const std::string& value) {
  if constexpr (std::floating_point<T>) {
    reject(name, value,
           {"the element type holds whole numbers exactly from ", whole_range<T>(),
            ", and no finite number above ", std::to_string(std::numeric_limits<T>::max())});
  } else if constexpr (std::is_arithmetic_v<T>) {
    reject(name, value, {"the element type holds the whole numbers from ", whole_range<T>()});
  } else {
    reject(name, value, "the element type does not hold it");
  }
}

/// Whether a type of elements lacks something that a fill of another type may be.
template <class T, class Value>
inline constexpr bool may_lose = [] {
  if constexpr (std::is_arithmetic_v<T> && std::is_arithmetic_v<Value>) {
    return !holds_all<T, Value>;
  } else {
    return as_float<T> && std::is_arithmetic_v<Value>;
  }
}();

/// Whether an element keeps a number: whole numbers exactly, others but for rounding.
template <class T, class Value>
constexpr bool keeps(Value value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return holds_exactly<T>(value);
  } else if constexpr (std::integral<Value>) {
    return holds_exactly<offset_t>(value) && holds_whole<T>(static_cast<offset_t>(value));
  } else {
    const auto kept = static_cast<float>(static_cast<T>(static_cast<float>(value)));
    return is_finite(kept) || !is_finite(value);
  }
}

/// \throws invalid_input where a function of the column gives what the element type cannot hold.
/// O(payload), and nothing where it holds all that the function can give.
template <class T, class Fill>
void require_fill(detail::subject whose, const Fill& fill, offset_t payload) {
  if constexpr (std::invocable<const Fill&, offset_t>) {
    using value = std::invoke_result_t<const Fill&, offset_t>;
    if constexpr (may_lose<T, value>) {
      for (offset_t column = 0; column < payload; ++column) {
        const value found = fill(column);
        if (keeps<T>(found)) continue;
        refuse_fill<T>(whose.name("fill") + " of column " + std::to_string(column),
                       std::to_string(found));
      }
    }
  }
}

/// A view as it is; anything else as packed rows.
template <class X>
constexpr auto as_view(X&& x) {
  using plain = std::remove_cvref_t<X>;
  if constexpr (tokens_view<plain>) {
    return plain{x};
  } else if constexpr (viewable<X>) {
    return row_view{std::forward<X>(x)};
  } else {
    return refused{};
  }
}

/// Says what is wrong with a field, once, and whether nothing is.
template <class Source, class Target, class Fill>
constexpr bool checked() {
  if constexpr (!accepted<Source>) {
    static_assert(
        accepted<Source>,
        "the source of a field is a batch (batch_view, left_padded_view, ragged_view) or "
        "packed rows (row_view, an mdspan, or a contiguous range that outlives the call)");
    return false;
  } else if constexpr (!accepted<Target>) {
    static_assert(
        accepted<Target>,
        "the target of a field is packed rows (row_view, an mdspan, or a contiguous range "
        "that outlives the call) or a batch (batch_view, left_padded_view, ragged_view)");
    return false;
  } else {
    using T = typename Target::element_type;
    constexpr bool writable = !std::is_const_v<T>;
    constexpr bool same_element = std::same_as<typename Source::value_type, std::remove_const_t<T>>;
    constexpr bool filled = filler<Fill, std::remove_const_t<T>>;
    static_assert(writable, "the target of a field must be writable");
    static_assert(!writable || same_element,
                  "the source and the target of a field must have the same element type");
    static_assert(
        !writable || !same_element || filled,
        "the fill of a field must be a value of its element type or a function of the column");
    return writable && same_element && filled;
  }
}

}  // namespace detail::fields

}  // namespace seqpack
