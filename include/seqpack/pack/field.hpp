/// \file
/// What moves in a call of pack or unpack: one or several fields, and the checks they share.
#pragma once

#include <concepts>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/pack/layout_view.hpp"
#include "seqpack/pack/transfer.hpp"

namespace seqpack {

/// A tensor on its way: where its tokens come from, where they go, and the value of everything in
/// the target that is not a real token.
template <class From, class To, class Fill>
struct field_t {
  From from;
  To to;
  Fill fill;
};

namespace fields {

template <class V>
struct is_row_view : std::false_type {};
template <class T>
struct is_row_view<row_view<T>> : std::true_type {};

template <class V>
concept tokens_view = token_table<V> || is_row_view<V>::value;

/// A view as it is; anything else as packed rows.
template <class X>
constexpr auto as_view(X&& x) {
  using plain = std::remove_cvref_t<X>;
  if constexpr (tokens_view<plain>) {
    return plain{x};
  } else {
    return row_view{std::forward<X>(x)};
  }
}

}  // namespace fields

/// Names a tensor for pack or unpack. For pack, `from` is a batch and `to` are packed rows; for
/// unpack the other way round. A batch is a batch_view, left_padded_view or ragged_view; packed
/// rows are a row_view or an mdspan or, with one element per token, any contiguous range.
///
/// \param fill the pad value of pack, the fill value of unpack: a constant (default T{}) or a
/// function of the column. On a device a function must be SEQPACK_HD.
///
///     field(ids, packed_ids)
///     field(hidden, packed_hidden, 0.5f)
///     field(routes, packed_routes, [](offset_t column) { return column; })
template <class From, class To, class Fill>
constexpr auto field(From&& from, To&& to, Fill fill) {
  auto source = fields::as_view(std::forward<From>(from));
  auto target = fields::as_view(std::forward<To>(to));
  using source_type = decltype(source);
  using target_type = decltype(target);
  using T = typename target_type::element_type;
  static_assert(!std::is_const_v<T>, "the target of a field must be writable");
  static_assert(std::same_as<typename source_type::value_type, T>,
                "the source and the target of a field must have the same element type");
  static_assert(
      filler<Fill, T>,
      "the fill of a field must be a value of its element type or a function of the column");
  if constexpr (std::invocable<const Fill&, offset_t>) {
    return field_t<source_type, target_type, Fill>{source, target, fill};
  } else {
    return field_t<source_type, target_type, T>{source, target, static_cast<T>(fill)};
  }
}

/// The same with the fill value T{}.
template <class From, class To>
constexpr auto field(From&& from, To&& to) {
  using T = typename decltype(fields::as_view(std::forward<To>(to)))::value_type;
  return field(std::forward<From>(from), std::forward<To>(to), T{});
}

namespace fields {

/// Several fields as one bulk operation over the same rows: a list without std::tuple, which device
/// code cannot use.
template <class... Moves>
struct move_list;

template <>
struct move_list<> {
  SEQPACK_HD constexpr offset_t units() const noexcept { return 0; }
  constexpr offset_t row_bytes() const noexcept { return 0; }
  void process(offset_t, offset_t) const {}
  SEQPACK_HD void operator()(offset_t) const {}
};

template <class Move, class... Rest>
struct move_list<Move, Rest...> {
  Move move;
  move_list<Rest...> rest;

  constexpr move_list(Move first, Rest... others) : move(first), rest(others...) {}

  constexpr offset_t row_bytes() const noexcept { return move.row_bytes() + rest.row_bytes(); }
  SEQPACK_HD constexpr offset_t units() const noexcept { return move.units() + rest.units(); }
  void process(offset_t first, offset_t last) const {
    move.process(first, min_of(last, move.rows()));
    rest.process(first, last);
  }
  SEQPACK_HD void operator()(offset_t unit) const {
    if (unit < move.units()) {
      move(unit);
    } else {
      rest(unit - move.units());
    }
  }
};

/// A list of moves with the number of rows of the longest.
template <class... Moves>
struct bulk_move : move_list<Moves...> {
  offset_t row_count;

  constexpr explicit bulk_move(Moves... moves) : move_list<Moves...>(moves...), row_count(0) {
    ((row_count = max_of(row_count, moves.rows())), ...);
  }
  constexpr offset_t rows() const noexcept { return row_count; }
};

/// "field 2": how errors name one of several.
inline std::string name_of(std::size_t index, const char* what) {
  return "field " + std::to_string(index) + "'s " + what;
}

/// \throws invalid_input where T cannot hold the largest value.
template <class T>
void require_range(std::size_t index, const char* what, offset_t largest) {
  if constexpr (std::integral<T>) {
    if (std::cmp_greater(largest, std::numeric_limits<T>::max())) {
      reject(name_of(index, what), largest,
             "the element type of the array holds at most " +
                 std::to_string(std::numeric_limits<T>::max()));
    }
  }
}

inline void require_equal(std::size_t index, const char* what, offset_t found, offset_t expected,
                          const char* whose) {
  if (found != expected) {
    reject(name_of(index, what), found, "it must be " + std::to_string(expected) + ", " + whose);
  }
}

template <class T>
void require_memory(std::size_t index, const char* what, const T* data, offset_t elements) {
  if (elements > 0 && data == nullptr) {
    reject(name_of(index, what), "null",
           "it must point to " + std::to_string(elements) + " elements");
  }
}

inline void require_apart(std::size_t target, const footprint& to, std::size_t other,
                          const char* other_what, const footprint& with) {
  if (to.overlaps(with)) {
    reject(name_of(target, "target"), "in the memory of " + name_of(other, other_what),
           "outputs must not alias");
  }
}

/// No target may overlap any source or any other target.
template <class... Fields>
void require_no_alias(const Fields&... field) {
  constexpr std::size_t count = sizeof...(Fields);
  const footprint from[count] = {field.from.touched()...};
  const footprint to[count] = {field.to.touched()...};
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < count; ++k) {
      require_apart(i, to[i], k, "source", from[k]);
      if (k > i) require_apart(k, to[k], i, "target", to[i]);
    }
  }
}

[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_row(const std::string& row, offset_t lead,
                                                              offset_t room, offset_t length,
                                                              bool exact) {
  if (lead < 0) reject(row + " start column", lead, "it must be at least 0");
  reject(row + " size", room,
         std::string(exact ? "it must be " : "it must be at least ") + std::to_string(length) +
             ", the real length of the sequence");
}

/// What pack's sources and unpack's targets must be for the layout. Bounds that are arrays in
/// device memory cannot be looked at from here; the device functions stay inside of them instead.
template <class Executor, class View, token_table Table>
void require_table(std::size_t index, const char* what, const View& view, const Table& table,
                   bool exact) {
  require_equal(index, (std::string(what) + " rows").c_str(), table.batch(), view.batch,
                "the batch size of the layout");
  if (table.positions() * table.payload() > 0 && table.touched().first == nullptr) {
    reject(name_of(index, what), "null",
           "it must point to " + std::to_string(table.positions() * table.payload()) + " elements");
  }
  if constexpr (!bounds_in_memory<Table>) {
    if (table.batch() > 0 && view.longest > table.columns(0)) {
      reject(name_of(index, what) + " width", table.columns(0),
             "it must be at least " + std::to_string(view.longest) +
                 ", the longest real length of the layout");
    }
  } else if constexpr (host_executor<Executor>) {
    for (offset_t b = 0; b < table.batch(); ++b) {
      const offset_t slot = view.slot(b);
      const offset_t length = slot < 0 ? 0 : view.length(slot);
      const offset_t lead = table.lead(b);
      const offset_t room = table.columns(b) - lead;
      if (lead < 0 || room < length || (exact && room != length)) {
        refuse_row(name_of(index, what) + " row " + std::to_string(b), lead, room, length, exact);
      }
    }
    if (exact && table.batch() > 0 && table.positions() != table.first_position(table.batch())) {
      reject(name_of(index, what) + " values", table.positions(),
             "they must be " + std::to_string(table.first_position(table.batch())) +
                 ", the last offset");
    }
  }
}

/// \throws invalid_input for a table whose rows overlap each other in memory.
template <class T>
void require_distinct_positions(std::size_t index, const batch_view<T>& table) {
  if (table.batch() * table.width() <= 1) return;
  const offset_t token = table.stride() < 0 ? -table.stride() : table.stride();
  const offset_t row = table.batch_stride() < 0 ? -table.batch_stride() : table.batch_stride();
  const bool tokens_apart = table.width() <= 1 || token >= table.payload();
  const bool rows_apart =
      table.batch() <= 1 || row >= (table.width() - 1) * token + table.payload();
  // Columns outermost: rows interleave inside of one token stride.
  const bool interleaved =
      table.width() <= 1 ||
      (row >= table.payload() && token >= (table.batch() - 1) * row + table.payload());
  if (!(tokens_apart && (rows_apart || interleaved))) {
    reject(name_of(index, "target") + " strides",
           std::to_string(table.batch_stride()) + " and " + std::to_string(table.stride()),
           "the positions of an output must not overlap");
  }
}
template <class V>
void require_distinct_positions(std::size_t, const V&) {}

}  // namespace fields

/// An owner knows where its arrays live, and an executor where it runs: mixing them up does not
/// compile. A bare layout_view, which does not know, is taken at the caller's word.
template <class E, class L>
concept runs_on = executor<E> && layout<L> &&(
    !requires { L::on_device; } ||
    requires { requires executor_traits<std::remove_cvref_t<E>>::on_device == L::on_device; });

}  // namespace seqpack
