/// \file
/// The name of a type of the program.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace seqpack::detail {

/// A type as the compiler spells it.
template <class T>
constexpr std::string_view spelling() {
  // "... [with T = name; ...]", "... [T = name]" or "... [with T=name]"
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("T =") == text.npos ? text.find("T=") + 2 : text.find("T =") + 3);
  text.remove_prefix(text.find_first_not_of(' '));
  return text.substr(0, std::min(text.rfind(']'), text.find(';')));
}

/// Floating point types of newer standards keep their own names: a float16 is not a bfloat16.
template <class T>
inline constexpr bool has_arithmetic_name = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                                            (std::is_integral_v<T> && sizeof(T) <= 8);

template <class T>
constexpr std::string_view arithmetic_name() {
  using namespace std::string_view_literals;
  constexpr int log2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  constexpr std::array ints{"int8"sv, "int16"sv, "int32"sv, "int64"sv};
  constexpr std::array uints{"uint8"sv, "uint16"sv, "uint32"sv, "uint64"sv};
  if constexpr (std::is_same_v<T, bool>) {
    return "bool";
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::is_same_v<T, float> ? "float32" : "float64";
  } else {
    return std::is_signed_v<T> ? ints[log2] : uints[log2];
  }
}

constexpr std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 14695981039346656037u;  // FNV-1a
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h;
}

}  // namespace seqpack::detail
