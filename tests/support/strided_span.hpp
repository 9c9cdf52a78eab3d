/// \file
/// The least that passes for an mdspan: a pointer, extents and strides.
#pragma once

#include <array>
#include <cstddef>

namespace seqpack::testing {

template <class T, std::size_t Rank>
class strided_span {
 public:
  using element_type = T;

  constexpr strided_span(T* data, std::array<std::ptrdiff_t, Rank> extents,
                         std::array<std::ptrdiff_t, Rank> strides)
      : data_(data), extents_(extents), strides_(strides) {}

  static constexpr std::size_t rank() { return Rank; }
  constexpr std::ptrdiff_t extent(std::size_t r) const { return extents_[r]; }
  constexpr std::ptrdiff_t stride(std::size_t r) const { return strides_[r]; }
  constexpr T* data_handle() const { return data_; }

 private:
  T* data_;
  std::array<std::ptrdiff_t, Rank> extents_;
  std::array<std::ptrdiff_t, Rank> strides_;
};

}  // namespace seqpack::testing
