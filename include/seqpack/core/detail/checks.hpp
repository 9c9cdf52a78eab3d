/// \file
/// What every operation checks of its arguments before it writes anything: sizes, pointers, and that outputs
/// do not alias.
// For the folders above too.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/exact.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"

namespace seqpack::detail {

/// What a check is about: one of the fields or of the arrays that a call was given, the layout, or
/// what a call has one of.
struct subject {
  const char* kind = nullptr;
  offset_t index = -1;

  /// "field 2's target", "the layout's order", or just "lengths": how errors name it.
  [[gnu::noinline, gnu::cold]] std::string name(std::string_view what) const {
    if (kind == nullptr) return std::string(what);
    if (index < 0) return error_text{kind, "'s ", what}.joined();
    return error_text{kind, " ", index, "'s ", what}.joined();
  }
};
/// What a call has one of.
inline constexpr subject alone{};
inline constexpr subject of_layout{"the layout"};
constexpr subject of_field(offset_t index) {
  return {"field", index};
}
constexpr subject of_array(offset_t index) {
  return {"array", index};
}

/// \throws invalid_input where T does not hold all whole numbers up to the largest value.
template <class T>
void require_range(subject whose, const char* what, offset_t largest) {
  if (counts_to<T>(largest)) return;
  if constexpr (std::integral<T>) {
    reject(whose.name(what), largest,
           {"the element type of the array holds at most ", std::numeric_limits<T>::max()});
  } else if constexpr (std::floating_point<T>) {
    reject(whose.name(what), largest,
           {"the element type of the array counts to at most 2^", std::numeric_limits<T>::digits});
  } else {
    reject(whose.name(what), largest, "the element type of the array does not count that far");
  }
}

[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_number(subject whose, const char* what,
                                                                 offset_t found, offset_t expected,
                                                                 const char* source) {
  reject(whose.name(what), found, {"it must be ", expected, ", ", source});
}

inline void require_equal(subject whose, const char* what, offset_t found, offset_t expected,
                          const char* source) {
  if (found != expected) refuse_number(whose, what, found, expected, source);
}

[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_memory(const std::string& name,
                                                                 offset_t elements) {
  reject(name, "null", {"it must point to ", elements, " elements"});
}
[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_address(const std::string& name,
                                                                  std::uint64_t beside,
                                                                  std::size_t alignment) {
  reject(name, {"misaligned by ", beside},
         {"its address must be a multiple of ", alignment, ", the alignment of its elements"});
}

/// \throws invalid_input for memory of so many elements that is null, or not aligned as they are.
template <class T>
void require_memory(subject whose, const char* what, const T* data, offset_t elements) {
  if (elements <= 0) return;
  if (data == nullptr) refuse_memory(whose.name(what), elements);
  const std::uint64_t beside = detail::address_bits(data) % alignof(T);
  if (beside != 0) refuse_address(whose.name(what), beside, alignof(T));
}

/// Memory that a call reads or writes, and what errors call it.
struct region {
  footprint bytes{};
  subject whose{};
  std::string_view what;
  std::string_view part;  ///< of it

  std::string name() const { return error_text{whose.name(what), part}.joined(); }
};

/// \throws invalid_input where something that is written shares memory with anything else.
inline void require_apart(std::span<const region> read, std::span<const region> written) {
  const auto require = [](const region& one, const region& other) {
    if (one.bytes.overlaps(other.bytes)) {
      reject(one.name(), {"in the memory of ", other.name()}, "outputs must not alias");
    }
  };
  for (std::size_t i = 0; i < written.size(); ++i) {
    for (const region& other : read) require(written[i], other);
    for (std::size_t k = 0; k < i; ++k) require(written[i], written[k]);
  }
}

/// The regions of one call: at most Reads beside the layout's, and Writes. Allocates nothing.
template <std::size_t Reads, std::size_t Writes>
class regions {
 public:
  void read(const footprint& bytes, subject whose, std::string_view what,
            std::string_view part = {}) {
    if (reads_ == read_.size()) {
      reject(whose.name(what), "one piece of memory too much",
             {"what a call reads is at most ", Reads, " pieces beside the layout's"});
    }
    read_[reads_++] = {bytes, whose, what, part};
  }
  void write(const footprint& bytes, subject whose, std::string_view what) {
    written_[writes_++] = {bytes, whose, what, {}};
  }
  template <class View>
  void read_layout(const View& view) {
    const auto add = [&](const auto* data, offset_t entries, const char* what) {
      if (data != nullptr) read(bytes_of(data, entries), of_layout, what);
    };
    add(view.cu, view.segments + 1, "cu_seqlens");
    add(view.cu_padded, view.segments + 1, "cu_seqlens_padded");
    add(view.order, view.sequences, "order");
    add(view.slot_of, view.batch, "inverse order");
  }
  /// \throws invalid_input where something that is written shares memory with anything else.
  void require_apart() const { detail::require_apart(read_, written_); }

 private:
  static constexpr std::size_t layout_arrays = 4;
  std::array<region, Reads + layout_arrays> read_{};
  std::array<region, Writes> written_{};
  std::size_t reads_ = 0;
  std::size_t writes_ = 0;
};

}  // namespace seqpack::detail
