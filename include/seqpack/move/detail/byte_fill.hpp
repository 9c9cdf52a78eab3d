/// \file
/// The fill of elements whose type is only known at run time.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/move/detail/transfer.hpp"

namespace seqpack::detail {

/// The bytes of one element, over and over: a filler of the bytes of a payload. It holds no more of
/// them than repeat, which is a single byte where the fill is 0.
class byte_fill {
 public:
  /// Bytes that it can hold: the parameters of a launch have room for them in 64 fields.
  static constexpr offset_t capacity = 32;

  /// Fills with 0.
  constexpr byte_fill() = default;
  /// \throws invalid_input for more bytes than it holds that do not repeat.
  explicit byte_fill(std::span<const std::byte> element) {
    const auto size = static_cast<offset_t>(element.size());
    if (size == 0) return;
    while (!repeats(element, period_)) ++period_;
    if (period_ > capacity) {
      reject("size of fill", size,
             {"a fill has at most ", capacity, " bytes, unless they repeat themselves"});
    }
    whole_ = capacity - remainder(capacity, period_);
    for (offset_t k = 0; k < capacity; ++k) {
      bytes_[k] = element[static_cast<std::size_t>(remainder(k, period_))];
    }
  }

  /// Bytes after which it begins again.
  SEQPACK_HD constexpr offset_t period() const noexcept { return period_; }
  SEQPACK_HD std::byte operator()(offset_t k) const noexcept {
    return bytes_[remainder(k, period_)];
  }
  /// Its first 16 bytes.
  SEQPACK_HD block<16> pattern() const noexcept {
    block<16> out;
    memcpy(&out, bytes_, sizeof out);
    return out;
  }

  /// Fills `count` bytes on the host, in pieces that lie in the first cache once they are written.
  void write(std::byte* to, offset_t count) const {
    constexpr offset_t largest = 4096;
    offset_t piece = min_of(count, whole_);
    copy_bytes(to, bytes_, piece);
    if (piece == count) return;
    if (period_ == 1) {
      std::memset(to + piece, static_cast<int>(bytes_[0]), static_cast<std::size_t>(count - piece));
      return;
    }
    for (offset_t written = piece; written < count;) {
      const offset_t next = min_of(piece, count - written);
      copy_bytes(to + written, to, next);
      written += next;
      if (piece < largest) piece = written;
    }
  }

 private:
  static bool repeats(std::span<const std::byte> element, offset_t period) {
    const auto size = static_cast<offset_t>(element.size());
    if (remainder(size, period) != 0) return false;
    const auto rest = static_cast<std::size_t>(size - period);
    return rest == 0 || std::memcmp(element.data(), element.data() + period, rest) == 0;
  }

  alignas(16) std::byte bytes_[capacity] = {};
  offset_t period_ = 1;
  offset_t whole_ = capacity;  // bytes of whole periods
};

}  // namespace seqpack::detail
