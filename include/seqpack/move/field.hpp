/// \file
/// field: names the source, the target and the fill value of a tensor that moves.
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/move/detail/fields.hpp"

namespace seqpack {

/// A tensor on its way: where its tokens come from, where they go, and the value of everything in
/// the target that is not a real token.
template <class From, class To, class Fill>
struct field_t {
  From from;
  To to;
  Fill fill;
};

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

}  // namespace seqpack
