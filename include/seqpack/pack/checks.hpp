/// \file
/// What every operation checks before it writes anything.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/pack/layout_view.hpp"

namespace seqpack::checks {

/// The index of what a call has one of.
inline constexpr std::size_t alone = ~std::size_t{1};

/// "field 2's target", or just "lengths": how errors name what a call was given.
inline std::string name_of(std::size_t index, const char* what) {
  if (index == alone) return what;
  return "field " + std::to_string(index) + "'s " + what;
}

/// \throws invalid_input where T cannot hold the largest value.
template <class T>
void require_range(std::size_t index, const char* what, offset_t largest) {
  if constexpr (std::floating_point<T>) {
    constexpr int bits = std::numeric_limits<T>::digits;
    if (bits < 63 && largest > offset_t{1} << bits) {
      reject(name_of(index, what), largest,
             "the element type of the array counts to at most 2^" + std::to_string(bits));
    }
  } else if constexpr (std::integral<T>) {
    if (!holds<T>(largest)) {
      reject(name_of(index, what), largest,
             "the element type of the array holds at most " +
                 std::to_string(std::numeric_limits<T>::max()));
    }
  }
}

inline void require_equal(std::size_t index, const char* what, offset_t found, offset_t expected,
                          const char* whose) {
  if (found != expected) {
    reject(name_of(index, what), found, "it must be " + std::to_string(expected) + ", " + whose);
  }
}

inline void require_memory(std::size_t index, const char* what, const void* data,
                           offset_t elements) {
  if (elements > 0 && data == nullptr) {
    reject(name_of(index, what), "null",
           "it must point to " + std::to_string(elements) + " elements");
  }
}

/// \throws invalid_input for an address that no element of type T has.
template <class T>
void require_aligned(std::size_t index, const char* what, const T* data) {
  const std::uint64_t beside = view_checks::address_bits(data) % alignof(T);
  if (beside == 0) return;
  reject(name_of(index, what), "misaligned by " + std::to_string(beside),
         "its address must be a multiple of " + std::to_string(alignof(T)) +
             ", the alignment of its elements");
}

/// Memory that a call reads or writes, and what errors call it.
struct region {
  footprint bytes{};
  std::size_t index = 0;  ///< of the field, or `of_layout`
  const char* what = "";

  static constexpr std::size_t of_layout = ~std::size_t{0};

  std::string name() const {
    return index == of_layout ? std::string("the layout's ") + what : name_of(index, what);
  }
};

/// The regions of one call: at most Reads beside the layout's, and Writes. Allocates nothing.
template <std::size_t Reads, std::size_t Writes>
class regions {
 public:
  void read(const footprint& bytes, std::size_t index, const char* what) {
    read_[reads_++] = {bytes, index, what};
  }
  void write(const footprint& bytes, std::size_t index, const char* what) {
    written_[writes_++] = {bytes, index, what};
  }
  template <class View>
  void read_layout(const View& view) {
    const auto add = [&](const auto* data, offset_t entries, const char* what) {
      if (data != nullptr) read(bytes_of(data, entries), region::of_layout, what);
    };
    add(view.cu, view.segments + 1, "cu_seqlens");
    add(view.cu_padded, view.segments + 1, "cu_seqlens_padded");
    add(view.order, view.sequences, "order");
    add(view.slot_of, view.batch, "inverse order");
  }
  /// \throws invalid_input where something that is written shares memory with anything else.
  void require_apart() const {
    for (std::size_t i = 0; i < Writes; ++i) {
      for (const region& other : read_) require_apart(written_[i], other);
      for (std::size_t k = 0; k < i; ++k) require_apart(written_[i], written_[k]);
    }
  }

 private:
  static void require_apart(const region& written, const region& other) {
    if (written.bytes.overlaps(other.bytes)) {
      reject(written.name(), "in the memory of " + other.name(), "outputs must not alias");
    }
  }

  static constexpr std::size_t layout_arrays = 4;
  std::array<region, Reads + layout_arrays> read_{};
  std::array<region, Writes> written_{};
  std::size_t reads_ = 0;
  std::size_t writes_ = 0;
};

/// \throws invalid_input for a layout of tokens without arrays.
template <class View>
void require_layout(const View& view) {
  if (view.total > 0 && (view.cu == nullptr || view.cu_padded == nullptr)) {
    reject("the layout's cu_seqlens", "null", "a layout of tokens needs its arrays");
  }
}

[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_row(const std::string& row, offset_t room,
                                                              offset_t length, bool exact) {
  reject(row + " size", room,
         std::string(exact ? "it must be " : "it must be at least ") + std::to_string(length) +
             ", the real length of the sequence");
}

/// The rows of a table whose bounds can be read here.
template <class View, token_table Table>
void require_rows(std::size_t index, const char* what, const View& view, const Table& table,
                  bool exact) {
  for (offset_t b = 0; b < table.batch(); ++b) {
    const offset_t slot = view.slot(b);
    const offset_t length = slot < 0 ? 0 : view.length(slot);
    const offset_t lead = table.lead(b);
    const offset_t first = table.first_position(b);
    const auto row = [&] { return name_of(index, what) + " row " + std::to_string(b); };
    if (first < 0) reject(row() + " begin", first, "it must be at least 0");
    if (lead < 0) reject(row() + " start column", lead, "it must be at least 0");
    const offset_t room = table.columns(b) - lead;
    if (room < length || (exact && room != length)) refuse_row(row(), room, length, exact);
    if (first + table.columns(b) > table.positions()) {
      reject(
          row() + " end", first + table.columns(b),
          "it must be at most " + std::to_string(table.positions()) + ", the rows of the values");
    }
  }
  if (!exact) return;
  if (table.batch() == 0) {
    return require_equal(index, "target values", table.positions(), 0, "as there are no sequences");
  }
  require_equal(index, "target row 0 begin", table.first_position(0), 0,
                "as every value of a target is written");
  require_equal(index, "target values", table.positions(), table.first_position(table.batch()),
                "the last offset");
}

/// What the batch of a field must be for the layout. Bounds that are arrays in device memory cannot
/// be looked at from here; the device functions stay inside of them instead.
template <class Executor, class View, token_table Table>
void require_table(std::size_t index, const char* what, const View& view, const Table& table,
                   bool exact) {
  require_equal(index, (std::string(what) + " rows").c_str(), table.batch(), view.batch,
                "the batch size of the layout");
  require_memory(index, what, table.touched().first, table.positions() * table.payload());
  if constexpr (!bounds_in_memory<Table>) {
    if (table.batch() > 0 && view.longest > table.columns(0)) {
      reject(name_of(index, what) + " width", table.columns(0),
             "it must be at least " + std::to_string(view.longest) +
                 ", the longest real length of the layout");
    }
  } else {
    require_memory(index, (std::string(what) + " bounds").c_str(), table.bounds_touched().first,
                   table.batch());
    if constexpr (host_executor<Executor>) require_rows(index, what, view, table, exact);
  }
}

/// \throws invalid_input for a table whose rows overlap each other in memory.
template <class T>
void require_distinct_positions(std::size_t index, const batch_view<T>& table) {
  if (table.batch() * table.width() <= 1) return;
  const offset_t token = table.stride() < 0 ? -table.stride() : table.stride();
  const offset_t row = table.batch_stride() < 0 ? -table.batch_stride() : table.batch_stride();
  const bool tokens_apart = table.width() <= 1 || token >= table.payload();
  const bool rows_apart =
      table.batch() <= 1 || row >= (table.width() - 1) * token + table.payload();
  // Columns outermost: rows interleave inside of one token stride.
  const bool interleaved =
      table.width() <= 1 ||
      (row >= table.payload() && token >= (table.batch() - 1) * row + table.payload());
  if (!(tokens_apart && (rows_apart || interleaved))) {
    reject(name_of(index, "target") + " strides",
           std::to_string(table.batch_stride()) + " and " + std::to_string(table.stride()),
           "the positions of an output must not overlap");
  }
}
template <class T, class Start>
void require_distinct_positions(std::size_t index, const left_padded_view<T, Start>& table) {
  require_distinct_positions(index, table.table());
}
/// Ragged values are dense.
template <class T, class Offset>
void require_distinct_positions(std::size_t, const ragged_view<T, Offset>&) {}

}  // namespace seqpack::checks
