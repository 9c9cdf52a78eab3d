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

#include "seqpack/comm/detail/type_name.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"

namespace seqpack {

/// The name of an element type between ranks. Arithmetic types are named by what they hold
/// ("int64", not "long"); every other type, such as half, bfloat16, fp8 or a struct, by its
/// spelling in the program. Specialise it for another name, for example one that programs in other
/// languages or of other compilers use.
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

/// An element type at run time: a name and a size in bytes. Any name is valid; two types are equal
/// if both agree. Trivially copyable, so that ranks can exchange it.
class element_type {
 public:
  /// The longest name that is kept unchanged; the end of a longer one is replaced by a hash of it.
  static constexpr std::size_t longest_name = 47;

  /// No type; it differs from every type.
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
  /// The element type of T.
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
