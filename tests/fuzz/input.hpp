/// \file
/// What a fuzzer's bytes mean: numbers, small ones and those at the ends of their types, and lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace seqpack::testing {

/// Takes the bytes from the front. Where there are no more, everything is 0.
class input {
 public:
  explicit input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }
  bool flag() { return byte() % 2 != 0; }
  /// From 0 to count - 1.
  std::size_t choice(std::size_t count) { return byte() % count; }

  /// Any number of a type: mostly small ones, the ends of the type and powers of two with their
  /// neighbours, and all others.
  template <class T = std::int64_t>
  T number() {
    const std::uint8_t how = byte();
    if (how < 160) return static_cast<T>(how % 40);
    if (how < 176) return std::numeric_limits<T>::max();
    if (how < 192) return std::numeric_limits<T>::min();
    if (how < 200) return static_cast<T>(-(how % 8) - 1);
    if (how < 232) {
      const auto power = std::uint64_t{1} << (byte() % 64);
      return static_cast<T>(power + byte() % 3 - 1);
    }
    T value{};
    std::uint8_t parts[sizeof(T)];
    for (auto& part : parts) part = byte();
    std::memcpy(&value, parts, sizeof value);
    return value;
  }
  /// From least to most.
  std::int64_t within(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(byte()) % (most - least + 1);
  }
  template <class T = std::int64_t>
  std::vector<T> numbers(std::size_t most) {
    std::vector<T> list(choice(most + 1));
    for (T& entry : list) entry = number<T>();
    return list;
  }
  std::string text(std::size_t most) {
    std::string result(choice(most + 1), ' ');
    for (char& c : result) c = static_cast<char>(byte());
    return result;
  }
  std::span<const std::uint8_t> rest() { return std::exchange(bytes_, {}); }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// A check that ends the program where it fails, with or without assertions.
inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace seqpack::testing

/// libFuzzer's entry; `replay.cpp` calls it without libFuzzer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
