/// \file
/// Element types of every size and kind, and distinct values of each.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include "seqpack/core/config.hpp"

namespace seqpack::testing {

struct bfloat16_like {
  std::uint16_t bits;
};
struct fp8_like {
  std::uint8_t bits;
};
struct triple {
  float x, y, z;
};
struct record {
  std::int64_t id;
  double weight;
  std::int32_t rank;
  float score;
};
static_assert(sizeof(triple) == 12 && sizeof(record) == 24);

/// Makes a value of T from a number; numbers up to 100 give distinct ones, but for bool. Never the
/// poison of poisoned_buffer.
template <class T>
T make_element(offset_t n) {
  const auto small = static_cast<int>(n % 100 + 1);
  if constexpr (std::is_same_v<T, bool>) {
    return n % 3 == 0;
  } else if constexpr (std::is_same_v<T, bfloat16_like>) {
    return {static_cast<std::uint16_t>(0x3F80 + small)};
  } else if constexpr (std::is_same_v<T, fp8_like>) {
    return {static_cast<std::uint8_t>(small)};
  } else if constexpr (std::is_same_v<T, triple>) {
    return {static_cast<float>(n), static_cast<float>(-n), 0.5F * static_cast<float>(n)};
  } else if constexpr (std::is_same_v<T, record>) {
    return {n, 0.25 * static_cast<double>(n), -small, static_cast<float>(small)};
  } else if constexpr (sizeof(T) <= 2) {
    return static_cast<T>(small);
  } else {
    return static_cast<T>(n + 1);
  }
}

/// Lists of types for test cases; wrapped, because a _Float16 has no name of its own at run time.
template <class... T>
using element_list = std::tuple<std::type_identity<T>...>;

using all_elements =
    element_list<char, wchar_t, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t,
                 std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, bool, float, double,
                 _Float16, bfloat16_like, fp8_like, triple, record>;

/// One of every size, 1 to 24 bytes.
using element_sizes = element_list<fp8_like, bfloat16_like, float, double, triple, record>;

}  // namespace seqpack::testing
