/// \file
/// From lengths to a plan: the three methods on units, and the check of every row.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/plan/detail/balance.hpp"
#include "seqpack/plan/detail/decreasing.hpp"
#include "seqpack/plan/detail/rooms.hpp"
#include "seqpack/plan/detail/row_rules.hpp"
#include "seqpack/plan/detail/units.hpp"
#include "seqpack/plan/plan_options.hpp"
#include "seqpack/plan/row_plan.hpp"

namespace seqpack::detail {

/// \throws invalid_input for options that are no numbers, or that contradict each other.
constexpr void require_options(const plan_options& options) {
  require_tuples(options.tuple, options.most_sequences);
  require_split(options.too_long, options.tuple);
  if (options.rows == dynamic) return;
  if (options.method != plan_method::balanced) {
    reject("rows", options.rows, "only plan_method::balanced makes a given number of rows");
  }
  if (options.rows < 1 || options.rows > most_planned) {
    reject("rows", options.rows, {"it must be from 1 to ", most_planned});
  }
}

/// The two arrays of a plan.
struct plan_arrays {
  std::vector<offset_t> sequences;
  std::vector<offset_t> bounds;
};

/// \param unit_at unit_at(k): the k-th unit in the order of the slots
/// \param row_of the row of the k-th unit
template <class UnitAt>
constexpr plan_arrays arrays_of(const UnitAt& unit_at, std::span<const row_number> row_of,
                                offset_t rows, offset_t tuple) {
  plan_arrays arrays;
  std::vector<offset_t>& bounds = arrays.bounds;
  bounds.resize(nth(rows) + 1, 0);
  for (const row_number row : row_of) bounds[nth(row) + 1] += tuple;
  for (std::size_t k = 1; k < bounds.size(); ++k) bounds[k] += bounds[k - 1];
  std::vector<offset_t> end(bounds.begin(), bounds.end() - 1);
  arrays.sequences.resize(row_of.size() * nth(tuple), 0);
  for (std::size_t k = 0; k < row_of.size(); ++k) {
    offset_t& slot = end[nth(row_of[k])];
    const offset_t first = unit_at(k) * tuple;
    for (offset_t j = 0; j < tuple; ++j) arrays.sequences[nth(slot++)] = first + j;
  }
  return arrays;
}

/// Units by size; sizes and room lose the zero bits that all sizes end in, so that rooms are fewer.
struct packed_units {
  std::vector<sized_unit> units;
  placement rows;
};
constexpr packed_units pack_decreasing(std::span<const offset_t> contents,
                                       std::same_as<row_limits> auto limits) {
  std::uint64_t all = 0;
  for (const offset_t content : contents) all |= static_cast<std::uint64_t>(content);
  const int zeros = all == 0 ? 0 : __builtin_ctzll(all);
  packed_units result;
  result.units = sorted_units(contents, zeros);
  limits.room >>= zeros;
  result.rows = fit_decreasing(result.units, limits);
  return result;
}

/// A row ends where the next unit has no room.
constexpr placement next_fit(std::span<const offset_t> contents,
                             const std::same_as<row_limits> auto& limits) {
  placement result;
  result.row_of.reserve(contents.size());
  row_limits left{0, 0};
  for (const offset_t content : contents) {
    if (result.rows == 0 || content > left.room || left.most_units == 0) {
      ++result.rows;
      left = limits;
    }
    left.room -= content;
    --left.most_units;
    result.row_of.push_back(static_cast<row_number>(result.rows - 1));
  }
  return result;
}

/// Numbers rows by their first unit; those without any come last.
constexpr void number_rows(std::vector<row_number>& row_of, offset_t rows) {
  std::vector<row_number> number(nth(rows), no_row);
  row_number next = 0;
  for (row_number& row : row_of) {
    row_number& now = number[nth(row)];
    if (now == no_row) now = next++;
    row = now;
  }
}

constexpr plan_arrays plan_contents(std::span<const offset_t> contents, const plan_options& options,
                                    const std::same_as<row_limits> auto& limits) {
  const auto in_order = [](std::size_t k) { return static_cast<offset_t>(k); };
  if (options.method == plan_method::in_order) {
    const placement rows = next_fit(contents, limits);
    return arrays_of(in_order, rows.row_of, rows.rows, options.tuple);
  }
  const packed_units packed = pack_decreasing(contents, limits);
  const auto largest_first = [&](std::size_t k) {
    return static_cast<offset_t>(packed.units[k].unit);
  };
  return arrays_of(largest_first, packed.rows.row_of, packed.rows.rows, options.tuple);
}

constexpr plan_arrays plan_balanced(std::span<const offset_t> contents,
                                    std::span<const offset_t> costs, const plan_options& options,
                                    const std::same_as<row_limits> auto& limits) {
  const packed_units packed = pack_decreasing(contents, limits);
  const offset_t rows = options.rows == dynamic ? packed.rows.rows : options.rows;
  if (rows < packed.rows.rows) {
    reject("rows", rows,
           {"it must be at least ", packed.rows.rows,
            ", the rows that plan_method::decreasing takes"});
  }
  std::vector<row_number> row_of;
  if (rows > 0) {
    row_of = balanced(contents, costs, limits, rows, by_unit(packed.units, packed.rows.row_of));
  }
  number_rows(row_of, rows);
  return arrays_of([](std::size_t k) { return static_cast<offset_t>(k); }, row_of, rows,
                   options.tuple);
}

template <class Rounding>
constexpr plan_arrays plan_items(const row_rules<Rounding>& rules,
                                 std::span<const offset_t> lengths, const plan_options& options) {
  const std::vector<offset_t> contents = contents_of(rules, lengths, options.tuple);
  const row_limits limits{rules.most_content, options.most_sequences / options.tuple};
  if (options.method != plan_method::balanced) return plan_contents(contents, options, limits);
  const std::vector<offset_t> costs = costs_of(rules, lengths, options.tuple, options.cost);
  return plan_balanced(contents, costs, options, limits);
}

template <class Rounding>
constexpr row_plan plan_sequences(const row_rules<Rounding>& rules, std::vector<offset_t> lengths,
                                  const plan_options& options) {
  require_options(options);
  planned_items items = items_of(rules, std::move(lengths), options.too_long, options.tuple);
  plan_arrays arrays = plan_items(rules, items.lengths, options);
  const char* const name = items.pieces.empty() ? "lengths" : "piece_lengths";
  row_plan plan(std::move(arrays.sequences), std::move(arrays.bounds), std::move(items.pieces));
  for (offset_t k = 0; k < plan.rows(); ++k) {
    require_row_layout(rules, k, plan.row(k), items.lengths, name);
  }
  return plan;
}

}  // namespace seqpack::detail
