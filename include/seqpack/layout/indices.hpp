/// \file
/// The map as lazy arrays of indices, for Thrust and the standard algorithms.
#pragma once

#include <cstddef>
#include <iterator>
#include <ranges>
#include <string>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/place.hpp"

namespace seqpack {

template <class Function>
class index_range;

namespace detail::indexing {

template <class View>
constexpr void require_width(const View& view, offset_t width);
template <class View, class Place>
struct batch_position;
template <class View, class Place>
struct packed_position;

}  // namespace detail::indexing

/// For every row of a place the index of its token in a batch [B, width]: b * width + s, and `none`
/// in padding. What batch_index writes to an array, without the array.
///
///     const auto from = batch_indices(layout, full_row, width);
///     // pack:
///     thrust::gather_if(policy, from.begin(), from.end(), from.begin(), ids, row, is_index{});
///     // its transpose:
///     thrust::scatter_if(policy, row, row + T, from.begin(), from.begin(), ids, is_index{});
///     // on the host:
///     std::ranges::transform(from, row, [&](offset_t k) { return k < 0 ? pad : ids[k]; });
///
/// \param none what padding gives: the index of an element that holds a pad value, for algorithms
/// without a condition; below 0 for is_index
/// \returns an index_range of as many entries as the place has rows. It reads the bounds of the
/// layout, which must outlive it, where it is evaluated: on a device for a layout there. Pass Thrust
/// its policy; the iterators name no system.
/// \throws invalid_input for a rank out of range, for a width below the longest real length.
///
/// Allocates nothing. O(1); each dereference costs a search of O(log B).
template <layout L, place Place>
constexpr auto batch_indices(const L& layout, Place at, offset_t width, offset_t none = -1) {
  const auto view = layout.view();
  view.require_place(at);
  detail::indexing::require_width(view, width);
  return index_range(detail::indexing::batch_position{view, at, width, none}, view.rows(at));
}

/// For every token of a batch [B, width] its row in a place: the inverse of batch_indices, which
/// gives `none` in the padding of the batch, for sequences that are not packed, and in a shard for
/// tokens of other ranks. The row of each token of a place is what row_index (tokens/per_token.hpp)
/// writes.
///
///     const auto from = packed_indices(layout, full_row, width);
///     // unpack:
///     thrust::gather_if(policy, from.begin(), from.end(), from.begin(), row, batch, is_index{});
///
/// Parameters, lifetime and errors as batch_indices.
/// \returns an index_range of B * width entries.
///
/// Allocates nothing. O(1); each dereference costs O(1), which includes a division by the width.
template <layout L, place Place>
constexpr auto packed_indices(const L& layout, Place at, offset_t width, offset_t none = -1) {
  const auto view = layout.view();
  view.require_place(at);
  detail::indexing::require_width(view, width);
  return index_range(detail::indexing::packed_position{view, at, width, none}, view.batch * width);
}

/// Whether an entry of batch_indices or packed_indices is an index, where `none` is below 0.
struct is_index {
  SEQPACK_HD constexpr bool operator()(offset_t entry) const noexcept { return entry >= 0; }
};

/// A random-access iterator over function(0), function(1), ..., none of which is stored. It is as
/// large as its function, which holds a layout_view. Iterators of one range may be compared.
///
/// `iterator_category` says random access too, although `*` gives a value: algorithms of C++17 and
/// Thrust take it for a table that is only read.
template <class Function>
class index_iterator {
 public:
  using iterator_concept = std::random_access_iterator_tag;
  using iterator_category = std::random_access_iterator_tag;
  using value_type = offset_t;
  using difference_type = std::ptrdiff_t;
  using reference = offset_t;
  using pointer = const offset_t*;

  constexpr index_iterator() = default;
  SEQPACK_HD constexpr index_iterator(const Function& function, offset_t at)
      : function_(function), at_(at) {}

  SEQPACK_HD constexpr offset_t operator*() const { return function_(at_); }
  SEQPACK_HD constexpr offset_t operator[](difference_type n) const { return function_(at_ + n); }

  SEQPACK_HD constexpr index_iterator& operator+=(difference_type n) {
    at_ += n;
    return *this;
  }
  SEQPACK_HD constexpr index_iterator& operator-=(difference_type n) { return *this += -n; }
  SEQPACK_HD constexpr index_iterator& operator++() { return *this += 1; }
  SEQPACK_HD constexpr index_iterator& operator--() { return *this += -1; }
  SEQPACK_HD constexpr index_iterator operator++(int) {
    index_iterator before = *this;
    ++*this;
    return before;
  }
  SEQPACK_HD constexpr index_iterator operator--(int) {
    index_iterator before = *this;
    --*this;
    return before;
  }
  SEQPACK_HD friend constexpr index_iterator operator+(index_iterator i, difference_type n) {
    return i += n;
  }
  SEQPACK_HD friend constexpr index_iterator operator+(difference_type n, index_iterator i) {
    return i += n;
  }
  SEQPACK_HD friend constexpr index_iterator operator-(index_iterator i, difference_type n) {
    return i -= n;
  }
  SEQPACK_HD friend constexpr difference_type operator-(const index_iterator& a,
                                                        const index_iterator& b) {
    return a.at_ - b.at_;
  }
  // Written out, as std::strong_ordering is not for devices.
  SEQPACK_HD friend constexpr bool operator==(const index_iterator& a, const index_iterator& b) {
    return a.at_ == b.at_;
  }
  SEQPACK_HD friend constexpr bool operator<(const index_iterator& a, const index_iterator& b) {
    return a.at_ < b.at_;
  }
  SEQPACK_HD friend constexpr bool operator>(const index_iterator& a, const index_iterator& b) {
    return b < a;
  }
  SEQPACK_HD friend constexpr bool operator<=(const index_iterator& a, const index_iterator& b) {
    return !(b < a);
  }
  SEQPACK_HD friend constexpr bool operator>=(const index_iterator& a, const index_iterator& b) {
    return !(a < b);
  }

 private:
  Function function_{};
  offset_t at_ = 0;
};

/// function(0), ..., function(size - 1): a view of the standard library, whose iterators may outlive
/// it.
template <class Function>
class index_range {
 public:
  using iterator = index_iterator<Function>;

  constexpr index_range() = default;
  SEQPACK_HD constexpr index_range(const Function& function, offset_t size)
      : function_(function), size_(size) {}

  SEQPACK_HD constexpr iterator begin() const { return {function_, 0}; }
  SEQPACK_HD constexpr iterator end() const { return {function_, size_}; }
  SEQPACK_HD constexpr std::size_t size() const { return static_cast<std::size_t>(size_); }
  SEQPACK_HD constexpr bool empty() const { return size_ == 0; }
  SEQPACK_HD constexpr offset_t operator[](offset_t k) const { return function_(k); }

 private:
  Function function_{};
  offset_t size_ = 0;
};

namespace detail::indexing {

template <class View>
constexpr void require_width(const View& view, offset_t width) {
  if (width < view.longest || width > max_tokens) {
    reject("width", width,
           width > max_tokens ? "it must be at most " + std::to_string(max_tokens)
                              : "it must be at least " + std::to_string(view.longest) +
                                    ", the longest real length of the layout");
  }
  if (!detail::product_within(view.batch, width, max_tokens)) {
    reject("batch size * width", {view.batch, " * ", width}, {"it must be at most ", max_tokens});
  }
}

template <class View, class Place>
struct batch_position {
  View view;
  Place at;
  offset_t width;
  offset_t none;

  SEQPACK_HD constexpr offset_t operator()(offset_t row) const {
    const token_ref token = view.token_at(at, row);
    return token.real() ? view.sequence_in(token.slot) * width + token.index : none;
  }
};

template <class View, class Place>
struct packed_position {
  View view;
  Place at;
  offset_t width;
  offset_t none;

  SEQPACK_HD constexpr offset_t operator()(offset_t position) const {
    const offset_t sequence = divide(position, width);
    const offset_t slot = view.slot(sequence);
    const offset_t index = position - sequence * width;
    if (slot < 0 || index >= view.length(slot)) return none;
    const offset_t row = view.row_of(at, slot, index);
    return row < 0 ? none : row;
  }
};

}  // namespace detail::indexing

}  // namespace seqpack

/// \cond
template <class Function>
inline constexpr bool std::ranges::enable_view<seqpack::index_range<Function>> = true;
template <class Function>
inline constexpr bool std::ranges::enable_borrowed_range<seqpack::index_range<Function>> = true;
/// \endcond
