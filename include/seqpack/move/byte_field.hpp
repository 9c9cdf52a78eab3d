/// \file
/// byte_field: a tensor that moves whose element type is only known at run time.
#pragma once

#include <cstddef>
#include <span>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/move/detail/byte_checks.hpp"
#include "seqpack/move/detail/byte_fill.hpp"
#include "seqpack/move/detail/fields.hpp"
#include "seqpack/move/field.hpp"

namespace seqpack {

/// Packed tokens [rows, payload] of elements of `element_size` bytes, contiguous: a view of bytes,
/// whose payload is in bytes.
///
/// \param data the elements, at any address; of constant memory the view only reads
/// \throws invalid_input for an element size below 1, and for sizes as row_view.
inline row_view<std::byte> byte_rows(void* data, offset_t element_size, offset_t rows,
                                     offset_t payload = 1) {
  return {static_cast<std::byte*>(data), rows, detail::byte_payload(payload, element_size)};
}
/// The same of constant memory.
inline row_view<const std::byte> byte_rows(const void* data, offset_t element_size, offset_t rows,
                                           offset_t payload = 1) {
  return {static_cast<const std::byte*>(data), rows, detail::byte_payload(payload, element_size)};
}

/// A dense batch [batch, width, payload] of elements of `element_size` bytes: a view of bytes, whose
/// payload and strides are in bytes. A ragged_view takes byte_rows, a left_padded_view a byte_batch.
///
/// \param data the elements, at any address; of constant memory the view only reads
/// \throws invalid_input for an element size below 1, and for sizes as batch_view.
inline batch_view<std::byte> byte_batch(void* data, offset_t element_size, offset_t batch,
                                        offset_t width, offset_t payload = 1) {
  return {static_cast<std::byte*>(data), batch, width, detail::byte_payload(payload, element_size)};
}
/// The same of constant memory.
inline batch_view<const std::byte> byte_batch(const void* data, offset_t element_size,
                                              offset_t batch, offset_t width,
                                              offset_t payload = 1) {
  return {static_cast<const std::byte*>(data), batch, width,
          detail::byte_payload(payload, element_size)};
}

/// The same with strides, in elements; they may be negative.
/// \throws invalid_input also for strides that reach further than max_view_bytes.
inline batch_view<std::byte> byte_batch(void* data, offset_t element_size, offset_t batch,
                                        offset_t width, offset_t payload, offset_t batch_stride,
                                        offset_t token_stride) {
  return {static_cast<std::byte*>(data),
          batch,
          width,
          detail::byte_payload(payload, element_size),
          detail::byte_stride("batch stride", batch, batch_stride, element_size),
          detail::byte_stride("token stride", width, token_stride, element_size)};
}
/// The same of constant memory.
inline batch_view<const std::byte> byte_batch(const void* data, offset_t element_size,
                                              offset_t batch, offset_t width, offset_t payload,
                                              offset_t batch_stride, offset_t token_stride) {
  return byte_batch(const_cast<void*>(data), element_size, batch, width, payload, batch_stride,
                    token_stride);
}

/// Names a tensor for pack, unpack or rearrange whose element type is only known at run time: it is
/// given by pointers, the size of an element and the bytes of its fill. All element types have one
/// instantiation, which moves what `field` would with as many bytes, and as fast.
///
///     const float pad = 0.5F;
///     pack(host, layout, full_row,
///          byte_field(byte_batch(hidden, 4, B, S, D), byte_rows(packed, 4, T, D), 4,
///                     std::as_bytes(std::span(&pad, 1))));
///
/// \param from, to views of bytes: byte_batch, byte_rows, and ragged or left-padded views of them
/// \param element_size bytes of an element, 1 or more; nothing is asked of addresses
/// \param fill the bytes of one element, which every element of the payload gets where there is no
/// token; none: 0. They are copied. At most 32 bytes that do not repeat themselves.
/// \throws invalid_input for a payload that is not made of such elements, and for a fill of another
/// size. Errors of the call that moves the field count payloads in bytes.
template <class From, class To>
auto byte_field(const From& from, const To& to, offset_t element_size,
                std::span<const std::byte> fill = {}) {
  if constexpr (!detail::checked_bytes<From, To>()) {
    return detail::fields::refused_field{};
  } else {
    detail::require_element_size(element_size);
    detail::require_whole_elements("source payload", detail::payload_bytes(from), element_size);
    detail::require_whole_elements("target payload", detail::payload_bytes(to), element_size);
    const auto given = static_cast<offset_t>(fill.size());
    if (given != 0 && given != element_size) {
      reject("size of fill", given, {"it must be ", element_size, ", the size of an element"});
    }
    const auto source = detail::read_only(from);
    return field_t<std::remove_const_t<decltype(source)>, To, detail::byte_fill>{
        source, to, detail::byte_fill(fill)};
  }
}

}  // namespace seqpack
