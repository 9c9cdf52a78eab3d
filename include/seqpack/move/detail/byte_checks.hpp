/// \file
/// What views and fields of bytes check, and how sizes in elements become sizes in bytes.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/detail/view_checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/move/detail/byte_fill.hpp"
#include "seqpack/move/detail/fields.hpp"

namespace seqpack::detail {

inline void require_element_size(offset_t size) {
  if (size < 1 || size > max_tokens) {
    reject("element size", size, {"it must be from 1 to ", max_tokens});
  }
}

/// Bytes of a payload of so many elements.
inline offset_t byte_payload(offset_t payload, offset_t element_size) {
  require_element_size(element_size);
  require_size("payload", payload);
  if (!product_within(payload, element_size, max_tokens)) {
    reject("payload * element size", {payload, " * ", element_size},
           {"a size must be at most ", max_tokens});
  }
  return payload * element_size;
}

/// A stride of `count` steps in bytes.
inline offset_t byte_stride(const char* name, offset_t count, offset_t stride,
                            offset_t element_size) {
  require_element_size(element_size);
  const offset_t most = max_view_bytes / element_size;
  if (stride < -most || stride > most) {
    reject(name, stride, {"it must be from ", -most, " to ", most});
  }
  if (!product_within(count, stride < 0 ? -stride : stride, most)) {
    reject(name, stride, {count, " steps must reach at most ", most, " elements"});
  }
  return stride * element_size;
}

template <class View>
offset_t payload_bytes(const View& view) {
  if constexpr (fields::packed_rows<View>) {
    return view.payload;
  } else {
    return view.payload();
  }
}

inline void require_whole_elements(const char* what, offset_t bytes, offset_t element_size) {
  if (bytes % element_size != 0) {
    reject(what, bytes,
           {"its bytes must be a multiple of ", element_size, ", the size of an element"});
  }
}

/// Says what is wrong with the ends of a field of bytes, once, and whether nothing is.
template <class From, class To>
constexpr bool checked_bytes() {
  if constexpr (!fields::tokens_view<From> || !fields::tokens_view<To>) {
    return fields::checked<std::conditional_t<fields::tokens_view<From>, From, fields::refused>,
                           std::conditional_t<fields::tokens_view<To>, To, fields::refused>,
                           byte_fill>();
  } else {
    constexpr bool of_bytes = std::same_as<typename From::value_type, std::byte> &&
                              std::same_as<typename To::value_type, std::byte>;
    static_assert(of_bytes,
                  "the ends of a byte_field are views of std::byte: byte_batch, byte_rows, and "
                  "ragged_view or left_padded_view of them");
    if constexpr (of_bytes) {
      return fields::checked<From, To, byte_fill>();
    } else {
      return false;
    }
  }
}

/// A source that may be written to is read like any other, by the same instantiation.
template <class View>
constexpr View read_only(const View& view) {
  return view;
}
constexpr row_view<const std::byte> read_only(const row_view<std::byte>& view) {
  return view;
}
constexpr batch_view<const std::byte> read_only(const batch_view<std::byte>& view) {
  return view;
}

}  // namespace seqpack::detail
