/// \file
/// The concept of a multidimensional view of another library, such as std::mdspan.
#pragma once

#include <concepts>
#include <cstddef>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// Anything with the members of std::mdspan: std::mdspan, cuda::std::mdspan, the reference one.
template <class M>
concept mdspan_like = requires(const M& m, typename M::element_type* p) {
  { M::rank() } -> std::convertible_to<std::size_t>;
  { m.extent(0) } -> std::convertible_to<offset_t>;
  { m.stride(0) } -> std::convertible_to<offset_t>;
  { m.data_handle() } -> std::convertible_to<typename M::element_type*>;
};

}  // namespace seqpack
