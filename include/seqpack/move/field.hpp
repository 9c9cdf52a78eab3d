/// \file
/// What moves in a call of pack or unpack.
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

/// A tensor on its way: where its tokens come from, where they go, and the value of everything in
/// the target that is not a real token.
template <class From, class To, class Fill>
struct field_t {
  From from;
  To to;
  Fill fill;
};

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

/// Names a tensor for pack or unpack. For pack, `from` is a batch and `to` are packed rows; for
/// unpack the other way round. A batch is a batch_view, left_padded_view or ragged_view; packed
/// rows are a row_view or an mdspan or, with one element per token, any contiguous range.
///
/// \param fill the pad value of pack, the fill value of unpack: a constant (default T{}) or a
/// function of the column. On a device a function must be SEQPACK_HD.
/// \throws invalid_input for a constant that the element type cannot hold exactly: 3.7, NaN or 300
/// in std::int8_t, 16777217 in float. A floating constant is rounded to a floating element type, but
/// not to infinity. The values of a function are looked at when the field moves.
///
///     field(ids, packed_ids)
///     field(hidden, packed_hidden, 0.5f)
///     field(routes, packed_routes, [](offset_t column) { return column; })
template <class From, class To, class Fill>
constexpr auto field(From&& from, To&& to, Fill fill) {
  auto source = detail::fields::as_view(std::forward<From>(from));
  auto target = detail::fields::as_view(std::forward<To>(to));
  using source_type = decltype(source);
  using target_type = decltype(target);
  if constexpr (!detail::fields::checked<source_type, target_type, Fill>()) {
    return detail::fields::refused_field{};
  } else if constexpr (std::invocable<const Fill&, offset_t>) {
    return field_t<source_type, target_type, Fill>{source, target, fill};
  } else {
    using T = typename target_type::element_type;
    if constexpr (detail::fields::may_lose<T, Fill>) {
      if (!detail::fields::keeps<T>(fill))
        detail::fields::refuse_fill<T>("fill", std::to_string(fill));
    }
    return field_t<source_type, target_type, T>{source, target, static_cast<T>(fill)};
  }
}

/// The same with the fill value T{}.
template <class From, class To>
constexpr auto field(From&& from, To&& to) {
  using target_type = decltype(detail::fields::as_view(std::forward<To>(to)));
  if constexpr (detail::fields::accepted<target_type>) {
    using T = typename target_type::value_type;
    return field(std::forward<From>(from), std::forward<To>(to), T{});
  } else {
    return field(std::forward<From>(from), std::forward<To>(to), 0);
  }
}

namespace detail::fields {

/// The fields of one launch: their pointers and sizes are its parameters, which are limited.
inline constexpr std::size_t most_at_once = 64;

template <std::size_t First, class Run, class Tuple, std::size_t... K>
void run_part(const Run& run, const Tuple& all, std::index_sequence<K...>) {
  run(std::get<First + K>(all)...);
}
template <std::size_t First, class Run, class Tuple>
void run_parts_from(const Run& run, const Tuple& all) {
  constexpr std::size_t rest = std::tuple_size_v<Tuple> - First;
  constexpr std::size_t count = rest < most_at_once ? rest : most_at_once;
  run_part<First>(run, all, std::make_index_sequence<count>{});
  if constexpr (count < rest) run_parts_from<First + count>(run, all);
}

/// Calls run(field...) with the fields, at most `most_at_once` of them each time.
template <class Run, class... Fields>
void run_in_parts(const Run& run, const Fields&... all) {
  if constexpr (sizeof...(Fields) <= most_at_once) {
    run(all...);
  } else {
    run_parts_from<0>(run, std::tie(all...));
  }
}

}  // namespace detail::fields

}  // namespace seqpack
