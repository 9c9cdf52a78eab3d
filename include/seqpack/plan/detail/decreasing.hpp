/// \file
/// Units by size, the largest first, into rows: best fit and first fit. Functions of much code are
/// templates, here and in the files that build on this one, so that only programs that plan pay for
/// compiling them.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/plan/detail/rooms.hpp"

namespace seqpack::detail {

/// A sequence, or a tuple of them, which shares a row wholly or not at all.
struct sized_unit {
  offset_t size;
  row_number unit;
};

/// What a row takes of units.
struct row_limits {
  offset_t room;        ///< their sizes together
  offset_t most_units;  ///< and their number
};

/// Rows that units were put into: that of the k-th unit in the order in which they were.
struct placement {
  std::vector<row_number> row_of;
  offset_t rows = 0;
};

/// Sorts units by size, the largest first; equal ones stay in their order. O(n) passes over the bits
/// of the sizes where there are many.
template <std::same_as<sized_unit> Unit>
constexpr void sort_decreasing(std::vector<Unit>& units) {
  constexpr std::size_t few = 512;
  if (units.size() <= few) {
    std::sort(units.begin(), units.end(), [](const sized_unit& a, const sized_unit& b) {
      return a.size != b.size ? a.size > b.size : a.unit < b.unit;
    });
    return;
  }
  offset_t all = 0;
  for (const sized_unit& u : units) all |= u.size;
  constexpr int bits = 11;
  constexpr offset_t digits = offset_t{1} << bits;
  std::vector<sized_unit> sorted(units.size(), sized_unit{});
  for (int shift = 0; shift < 63 && (all >> shift) != 0; shift += bits) {
    std::array<std::size_t, digits> begin{};
    const auto digit = [shift](const sized_unit& u) {
      return nth(digits - 1 - ((u.size >> shift) & (digits - 1)));
    };
    for (const sized_unit& u : units) ++begin[digit(u)];
    std::size_t sum = 0;
    for (std::size_t& b : begin) sum += std::exchange(b, sum);
    for (const sized_unit& u : units) sorted[begin[digit(u)]++] = u;
    std::swap(units, sorted);
  }
}

/// Units of these sizes, divided by 2^shift, sorted. Small sizes are counted, and each unit is written
/// once.
template <std::same_as<sized_unit> Unit = sized_unit>
constexpr std::vector<Unit> sorted_units(std::span<const offset_t> sizes, int shift = 0) {
  offset_t largest = 0;
  for (const offset_t size : sizes) largest = max_of(largest, size >> shift);
  std::vector<Unit> units;
  if (largest > static_cast<offset_t>(sizes.size())) {
    units.reserve(sizes.size());
    for (const offset_t size : sizes) {
      units.push_back({size >> shift, static_cast<row_number>(units.size())});
    }
    sort_decreasing(units);
    return units;
  }
  std::vector<row_number> begin(nth(largest) + 1, 0);
  for (const offset_t size : sizes) ++begin[nth(size >> shift)];
  row_number sum = 0;
  for (std::size_t k = begin.size(); k-- > 0;) sum += std::exchange(begin[k], sum);
  units.resize(sizes.size(), sized_unit{});
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const offset_t size = sizes[k] >> shift;
    units[nth(begin[nth(size)]++)] = {size, static_cast<row_number>(k)};
  }
  return units;
}

/// Each unit into the row that it fills best, or a new one. O(n log n).
template <class Rooms>
constexpr placement best_fit(std::span<const sized_unit> units, const row_limits& limits) {
  struct filled {
    offset_t room;
    offset_t units;
  };
  placement result;
  result.row_of.reserve(units.size());
  Rooms open(limits.room, static_cast<offset_t>(units.size()));
  std::vector<filled> rows;
  for (const sized_unit& u : units) {
    row_number row = open.take(u.size);
    if (row == no_row) {
      row = static_cast<row_number>(rows.size());
      rows.push_back({limits.room, 0});
    }
    filled& f = rows[nth(row)];
    f.room -= u.size;
    if (++f.units < limits.most_units) open.put(row, f.room);
    result.row_of.push_back(row);
  }
  result.rows = static_cast<offset_t>(rows.size());
  return result;
}

constexpr placement best_fit(std::span<const sized_unit> units,
                             const std::same_as<row_limits> auto& limits) {
  // Rooms as an array where it costs little beside the units.
  const offset_t small = min_of(16 * static_cast<offset_t>(units.size()) + 1024, offset_t{1} << 24);
  if (limits.room <= small) return best_fit<room_lists>(units, limits);
  return best_fit<room_tree>(units, limits);
}

/// Each unit into the first row that has room for it. O(n log rows).
/// \param rows how many there may be
/// \returns no rows where those are too few
constexpr placement first_fit(std::span<const sized_unit> units,
                              const std::same_as<row_limits> auto& limits, offset_t rows) {
  placement result;
  result.row_of.reserve(units.size());
  room_order open(limits.room, rows);
  std::vector<offset_t> count(nth(rows), 0);
  for (const sized_unit& u : units) {
    const row_number row = open.find(u.size);
    if (row == no_row) return {};
    const bool closes = ++count[nth(row)] == limits.most_units;
    open.set(row, closes ? room_order::closed : open.room(row) - u.size);
    result.row_of.push_back(row);
    result.rows = max_of(result.rows, row + 1);
  }
  return result;
}

/// ceil(a / b), a >= 0, b >= 1.
constexpr offset_t divided_up(offset_t a, offset_t b) noexcept {
  return divide(a, b) + (remainder(a, b) != 0);
}

/// Rows that no plan does with less than. The sizes may sum up to more than 64 bits hold.
constexpr offset_t fewest_rows(std::span<const sized_unit> units, const row_limits& limits) {
  uint128 sum = 0;
  for (const sized_unit& u : units) sum += static_cast<std::uint64_t>(u.size);
  const auto room = static_cast<uint128>(limits.room);
  const auto count = static_cast<offset_t>(units.size());
  return max_of(static_cast<offset_t>((sum + room - 1) / room),
                divided_up(count, limits.most_units));
}

/// Best fit and first fit, whichever takes fewer rows; best fit where they take the same. First fit is
/// left out where no plan could do with less.
/// \param units sorted by sort_decreasing, none larger than the room
constexpr placement fit_decreasing(std::span<const sized_unit> units,
                                   const std::same_as<row_limits> auto& limits) {
  if (units.empty()) return {};
  placement best = best_fit(units, limits);
  if (best.rows > fewest_rows(units, limits)) {
    placement first = first_fit(units, limits, best.rows - 1);
    if (first.rows > 0) best = std::move(first);
  }
  return best;
}

}  // namespace seqpack::detail
