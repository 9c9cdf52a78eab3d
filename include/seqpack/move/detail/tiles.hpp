/// \file
/// Tiles: rows that the threads of a block move together. Each row is looked up once for all of its
/// units, and what then moves are bytes, whatever the field's type.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/move/detail/transfer.hpp"

namespace seqpack::detail {

/// The units of a tile: the same units of a few rows.
struct tile_span {
  offset_t first_row;
  offset_t first_unit;  ///< in each row
  std::int32_t rows;
  std::int32_t width;        ///< units of each row
  std::uint32_t reciprocal;  ///< of the width, for `row_of`

  SEQPACK_HD constexpr std::int32_t units() const noexcept { return rows * width; }
  /// The row of a unit of the tile, counted from first_row: unit / width. With the reciprocal
  /// rounded down and the unit one up it is exact, as units and widths are far below 2^16.
  SEQPACK_HD constexpr std::int32_t row_of(std::int32_t unit) const noexcept {
    const auto product = (static_cast<std::uint64_t>(unit) + 1) * reciprocal;
    return static_cast<std::int32_t>(product >> 32);
  }
};

/// How the rows of a field are cut into tiles. A unit is an access of the widest size that all
/// addresses allow or, where that is less than 16 bytes and rows are long, what a row has of a
/// 16-byte block of its target.
class tile_shape {
 public:
  /// Rows of a tile, so that what is known of each has room in shared memory.
  static constexpr offset_t max_rows = 2048;
  /// Units of a tile: enough to be worth what it costs to look its rows up, and as few as give every
  /// multiprocessor some where a field is small.
  static constexpr offset_t max_units = 4096;
  static constexpr offset_t min_units = 2048;
  static constexpr offset_t wanted_tiles = 256;
  /// Parts of wide rows are multiples of it: what 256 threads have in flight together.
  static constexpr offset_t wide_step = 1024;
  /// Below it a row has few whole blocks.
  static constexpr offset_t least_bytes_for_blocks = 64;

  constexpr tile_shape() = default;
  constexpr tile_shape(const unit_shape& units, offset_t rows)
      : units_(units),
        blocks_(units.bytes() < 16 && units.row_bytes() >= least_bytes_for_blocks),
        per_row_(blocks_ ? (units.row_bytes() + 14) / 16 + 1 : units.per_row()) {
    if (per_row_ == 0) return;
    const offset_t all = rows * per_row_;
    // Rows of one unit are the cheapest to move and the dearest to look up.
    const offset_t most =
        per_row_ == 1 ? max_rows : min_of(max_of(all / wanted_tiles, min_units), max_units);
    width_ = static_cast<std::int32_t>(min_of(per_row_, most - most % wide_step));
    parts_ = (per_row_ + width_ - 1) / width_;
    rows_ = static_cast<std::int32_t>(parts_ > 1 ? 1 : most / width_);
    all_rows_ = rows;
    tiles_ = parts_ > 1 ? rows * parts_ : (rows + rows_ - 1) / rows_;
  }

  SEQPACK_HD constexpr offset_t tiles() const noexcept { return tiles_; }
  SEQPACK_HD constexpr tile_span span(offset_t tile) const noexcept {
    offset_t row = tile * rows_;
    offset_t first = 0;
    std::int32_t width = width_;
    if (parts_ > 1) {
      row = divide(tile, parts_);
      first = (tile - row * parts_) * width_;
      width = static_cast<std::int32_t>(min_of(width_, per_row_ - first));
    }
    const auto count = static_cast<std::int32_t>(min_of(rows_, all_rows_ - row));
    return {row, first, count, width, ~std::uint32_t{0} / static_cast<std::uint32_t>(width)};
  }
  /// Whether the tile goes on with the row of the tile before it.
  SEQPACK_HD constexpr bool continues(const tile_span& span) const noexcept {
    return span.first_unit > 0;
  }

  /// The rows cut into accesses of one size, which is what they are aligned to.
  SEQPACK_HD constexpr const unit_shape& units() const noexcept { return units_; }
  SEQPACK_HD constexpr offset_t row_bytes() const noexcept { return units_.row_bytes(); }
  /// Whether units are 16-byte blocks of the target.
  SEQPACK_HD constexpr bool blocks() const noexcept { return blocks_; }

 private:
  unit_shape units_;
  bool blocks_ = false;
  offset_t per_row_ = 0;
  offset_t parts_ = 1;      // tiles of a row
  std::int32_t width_ = 0;  // units of a row in a tile
  std::int32_t rows_ = 0;   // rows of a tile
  offset_t all_rows_ = 0;
  offset_t tiles_ = 0;
};

/// Where the bytes of a row go, and where they come from: null for a fill. A row that goes nowhere
/// is not written.
struct alignas(16) tile_route {
  char* to;
  const char* from;
};

namespace tiles {

/// Units that a thread loads before it stores the first of them.
inline constexpr std::int32_t in_flight = 4;

/// What moves, without its type.
struct work {
  tile_span span;
  tile_shape shape;
  bool copied;     ///< whether all rows come from somewhere
  bool filled;     ///< whether none does
  bool patterned;  ///< whether fills repeat the first bytes of `pattern`
  block<16> pattern;
};

/// Whether a fill repeats itself in every 16 bytes.
template <class T, class F>
inline constexpr bool is_periodic = !std::is_invocable_v<const F&, offset_t> && 16 % sizeof(T) == 0;
/// Whether units hold whole elements, whatever the addresses are.
template <class T, class F>
inline constexpr bool always_repeats = is_periodic<T, F> && std::alignment_of_v<T> == sizeof(T);

/// Whether a fill is the same in every unit of so many bytes.
template <class T, class F>
SEQPACK_HD constexpr bool repeats([[maybe_unused]] const F& fill, std::int32_t unit_bytes) {
  if constexpr (pattern_filler<F>) {
    return unit_bytes >= fill.period() && is_power_of_two(fill.period());
  } else {
    return is_periodic<T, F> && unit_bytes >= static_cast<std::int32_t>(sizeof(T));
  }
}

/// 16 bytes of a constant fill.
template <class T, class F>
SEQPACK_HD block<16> pattern_of(const F& fill) {
  block<16> out{0, 0};
  if constexpr (pattern_filler<F>) {
    out = fill.pattern();
  } else if constexpr (is_periodic<T, F>) {
    fill_unit<16, T>(reinterpret_cast<char*>(&out), 0, fill);
  }
  return out;
}

/// The first bytes of a block.
template <int Bytes>
SEQPACK_HD block<Bytes> front(const block<16>& value) {
  if constexpr (Bytes == 16) {
    return value;
  } else {
    block<Bytes> out;
    memcpy(&out, &value.low, Bytes);
    return out;
  }
}

SEQPACK_HD inline offset_t skew_of(const char* p) noexcept {
  return static_cast<offset_t>(reinterpret_cast<std::uintptr_t>(p) & 15U);
}

template <int Bytes>
SEQPACK_HD inline block<Bytes> load(const char* from) {
  return *reinterpret_cast<const block<Bytes>*>(from);
}
template <int Bytes>
SEQPACK_HD inline void store(char* to, const block<Bytes>& value) {
  *reinterpret_cast<block<Bytes>*>(to) = value;
}

/// 16 bytes that begin `skew` bytes into the first of two neighbours, 0 < skew < 16.
SEQPACK_HD inline block<16> between(const block<16>& first, const block<16>& second,
                                    offset_t skew) noexcept {
  const auto joined = [](const block<16>& b) { return static_cast<uint128>(b.high) << 64 | b.low; };
  const int bits = 8 * static_cast<int>(skew);
  const uint128 value = joined(first) >> bits | joined(second) << (128 - bits);
  return {static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(value >> 64)};
}

/// The 16 bytes of a row from `begin` on, which are aligned to Bytes; nothing outside of the row is
/// read.
template <int Bytes>
SEQPACK_HD inline block<16> load_block(const char* row, offset_t begin, offset_t row_bytes) {
  const offset_t skew = skew_of(row + begin);
  if (skew == 0) return load<16>(row + begin);
  const offset_t aligned = begin - skew;
  if (aligned >= 0 && aligned + 32 <= row_bytes) {
    return between(load<16>(row + aligned), load<16>(row + aligned + 16), skew);
  }
  block<16> out;
  for (int k = 0; k < 16; k += Bytes) {
    store(reinterpret_cast<char*>(&out) + k, load<Bytes>(row + begin + k));
  }
  return out;
}

/// Moves the units first, first + size, ...: `in_flight` of them, which are in the tile, of rows
/// that all come from somewhere.
template <int Bytes, class Threads>
SEQPACK_HD void copy_units(const Threads& threads, const tile_route* routes, const tile_span& span,
                           std::int32_t first) {
  const offset_t begin = span.first_unit * Bytes;
  block<Bytes> values[in_flight];
  char* targets[in_flight];
  for (std::int32_t k = 0; k < in_flight; ++k) {
    const std::int32_t unit = first + k * threads.size();
    const std::int32_t row = span.row_of(unit);
    const tile_route route = routes[row];
    const std::int32_t within = (unit - row * span.width) * Bytes;
    const offset_t offset = begin + within;
    values[k] = load<Bytes>(route.from + offset);
    targets[k] = route.to + offset;
  }
  for (std::int32_t k = 0; k < in_flight; ++k) store(targets[k], values[k]);
}

/// The same for rows that all come from nowhere, without anything to load.
template <int Bytes, class Threads>
SEQPACK_HD void fill_units(const Threads& threads, const tile_route* routes, const work& what,
                           std::int32_t first) {
  const tile_span& span = what.span;
  const block<Bytes> value = front<Bytes>(what.pattern);
  for (; first < span.units(); first += threads.size()) {
    const std::int32_t row = span.row_of(first);
    char* const to = routes[row].to;
    if (to == nullptr) continue;
    const std::int32_t within = (first - row * span.width) * Bytes;
    store(to + (span.first_unit * Bytes + within), value);
  }
}

/// The same for any rows, of those units that are in the tile.
template <int Bytes, class Threads>
SEQPACK_HD void move_units(const Threads& threads, const tile_route* routes, const work& what,
                           std::int32_t first) {
  const tile_span& span = what.span;
  const offset_t begin = span.first_unit * Bytes;
  block<Bytes> values[in_flight];
  char* targets[in_flight];
  bool written[in_flight];
  for (std::int32_t k = 0; k < in_flight; ++k) {
    const std::int32_t unit = first + k * threads.size();
    written[k] = false;
    if (unit >= span.units()) continue;
    const std::int32_t row = span.row_of(unit);
    const tile_route route = routes[row];
    const std::int32_t within = (unit - row * span.width) * Bytes;
    const offset_t offset = begin + within;
    values[k] = front<Bytes>(what.pattern);
    if (route.from != nullptr) values[k] = load<Bytes>(route.from + offset);
    targets[k] = route.to + offset;
    written[k] = route.to != nullptr && (what.patterned || route.from != nullptr);
  }
  for (std::int32_t k = 0; k < in_flight; ++k) {
    if (written[k]) store(targets[k], values[k]);
  }
}

/// The same where units are blocks of the target; Bytes is what rows are aligned to.
template <int Bytes, class Threads>
SEQPACK_HD void move_blocks(const Threads& threads, const tile_route* routes, const work& what,
                            std::int32_t first) {
  const tile_span& span = what.span;
  const offset_t size = what.shape.row_bytes();
  block<16> values[in_flight];
  char* targets[in_flight];
  for (std::int32_t k = 0; k < in_flight; ++k) {
    targets[k] = nullptr;
    const std::int32_t unit = first + k * threads.size();
    if (unit >= span.units()) continue;
    const std::int32_t row = span.row_of(unit);
    const tile_route route = routes[row];
    const bool copied = route.from != nullptr;
    if (route.to == nullptr || !(copied || what.patterned)) continue;
    const offset_t begin = (span.first_unit + (unit - row * span.width)) * 16 - skew_of(route.to);
    if (begin >= 0 && begin + 16 <= size) {
      values[k] = copied ? load_block<Bytes>(route.from, begin, size) : what.pattern;
      targets[k] = route.to + begin;
      continue;
    }
    // The head or the tail of the row.
    for (offset_t at = max_of(begin, 0); at < min_of(begin + 16, size); at += Bytes) {
      store(route.to + at, copied ? load<Bytes>(route.from + at) : front<Bytes>(what.pattern));
    }
  }
  for (std::int32_t k = 0; k < in_flight; ++k) {
    if (targets[k] != nullptr) store(targets[k], values[k]);
  }
}

/// Moves the rows of a tile along their routes.
/// \tparam Least what the elements of all fields are aligned to
template <int Least, class Threads>
SEQPACK_HD void move(const Threads& threads, const tile_route* routes, const work& what) {
  const std::int32_t step = in_flight * threads.size();
  const std::int32_t units = what.span.units();
  with_unit_size<Least>(what.shape.units().bytes(), [&](auto size) {
    constexpr int bytes = decltype(size)::value;
    std::int32_t first = threads.rank();
    if constexpr (bytes != 16) {
      if (what.shape.blocks()) {
        for (; first < units; first += step) move_blocks<bytes>(threads, routes, what, first);
        return;
      }
    }
    if (what.filled) {
      if (what.patterned) fill_units<bytes>(threads, routes, what, first);
      return;
    }
    if (what.copied) {
      for (; first + step - threads.size() < units; first += step) {
        copy_units<bytes>(threads, routes, what.span, first);
      }
    }
    for (; first < units; first += step) move_units<bytes>(threads, routes, what, first);
  });
}

/// Fills the rows of a tile that come from nowhere with values that a pattern cannot give.
template <class T, class F, class Threads>
SEQPACK_HD void fill(const Threads& threads, const tile_route* routes, const work& what,
                     const F& value) {
  const tile_span& span = what.span;
  const offset_t size = what.shape.row_bytes();
  for (std::int32_t unit = threads.rank(); unit < span.units(); unit += threads.size()) {
    const std::int32_t row = span.row_of(unit);
    const tile_route route = routes[row];
    if (route.to == nullptr || route.from != nullptr) continue;
    const offset_t number = span.first_unit + (unit - row * span.width);
    if (what.shape.blocks()) {
      const offset_t begin = number * 16 - skew_of(route.to);
      for (offset_t k = max_of(begin, 0); k < min_of(begin + 16, size); ++k) {
        fill_unit<1, T>(route.to + k, k, value);
      }
    } else {
      const offset_t offset = number * what.shape.units().bytes();
      with_unit_size<alignof(T)>(what.shape.units().bytes(), [=, &value](auto width) {
        fill_unit<decltype(width)::value, T>(route.to + offset, offset, value);
      });
    }
  }
}

}  // namespace tiles

}  // namespace seqpack::detail
