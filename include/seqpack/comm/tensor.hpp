/// \file
/// Tensors of any shape, of a static or a run-time element type, which broadcast_tensor moves.
#pragma once

#include <array>
#include <concepts>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "seqpack/comm/element_type.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"

namespace seqpack {

/// The largest number of dimensions of a tensor.
inline constexpr int max_dims = 8;

/// From 0 to 8 dimensions; with 0 of them it is one element. Trivially copyable, so that
/// ranks can exchange it.
class tensor_shape {
 public:
  /// No dimensions: one element.
  constexpr tensor_shape() = default;
  /// \throws invalid_input for more than 8 dimensions, for one below 0, and for more than
  /// max_tokens elements.
  constexpr tensor_shape(std::span<const offset_t> dims) {
    if (dims.size() > static_cast<std::size_t>(max_dims)) {
      reject("number of dimensions", static_cast<offset_t>(dims.size()),
             "it must be at most " + std::to_string(max_dims));
    }
    for (const offset_t extent : dims) add(extent);
  }
  constexpr tensor_shape(std::initializer_list<offset_t> dims)
      : tensor_shape(std::span(dims.begin(), dims.size())) {}

  constexpr int dims() const noexcept { return count_; }
  constexpr offset_t operator[](int dim) const noexcept {
    return extents_[static_cast<std::size_t>(dim)];
  }
  constexpr std::span<const offset_t> extents() const noexcept {
    return {extents_.data(), static_cast<std::size_t>(count_)};
  }
  constexpr offset_t elements() const noexcept { return elements_; }
  /// "[2, 4]"
  std::string to_string() const {
    std::string text = "[";
    for (const offset_t extent : extents()) {
      text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
    }
    return text + "]";
  }

  friend constexpr bool operator==(const tensor_shape&, const tensor_shape&) = default;

 private:
  constexpr void add(offset_t extent) {
    if (extent < 0) {
      reject(entry_name("shape", count_), extent, "an extent must be at least 0");
    }
    if (extent > 0 && positive_ > max_tokens / extent) {
      reject(entry_name("shape", count_), extent,
             "a tensor holds at most " + std::to_string(max_tokens) + " elements");
    }
    extents_[static_cast<std::size_t>(count_++)] = extent;
    elements_ *= extent;
    if (extent > 0) positive_ *= extent;
  }

  std::array<offset_t, max_dims> extents_{};
  offset_t elements_ = 1;
  offset_t positive_ = 1;  ///< product of the extents above 0, which bounds all strides
  int count_ = 0;
};

/// Elements between neighbours in each dimension; only as many as the shape has dimensions count.
using tensor_strides = std::array<offset_t, max_dims>;

/// The strides of a shape without gaps, the last dimension fastest.
constexpr tensor_strides dense_strides(const tensor_shape& shape) noexcept {
  tensor_strides strides{};
  offset_t next = 1;
  for (int d = shape.dims() - 1; d >= 0; --d) {
    strides[static_cast<std::size_t>(d)] = next;
    next *= shape[d];
  }
  return strides;
}

/// Whether these strides leave no gaps. Those of dimensions of extent 1, and any of a tensor
/// without elements, do not matter.
constexpr bool is_dense(const tensor_shape& shape, const tensor_strides& strides) noexcept {
  if (shape.elements() == 0) return true;
  const tensor_strides dense = dense_strides(shape);
  for (int d = 0; d < shape.dims(); ++d) {
    const auto k = static_cast<std::size_t>(d);
    if (shape[d] != 1 && strides[k] != dense[k]) return false;
  }
  return true;
}

/// A tensor whose element type is known at run time. Does not own its elements.
struct any_tensor_view {
  void* data = nullptr;
  element_type type;
  tensor_shape shape;
  tensor_strides strides{};
  bool read_only = false;  ///< it came from data that is const

  any_tensor_view() = default;
  /// Without gaps.
  any_tensor_view(void* elements, element_type of, const tensor_shape& extents)
      : any_tensor_view(elements, of, extents, dense_strides(extents)) {}
  /// With strides in elements.
  any_tensor_view(void* elements, element_type of, const tensor_shape& extents,
                  const tensor_strides& steps)
      : data(elements), type(of), shape(extents), strides(steps) {}

  offset_t bytes() const noexcept { return shape.elements() * type.size(); }
};

template <class View>
class basic_tensor;

/// A tensor of a static element type. Does not own its elements.
///
///     tensor_view<float> weights(pointer, {rows, columns});
///     tensor_view ids(vector);                         // one dimension
///     tensor_view logits(mdspan);
template <element T>
struct tensor_view {
  using element_type = T;

  T* data = nullptr;
  tensor_shape shape;
  tensor_strides strides{};

  tensor_view() = default;
  /// Without gaps.
  tensor_view(T* elements, const tensor_shape& extents)
      : tensor_view(elements, extents, dense_strides(extents)) {}
  /// With strides in elements.
  tensor_view(T* elements, const tensor_shape& extents, const tensor_strides& steps)
      : data(elements), shape(extents), strides(steps) {}
  /// One dimension, from any contiguous range.
  template <std::ranges::contiguous_range R>
    requires std::same_as<std::remove_reference_t<std::ranges::range_reference_t<R>>, T> &&
             (std::ranges::borrowed_range<R> || std::is_lvalue_reference_v<R>) &&
             (!mdspan_like<std::remove_cvref_t<R>>)
  tensor_view(R&& range)
      : tensor_view(std::ranges::data(range), {static_cast<offset_t>(std::ranges::size(range))}) {}
  /// Of any layout with strides.
  template <mdspan_like M>
    requires std::same_as<typename M::element_type, T> && (M::rank() <= max_dims)
  tensor_view(const M& m) : data(m.data_handle()) {
    std::array<offset_t, max_dims> extents{};
    for (std::size_t d = 0; d < M::rank(); ++d) {
      extents[d] = static_cast<offset_t>(m.extent(d));
      strides[d] = static_cast<offset_t>(m.stride(d));
    }
    shape = tensor_shape(std::span<const offset_t>(extents.data(), M::rank()));
  }

  /// A view that only reads, of one that may write.
  template <class U>
    requires(!std::same_as<U, T> && std::same_as<const U, T>)
  tensor_view(const tensor_view<U>& other) : tensor_view(other.data, other.shape, other.strides) {}
  /// The view of a tensor, which must outlive it.
  tensor_view(const basic_tensor<tensor_view>& tensor) : tensor_view(tensor.view()) {}

  operator any_tensor_view() const {
    any_tensor_view any(const_cast<void*>(static_cast<const void*>(data)),
                        seqpack::element_type::of<T>(), shape, strides);
    any.read_only = std::is_const_v<T>;
    return any;
  }
  /// All elements, in the order of the dimensions; of a dense tensor, where its memory can be
  /// reached.
  std::span<T> elements() const noexcept {
    return {data, static_cast<std::size_t>(shape.elements())};
  }
  offset_t bytes() const noexcept { return shape.elements() * static_cast<offset_t>(sizeof(T)); }
};

template <std::ranges::contiguous_range R>
  requires(!mdspan_like<std::remove_cvref_t<R>>)
tensor_view(R&&) -> tensor_view<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
template <mdspan_like M>
tensor_view(const M&) -> tensor_view<typename M::element_type>;
template <element T>
tensor_view(const basic_tensor<tensor_view<T>>&) -> tensor_view<T>;

/// A tensor, and its memory where it owns that. Movable, not copyable. It is no executor_array, as its
/// memory comes from a communicator, whose ranks must reach it, or stays the caller's, and only the
/// root of a broadcast knows shape and element type beforehand.
template <class View>
class basic_tensor {
 public:
  basic_tensor() = default;
  /// \param view the tensor
  /// \param memory keeps the elements alive; none where the caller does
  explicit basic_tensor(const View& view, std::shared_ptr<void> memory = nullptr)
      : view_(view), memory_(std::move(memory)) {}
  basic_tensor(basic_tensor&&) noexcept = default;
  basic_tensor& operator=(basic_tensor&&) noexcept = default;

  const View& view() const noexcept { return view_; }
  auto data() const noexcept { return view_.data; }
  const tensor_shape& shape() const noexcept { return view_.shape; }
  /// What keeps the elements alive; none where the caller does.
  const std::shared_ptr<void>& memory() const noexcept { return memory_; }
  /// Whether it owns its memory.
  bool owns_memory() const noexcept { return memory_ != nullptr; }
  /// All elements, in the order of the dimensions; dense tensors of static type, where their memory
  /// can be reached.
  auto elements() const noexcept
    requires(!std::same_as<View, any_tensor_view>)
  {
    return view_.elements();
  }

  element_type type() const
    requires std::same_as<View, any_tensor_view>
  {
    return view_.type;
  }
  /// The same elements with a static type.
  /// \throws invalid_input where that is not their type.
  template <element T>
    requires std::same_as<View, any_tensor_view>
  tensor_view<T> as() const {
    const auto wanted = seqpack::element_type::of<T>();
    if (wanted != view_.type) {
      reject("element type", view_.type.to_string(), "it must be " + wanted.to_string());
    }
    if (view_.read_only && !std::is_const_v<T>) {
      reject("tensor", "read-only", "its elements must be asked for as const");
    }
    return {static_cast<T*>(view_.data), view_.shape, view_.strides};
  }

 private:
  View view_;
  std::shared_ptr<void> memory_;
};

/// A tensor of a static element type.
template <element T>
using tensor = basic_tensor<tensor_view<T>>;
/// A tensor whose element type is known at run time.
using any_tensor = basic_tensor<any_tensor_view>;

}  // namespace seqpack
