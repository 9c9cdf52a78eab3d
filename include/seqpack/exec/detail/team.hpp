/// \file
/// The chunks in which teams take the elements of a row.
// For the folders above too.
#pragma once

#include <type_traits>

#include "seqpack/core/config.hpp"

namespace seqpack::detail {

/// Whether memory can be cut into 16-byte pieces of whole, aligned elements of this type.
template <class T>
inline constexpr bool divides_16_bytes = 16 % sizeof(T) == 0 && std::alignment_of_v<T> == sizeof(T);

/// Neighbours in a row that one thread takes together: 16 bytes, so that a device moves them with
/// one access; 1 where that is not possible.
template <class T>
inline constexpr int elements_per_chunk =
    divides_16_bytes<T> ? 16 / static_cast<int>(sizeof(T)) : 1;

/// A function of any arguments, for the check of the concept.
struct archetype {
  template <class... A>
  SEQPACK_HD float operator()(const A&...) const {
    return 0;
  }
};

}  // namespace seqpack::detail
