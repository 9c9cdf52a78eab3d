/// \file
/// Records that ranks send each other: numbers and texts as bytes, and back. Bytes that came from
/// another rank are checked before anything is made of them.
// For the folders above too.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"

namespace seqpack::detail::records {

/// Bytes that a record has room for.
inline constexpr std::size_t room = 216;
using bytes = std::array<std::byte, room>;

template <class T>
concept number =
    (std::integral<T> || std::floating_point<T>) && !std::same_as<std::remove_cv_t<T>, bool>;

/// Puts numbers and texts one after another, without gaps.
class writer {
 public:
  explicit writer(std::span<std::byte> to) : to_(to) {}

  void raw(const void* from, std::size_t size) {
    if (size > to_.size() - used_) {
      throw std::length_error("a record between ranks has room for " + std::to_string(to_.size()) +
                              " bytes");
    }
    if (size > 0) std::memcpy(to_.data() + used_, from, size);
    used_ += size;
  }
  template <number T>
  void put(T value) {
    raw(&value, sizeof value);
  }
  void flag(bool value) { put(static_cast<std::uint8_t>(value ? 1 : 0)); }
  /// One that counts from 0.
  template <class E>
    requires std::is_enum_v<E>
  void choice(E value) {
    put(static_cast<std::int32_t>(value));
  }
  void text(std::string_view value) {
    put(static_cast<std::uint16_t>(value.size()));
    raw(value.data(), value.size());
  }

 private:
  std::span<std::byte> to_;
  std::size_t used_ = 0;
};

/// Takes them out again. What a writer cannot have written is an invalid_input, under the name that
/// it is asked for.
class reader {
 public:
  explicit reader(std::span<const std::byte> from) : from_(from) {}

  void raw(void* to, std::size_t size) {
    if (size > from_.size() - used_) {
      reject("size", static_cast<offset_t>(from_.size()), "it must be that of all that is in it");
    }
    if (size > 0) std::memcpy(to, from_.data() + used_, size);
    used_ += size;
  }
  /// Of any value.
  template <number T>
  T get() {
    T value;
    raw(&value, sizeof value);
    return value;
  }
  template <std::integral T>
  T get(const char* name, T least, T most) {
    const T value = get<T>();
    if (value < least || value > most) {
      reject(name, std::to_string(value),
             "it must be from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
  }
  /// A number of tokens, elements or ranks, from 0 to max_tokens.
  offset_t size(const char* name) { return get<offset_t>(name, 0, max_tokens); }
  bool flag(const char* name) { return get<std::uint8_t>(name, 0, 1) != 0; }
  template <class E>
    requires std::is_enum_v<E>
  E choice(const char* name, E last) {
    return static_cast<E>(get<std::int32_t>(name, 0, static_cast<std::int32_t>(last)));
  }
  std::string text(const char* name, std::size_t longest) {
    const auto length = get<std::uint16_t>();
    if (length > longest) {
      reject(name, std::to_string(length) + " characters",
             "it must have at most " + std::to_string(longest));
    }
    std::string value(length, ' ');
    raw(value.data(), length);
    if (value.find('\0') != value.npos) {
      reject(name, "text with a null character", "it must have none");
    }
    return value;
  }

 private:
  std::span<const std::byte> from_;
  std::size_t used_ = 0;
};

/// How a type is written and read: `void write(writer&, const T&)` and `T read(reader&)`, both
/// static. By default by members of that kind.
template <class T>
struct traits {};
template <class T>
  requires requires(writer& to, reader& from, const T& value) {
    value.write(to);
    { T::read(from) } -> std::same_as<T>;
  }
struct traits<T> {
  static void write(writer& to, const T& value) { value.write(to); }
  static T read(reader& from) { return T::read(from); }
};
template <number T>
struct traits<T> {
  static void write(writer& to, T value) { to.put(value); }
  static T read(reader& from) { return from.get<T>(); }
};

/// Whether a type can be a record, or a part of one.
template <class T>
concept travels = requires(writer& to, reader& from, const T& value) {
  traits<T>::write(to, value);
  { traits<T>::read(from) } -> std::same_as<T>;
};

/// A record as bytes; what it does not fill is 0.
/// \throws std::length_error for one that is larger than its room.
template <travels T>
bytes write(const T& record) {
  bytes result{};
  writer to(result);
  traits<T>::write(to, record);
  return result;
}

/// A record from bytes, of which nothing is taken for granted.
/// \throws invalid_input for a number, text or choice that no rank writes, and for too few bytes.
template <travels T>
T read(std::span<const std::byte> from) {
  reader r(from);
  return traits<T>::read(r);
}

}  // namespace seqpack::detail::records
