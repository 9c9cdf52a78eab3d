/// \file
/// Non-owning views of token payloads: packed rows, [B, S, D] batches, ragged and left-padded ones.
///
/// A view is a pointer and sizes, trivially copyable, and never knows whether its memory is on the
/// host or on a device: the execution policy of the call must match.
#pragma once

#include <concepts>
#include <cstdint>
#include <ranges>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/detail/view_checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/mdspan_like.hpp"

namespace seqpack {

/// What a token's payload can be made of: any integer, bool, half, bfloat16, fp8, float, double, or
/// a struct of them.
template <class T>
concept element = std::is_object_v<T> && std::is_trivially_copyable_v<T> &&
                  (std::is_const_v<T> || std::is_trivially_copy_assignable_v<T>);

/// The addresses that a view may touch, in bytes: a range or, with a stride, a piece at the
/// beginning of every stride in it. Numbers and not pointers, so that they may be computed before
/// anything is known of the memory.
struct footprint {
  std::uintptr_t first = 0;
  std::uintptr_t last = 0;
  offset_t stride = 0;
  offset_t piece = 0;

  /// Whether the two may share a byte. Exact for dense ranges, and for pieces of the same stride,
  /// so that two tensors may interleave in one buffer.
  constexpr bool overlaps(const footprint& other) const noexcept {
    if (first == last || other.first == other.last) return false;
    if (first >= other.last || other.first >= last) return false;
    if (stride == 0 || stride != other.stride) return true;
    const auto step = static_cast<std::uintptr_t>(stride);
    const std::uintptr_t apart = other.first >= first
                                     ? (other.first - first) % step
                                     : (step - (first - other.first) % step) % step;
    return apart < static_cast<std::uintptr_t>(piece) ||
           apart + static_cast<std::uintptr_t>(other.piece) > step;
  }
};

/// The bytes of an array.
template <class T>
footprint bytes_of(const T* data, offset_t count) noexcept {
  const std::uintptr_t first = detail::address_of(data);
  return {first, first + static_cast<std::uintptr_t>(count) * sizeof(T)};
}

/// A column and the row that it is in.
struct table_position {
  offset_t row;
  offset_t column;
};

/// Packed tokens: [rows, D], contiguous. A full row has T rows, a shard T / CP, all shards CP * T /
/// CP in rank-major order.
template <element T>
struct row_view {
  using element_type = T;
  using value_type = std::remove_const_t<T>;

  T* data = nullptr;
  offset_t rows = 0;
  offset_t payload = 1;  ///< D, elements of one token

  constexpr row_view() = default;
  /// \throws invalid_input for a size that is negative or above max_tokens, or for more bytes than
  /// max_view_bytes.
  constexpr row_view(T* pointer, offset_t row_count, offset_t elements = 1)
      : data(pointer), rows(row_count), payload(elements) {
    detail::require_size("rows", rows);
    detail::require_size("payload", payload);
    detail::require_elements<T>("rows * payload", rows, payload);
  }
  /// One element per token, from any contiguous range.
  template <std::ranges::contiguous_range R>
    requires detail::reads_as<std::remove_reference_t<std::ranges::range_reference_t<R>>, T> &&
             (std::ranges::borrowed_range<R> || std::is_lvalue_reference_v<R>) &&
             (!mdspan_like<std::remove_cvref_t<R>>)
  constexpr row_view(R&& range)
      : row_view(std::ranges::data(range), static_cast<offset_t>(std::ranges::size(range))) {}
  /// [rows, ...] or, with all shards, [CP, rows, ...] flattened to rows by the caller.
  /// \throws invalid_input unless all dimensions after 0 are contiguous.
  template <mdspan_like M>
    requires std::same_as<typename M::element_type, T> && (M::rank() >= 1)
  constexpr row_view(const M& m)
      : row_view(m.data_handle(), detail::extent_of(m, 0), detail::payload_of(m, 1)) {
    if (rows > 1 && detail::stride_of(m, 0) != payload) {
      reject("stride of dimension 0", detail::stride_of(m, 0),
             {"packed rows must be contiguous, so it must be ", payload});
    }
  }
  /// A view that only reads, of one that may write.
  template <class U>
    requires(!std::same_as<U, T> && std::same_as<const U, T>)
  constexpr row_view(const row_view<U>& other) : row_view(other.data, other.rows, other.payload) {}

  SEQPACK_HD constexpr T* at(offset_t row) const noexcept { return data + row * payload; }

  footprint touched() const noexcept { return bytes_of(data, rows * payload); }
  std::uint64_t address_bits() const noexcept {
    return detail::address_bits(data) | detail::stride_bits<T>(payload);
  }
};

template <std::ranges::contiguous_range R>
  requires(!mdspan_like<std::remove_cvref_t<R>>)
row_view(R&&) -> row_view<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
template <mdspan_like M>
row_view(const M&) -> row_view<typename M::element_type>;

/// A batch that token (b, s) can be asked of. Models: batch_view, left_padded_view, ragged_view.
/// A table has batch() rows; row b has columns(b) columns, lead(b) of them before its token 0. The
/// columns of all rows, in order, are numbered from 0 to positions() - 1. touched() is the memory
/// of its tokens, bounds_touched() that of arrays which say where they are. address_bits() has a
/// bit set that the address of some token, in bytes, may have set: its lowest one is the alignment.
template <class V>
concept token_table = std::is_trivially_copyable_v<V> && element<typename V::value_type> &&
                      requires(const V& v, offset_t n) {
                        { v.batch() } -> std::same_as<offset_t>;
                        { v.payload() } -> std::same_as<offset_t>;
                        { v.positions() } -> std::same_as<offset_t>;
                        { v.first_position(n) } -> std::same_as<offset_t>;
                        { v.locate(n) } -> std::same_as<table_position>;
                        { v.columns(n) } -> std::same_as<offset_t>;
                        { v.lead(n) } -> std::same_as<offset_t>;
                        { v.stride() } -> std::same_as<offset_t>;
                        { v.at(n, n) } -> std::same_as<typename V::element_type*>;
                        { v.touched() } -> std::same_as<footprint>;
                        { v.address_bits() } -> std::same_as<std::uint64_t>;
                      };

/// [B, S, D], right-padded, strided in batch and token; the payload is contiguous.
template <element T>
class batch_view {
 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;

  constexpr batch_view() = default;
  /// A dense [batch, width, payload].
  /// \throws invalid_input for a size that is negative or above max_tokens, or for more bytes than
  /// max_view_bytes.
  constexpr batch_view(T* data, offset_t batch, offset_t width, offset_t payload = 1)
      : batch_view(data, batch, width, payload, dense_row(width, payload), payload) {}
  /// With strides in elements, which may be negative.
  /// \throws invalid_input also for strides that reach further than max_view_bytes, and for more
  /// than max_tokens positions.
  constexpr batch_view(T* data, offset_t batch, offset_t width, offset_t payload,
                       offset_t batch_stride, offset_t token_stride)
      : data_(data),
        batch_(batch),
        width_(width),
        payload_(payload),
        batch_stride_(batch_stride),
        token_stride_(token_stride) {
    detail::require_size("batch", batch);
    detail::require_size("width", width);
    detail::require_size("payload", payload);
    if (!detail::product_within(batch, width, max_tokens)) {
      reject("batch * width", {batch, " * ", width},
             {"a view has at most ", max_tokens, " positions"});
    }
    detail::require_elements<T>("batch * width * payload", batch * width, payload);
    require_reach("batch stride", batch, batch_stride);
    require_reach("token stride", width, token_stride);
  }
  /// [B, S] or [B, S, ...] of any layout whose payload is contiguous.
  /// \throws invalid_input for a payload that is not.
  template <mdspan_like M>
    requires std::same_as<typename M::element_type, T> && (M::rank() >= 2)
  constexpr batch_view(const M& m)
      : batch_view(m.data_handle(), detail::extent_of(m, 0), detail::extent_of(m, 1),
                   detail::payload_of(m, 2), detail::stride_of(m, 0), detail::stride_of(m, 1)) {}
  /// A view that only reads, of one that may write.
  template <class U>
    requires(!std::same_as<U, T> && std::same_as<const U, T>)
  constexpr batch_view(const batch_view<U>& other)
      : batch_view(other.data(), other.batch(), other.width(), other.payload(),
                   other.batch_stride(), other.stride()) {}

  SEQPACK_HD constexpr T* data() const noexcept { return data_; }
  SEQPACK_HD constexpr offset_t batch() const noexcept { return batch_; }
  SEQPACK_HD constexpr offset_t width() const noexcept { return width_; }
  SEQPACK_HD constexpr offset_t payload() const noexcept { return payload_; }
  SEQPACK_HD constexpr offset_t batch_stride() const noexcept { return batch_stride_; }
  SEQPACK_HD constexpr offset_t stride() const noexcept { return token_stride_; }

  SEQPACK_HD constexpr offset_t positions() const noexcept { return batch_ * width_; }
  SEQPACK_HD constexpr offset_t first_position(offset_t b) const noexcept { return b * width_; }
  SEQPACK_HD constexpr table_position locate(offset_t position) const noexcept {
    const offset_t b = divide(position, width_);
    return {b, position - b * width_};
  }
  SEQPACK_HD constexpr offset_t columns(offset_t) const noexcept { return width_; }
  SEQPACK_HD constexpr offset_t lead(offset_t) const noexcept { return 0; }
  SEQPACK_HD constexpr T* at(offset_t b, offset_t column) const noexcept {
    return data_ + b * batch_stride_ + column * token_stride_;
  }

  footprint touched() const noexcept {
    if (batch_ == 0 || width_ == 0 || payload_ == 0) return {};
    const offset_t across = (batch_ - 1) * batch_stride_;
    const offset_t along = (width_ - 1) * token_stride_;
    const auto address_at = [this](offset_t element) {
      return detail::address_of(data_) + static_cast<std::uintptr_t>(element) * sizeof(T);
    };
    const bool regular = token_stride_ > 0 && (batch_ == 1 || batch_stride_ % token_stride_ == 0);
    constexpr auto size = static_cast<offset_t>(sizeof(T));
    return {address_at(min_of(across, 0) + min_of(along, 0)),
            address_at(max_of(across, 0) + max_of(along, 0) + payload_),
            regular ? token_stride_ * size : 0, payload_ * size};
  }
  footprint bounds_touched() const noexcept { return {}; }
  std::uint64_t address_bits() const noexcept {
    return detail::address_bits(data_) | detail::stride_bits<T>(token_stride_) |
           detail::stride_bits<T>(batch_ > 1 ? batch_stride_ : 0);
  }

 private:
  static constexpr offset_t dense_row(offset_t width, offset_t payload) {
    detail::require_size("width", width);
    detail::require_size("payload", payload);
    detail::require_elements<T>("width * payload", width, payload);
    return width * payload;
  }
  /// A stride takes `count` steps less one, and a kernel may look at one position more.
  static constexpr void require_reach(const char* name, offset_t count, offset_t stride) {
    constexpr offset_t most = max_view_bytes / static_cast<offset_t>(sizeof(T));
    if (stride < -most || stride > most) {
      reject(name, stride, {"it must be from ", -most, " to ", most});
    }
    const offset_t step = stride < 0 ? -stride : stride;
    if (!detail::product_within(count, step, most)) {
      reject(name, stride, {count, " steps must reach at most ", most, " elements"});
    }
  }

  T* data_ = nullptr;
  offset_t batch_ = 0;
  offset_t width_ = 0;
  offset_t payload_ = 1;
  offset_t batch_stride_ = 0;
  offset_t token_stride_ = 1;
};

template <mdspan_like M>
batch_view(const M&) -> batch_view<typename M::element_type>;

/// [B, S, D] whose row b starts at column starts[b]: left-padded input, as generation makes it.
template <element T, std::integral Start>
class left_padded_view {
 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;

  constexpr left_padded_view() = default;
  /// `starts` points to batch() entries in the memory that the call runs on.
  constexpr left_padded_view(batch_view<T> table, const Start* starts)
      : table_(table), starts_(starts) {}

  SEQPACK_HD constexpr offset_t batch() const noexcept { return table_.batch(); }
  SEQPACK_HD constexpr offset_t payload() const noexcept { return table_.payload(); }
  SEQPACK_HD constexpr offset_t stride() const noexcept { return table_.stride(); }
  SEQPACK_HD constexpr offset_t positions() const noexcept { return table_.positions(); }
  SEQPACK_HD constexpr offset_t first_position(offset_t b) const noexcept {
    return table_.first_position(b);
  }
  SEQPACK_HD constexpr table_position locate(offset_t position) const noexcept {
    return table_.locate(position);
  }
  SEQPACK_HD constexpr offset_t columns(offset_t b) const noexcept { return table_.columns(b); }
  SEQPACK_HD constexpr offset_t lead(offset_t b) const noexcept {
    return detail::to_bounded_offset(starts_[b]);
  }
  SEQPACK_HD constexpr T* at(offset_t b, offset_t column) const noexcept {
    return table_.at(b, column);
  }
  constexpr const batch_view<T>& table() const noexcept { return table_; }
  constexpr const Start* bounds() const noexcept { return starts_; }
  footprint touched() const noexcept { return table_.touched(); }
  footprint bounds_touched() const noexcept { return bytes_of(starts_, batch()); }
  std::uint64_t address_bits() const noexcept { return table_.address_bits(); }

 private:
  batch_view<T> table_;
  const Start* starts_ = nullptr;
};

template <element T, std::integral Start>
left_padded_view(batch_view<T>, const Start*) -> left_padded_view<T, Start>;

/// Values without a [B, S] detour: row b holds the tokens offsets[b] to offsets[b + 1] - 1 of
/// `values`.
template <element T, std::integral Offset>
class ragged_view {
 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;

  constexpr ragged_view() = default;
  /// `offsets` points to batch + 1 entries, not decreasing and at most values.rows, in the memory
  /// that the call runs on.
  constexpr ragged_view(row_view<T> values, const Offset* offsets, offset_t batch)
      : values_(values), offsets_(offsets), batch_(batch) {
    detail::require_size("batch", batch);
  }

  SEQPACK_HD constexpr offset_t batch() const noexcept { return batch_; }
  SEQPACK_HD constexpr offset_t payload() const noexcept { return values_.payload; }
  SEQPACK_HD constexpr offset_t stride() const noexcept { return values_.payload; }
  SEQPACK_HD constexpr offset_t positions() const noexcept { return values_.rows; }
  SEQPACK_HD constexpr offset_t first_position(offset_t b) const noexcept {
    return detail::to_bounded_offset(offsets_[b]);
  }
  SEQPACK_HD constexpr table_position locate(offset_t position) const noexcept {
    offset_t low = 0;
    offset_t high = batch_;  // the first row that starts behind the position is in (low, high]
    while (high - low > 1) {
      const offset_t middle = low + (high - low) / 2;
      (first_position(middle) <= position ? low : high) = middle;
    }
    return {low, position - first_position(low)};
  }
  SEQPACK_HD constexpr offset_t columns(offset_t b) const noexcept {
    return first_position(b + 1) - first_position(b);
  }
  SEQPACK_HD constexpr offset_t lead(offset_t) const noexcept { return 0; }
  SEQPACK_HD constexpr T* at(offset_t b, offset_t column) const noexcept {
    return values_.at(first_position(b) + column);
  }
  constexpr const row_view<T>& values() const noexcept { return values_; }
  constexpr const Offset* bounds() const noexcept { return offsets_; }
  footprint touched() const noexcept { return values_.touched(); }
  footprint bounds_touched() const noexcept { return bytes_of(offsets_, batch_ + 1); }
  std::uint64_t address_bits() const noexcept { return values_.address_bits(); }

 private:
  row_view<T> values_;
  const Offset* offsets_ = nullptr;
  offset_t batch_ = 0;
};

template <element T, std::integral Offset>
ragged_view(row_view<T>, const Offset*, offset_t) -> ragged_view<T, Offset>;

namespace detail {

/// Whether a table's bounds are arrays, which only code that runs where they live can read.
template <class V>
inline constexpr bool bounds_in_memory = true;
template <class T>
inline constexpr bool bounds_in_memory<batch_view<T>> = false;

/// Whether a table holds real tokens and nothing else.
template <class V>
inline constexpr bool is_ragged = false;
template <class T, class Offset>
inline constexpr bool is_ragged<ragged_view<T, Offset>> = true;

}  // namespace detail

}  // namespace seqpack
