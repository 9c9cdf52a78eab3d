/// \file
/// Memory for outputs that shows what was written to it and what should not have been.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "seqpack/core/config.hpp"

namespace seqpack::testing {

/// `size` elements between two guard zones. Every byte starts as poison, so that an element nobody
/// wrote, and a byte written outside, are both seen. The elements start `offset` bytes behind a
/// 16-byte boundary; `offset` must suit alignof(T).
template <class T>
class poisoned_buffer {
 public:
  static constexpr unsigned char poison = 0xA5;

  explicit poisoned_buffer(offset_t size, std::size_t offset = 0)
      : first_(guard + offset),
        size_(static_cast<std::size_t>(size)),
        bytes_(guard + offset + size_ * sizeof(T) + guard, poison) {}

  T* data() noexcept { return reinterpret_cast<T*>(bytes_.data() + first_); }
  const T* data() const noexcept { return reinterpret_cast<const T*>(bytes_.data() + first_); }
  std::size_t size() const noexcept { return size_; }
  T& operator[](std::size_t k) noexcept { return data()[k]; }
  std::span<T> span() noexcept { return {data(), size_}; }
  std::vector<T> values() const { return {data(), data() + size_}; }

  /// Whether nothing was written outside of the elements.
  bool guards_intact() const {
    const auto end = bytes_.begin() + static_cast<std::ptrdiff_t>(first_ + size_ * sizeof(T));
    return all_poison(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(first_)) &&
           all_poison(end, bytes_.end());
  }
  /// Whether nothing was written at all.
  bool untouched() const { return all_poison(bytes_.begin(), bytes_.end()); }

  friend bool operator==(const poisoned_buffer& a, const poisoned_buffer& b) {
    return a.size_ == b.size_ && a.bytes_.size() == b.bytes_.size() && a.bytes_ == b.bytes_;
  }

 private:
  static constexpr std::size_t guard = 64;

  template <class Iterator>
  static bool all_poison(Iterator first, Iterator last) {
    return std::all_of(first, last, [](unsigned char byte) { return byte == poison; });
  }

  std::size_t first_;
  std::size_t size_;
  std::vector<unsigned char> bytes_;
};

/// Equality of representations: it tells NaN from NaN, and may look at a poisoned bool.
template <class T>
bool same_bytes(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

}  // namespace seqpack::testing
