/// \file
/// The values of positions, sequences, padding and gather indices, by token.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/layout/detail/checks.hpp"
#include "seqpack/layout/detail/status.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/move/detail/windows.hpp"

namespace seqpack::detail::token_functions {

template <class T>
struct position_id {
  template <class Executor, class View>
  void require(detail::subject whose, const View& view) const {
    detail::require_range<T>(whose, "largest position id", max_of(view.longest_padded - 1, 0));
  }
  template <class View>
  SEQPACK_HD T operator()(const View&, const token_ref& token) const {
    return static_cast<T>(token.index);
  }
};

template <class T>
struct sequence_index {
  template <class Executor, class View>
  void require(detail::subject whose, const View& view) const {
    detail::require_range<T>(whose, "largest sequence index", max_of(view.segments - 1, 0));
  }
  template <class View>
  SEQPACK_HD T operator()(const View&, const token_ref& token) const {
    return static_cast<T>(token.slot);
  }
};

template <class T>
struct padding_flag {
  template <class Executor, class View>
  void require(detail::subject, const View&) const {}
  template <class View>
  SEQPACK_HD T operator()(const View&, const token_ref& token) const {
    return static_cast<T>(!token.real());
  }
};

template <class T>
struct batch_position {
  offset_t width;

  template <class Executor, class View>
  void require(detail::subject whose, const View& view) const {
    if (!product_within(view.batch, width, max_tokens)) {
      reject(whose.name("batch size * width"), {view.batch, " * ", width},
             {"it must be at most ", max_tokens});
    }
    if (width < view.longest) {
      reject(whose.name("width"), width,
             {"it must be at least ", view.longest, ", the longest real length of the layout"});
    }
    if constexpr (std::unsigned_integral<T>) {
      reject(whose.name("element type"), "unsigned", "it must hold -1, for padding");
    }
    detail::require_range<T>(whose, "largest batch position", max_of(view.batch * width - 1, 0));
  }
  template <class View>
  SEQPACK_HD T operator()(const View& view, const token_ref& token) const {
    if (!token.real()) return static_cast<T>(-1);
    return static_cast<T>(view.sequence_in(token.slot) * width + token.index);
  }
};

template <class T>
struct row_position {
  template <class Executor, class View>
  void require(detail::subject whose, const View& view) const {
    detail::require_range<T>(whose, "largest row", max_of(view.total - 1, 0));
  }
  template <class View>
  SEQPACK_HD T operator()(const View& view, const token_ref& token) const {
    return static_cast<T>(view.row_of(full_row, token.slot, token.index));
  }
};

template <class Out>
using element_of = typename decltype(row_view(std::declval<Out>()))::element_type;

}  // namespace seqpack::detail::token_functions
