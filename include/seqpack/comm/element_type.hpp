/// \file
/// Element types as values, so that ranks can compare them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"

namespace seqpack {

namespace detail {

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

}  // namespace detail

/// What ranks call an element type. Arithmetic types are named by what they hold ("int64", not
/// "long"); every other type, such as half, bfloat16, fp8 or a struct, by its spelling in the
/// program. Specialise it for a name of one's own, for example one that programs in other languages
/// or of other compilers use.
template <element T>
struct element_traits {
  static constexpr std::string_view name() {
    if constexpr (detail::has_arithmetic_name<T>) {
      return detail::arithmetic_name<T>();
    } else {
      return detail::spelling<T>();
    }
  }
};

/// An element type at run time: a name and a size in bytes. Any name will do; two types are the
/// same where both agree. Trivially copyable, so that it travels.
class element_type {
 public:
  /// The longest name that is kept as it is; of a longer one the end becomes a hash of the whole.
  static constexpr std::size_t longest_name = 47;

  /// No type: it is equal to no other one.
  constexpr element_type() = default;
  /// \throws invalid_input for a size below 1 and for an empty name.
  constexpr element_type(std::string_view name, offset_t size) : size_(size) {
    if (size < 1) reject("size of an element", size, "it must be at least 1 byte");
    if (name.empty()) reject("name of an element type", "empty", "it must have a name");
    std::copy_n(name.begin(), std::min(name.size(), longest_name), name_.begin());
    if (name.size() <= longest_name) return;
    std::uint64_t hash = detail::hash(name);
    name_[longest_name - 9] = '#';
    for (std::size_t k = longest_name - 8; k < longest_name; ++k, hash >>= 4) {
      name_[k] = "0123456789abcdef"[hash & 15];
    }
  }
  /// The type of the program.
  template <element T>
  static constexpr element_type of() {
    using plain = std::remove_cv_t<T>;
    return {element_traits<plain>::name(), static_cast<offset_t>(sizeof(plain))};
  }

  constexpr std::string_view name() const noexcept { return name_.data(); }
  /// Bytes of one element.
  constexpr offset_t size() const noexcept { return size_; }
  /// "float32", and for a type whose name does not end in its bits "sample (12 bytes)".
  std::string to_string() const {
    std::string plain(name());
    if (plain.empty()) return "none";
    const std::string bits = std::to_string(size_ * 8);
    if (plain.size() > bits.size() && plain.ends_with(bits)) {
      const char before = plain[plain.size() - bits.size() - 1];
      if (before < '0' || before > '9') return plain;
    }
    return plain + " (" + std::to_string(size_) + (size_ == 1 ? " byte)" : " bytes)");
  }

  friend constexpr bool operator==(const element_type&, const element_type&) = default;

 private:
  offset_t size_ = 0;
  std::array<char, longest_name + 1> name_{};
};

}  // namespace seqpack
