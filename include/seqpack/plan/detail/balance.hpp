/// \file
/// A number of rows of about the same cost, within the limits of a row.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/detail/bounds.hpp"
#include "seqpack/plan/detail/decreasing.hpp"
#include "seqpack/plan/detail/differencing.hpp"
#include "seqpack/plan/detail/rooms.hpp"

namespace seqpack::detail {

/// The row of each unit, by number, from that of each in another order.
constexpr std::vector<row_number> by_unit(std::span<const sized_unit> units,
                                          std::span<const row_number> row_of) {
  std::vector<row_number> rows(units.size(), no_row);
  for (std::size_t k = 0; k < units.size(); ++k) rows[nth(units[k].unit)] = row_of[k];
  return rows;
}

struct exchange_result {
  bool fits = false;     ///< every row is within the limits
  bool optimal = false;  ///< no rows cost less
  offset_t largest_cost = 0;
};

/// Rows whose units move and change places, so that the dearest row becomes cheaper.
template <std::same_as<row_limits> Limits>
class exchange {
 public:
  /// \param row_of the row of each unit, which this changes
  constexpr exchange(std::span<const offset_t> contents, std::span<const offset_t> costs,
                     const Limits& limits, offset_t rows, std::vector<row_number>& row_of)
      : contents_(contents),
        costs_(costs),
        limits_(limits),
        row_of_(row_of),
        rows_(nth(rows), row{}) {
    for (const sized_unit& u : sorted_units(costs)) put(rows_[nth(row_of_[nth(u.unit)])], u.unit);
    for (row& r : rows_) std::reverse(r.units.begin(), r.units.end());
  }
  constexpr ~exchange() = default;  // for nvcc, which sees none where a member is a span

  /// Of the dearest row and the cheapest one that can help, whichever move of a unit or swap of two
  /// comes closest to making them equal; where none helps, the units of such two rows are parted anew.
  /// Again and again, until nothing helps or the work is as much as some passes over all units. Every
  /// step makes the sum of the squares of the costs less.
  constexpr exchange_result run() {
    offset_t total = 0;
    for (const offset_t cost : costs_) total += cost;
    const offset_t least = divided_up(total, static_cast<offset_t>(rows_.size()));
    sort_rows();
    offset_t work = 16 * static_cast<offset_t>(costs_.size()) + 65'536;
    const auto largest = [this] { return rows_[nth(order_.front())].cost; };
    while (work > 0 && largest() > least && improve(work)) {
    }
    return {fits(), largest() <= least, largest()};
  }

 private:
  struct row {
    offset_t cost = 0;
    offset_t content = 0;
    std::vector<row_number> units;  ///< the cheapest first
  };
  /// A unit of the dearer row, and one of the cheaper row, or none, for it.
  struct step {
    offset_t gain = 0;  ///< by how much the dearer of the two rows becomes cheaper
    row_number give = no_row;
    row_number take = no_row;
  };

  constexpr bool within(const row& r) const {
    return r.content <= limits_.room && static_cast<offset_t>(r.units.size()) <= limits_.most_units;
  }
  constexpr bool fits() const {
    return std::all_of(rows_.begin(), rows_.end(), [&](const row& r) { return within(r); });
  }
  constexpr offset_t cost(row_number unit) const { return unit == no_row ? 0 : costs_[nth(unit)]; }
  constexpr offset_t content(row_number unit) const {
    return unit == no_row ? 0 : contents_[nth(unit)];
  }
  constexpr bool dearer(row_number a, row_number b) const {
    const offset_t x = rows_[nth(a)].cost;
    const offset_t y = rows_[nth(b)].cost;
    return x != y ? x > y : a < b;
  }
  constexpr void sort_rows() {
    order_.resize(rows_.size(), no_row);
    for (std::size_t k = 0; k < order_.size(); ++k) order_[k] = static_cast<row_number>(k);
    std::sort(order_.begin(), order_.end(),
              [this](row_number a, row_number b) { return dearer(a, b); });
  }

  /// A step, or where none helps the units of two rows dealt out anew.
  constexpr bool improve(offset_t& work) {
    const auto with_step = [&](row_number from, row_number to) { return take_step(from, to); };
    const auto anew = [&](row_number from, row_number to) { return deal(from, to); };
    return with_any(work, with_step) || with_any(work, anew);
  }
  /// Asks for the dearest row and others, the cheapest one first, whether anything was done.
  template <class F>
  constexpr bool with_any(offset_t& work, const F& f) {
    const row& from = rows_[nth(order_.front())];
    for (std::size_t k = order_.size(); --k > 0 && work > 0;) {
      const row& to = rows_[nth(order_[k])];
      if (from.cost - to.cost <= 1) return false;
      work -= static_cast<offset_t>(from.units.size() + to.units.size());
      if (!f(order_.front(), order_[k])) continue;
      work -= static_cast<offset_t>(rows_.size());
      reorder(k);
      return true;
    }
    return false;
  }

  constexpr bool take_step(row_number from, row_number to) {
    const step best = best_step(rows_[nth(from)], rows_[nth(to)]);
    move(best.give, from, to);
    move(best.take, to, from);
    return best.gain > 0;
  }

  constexpr bool deal(row_number from, row_number to) {
    std::vector<row_number> units = rows_[nth(from)].units;
    units.insert(units.end(), rows_[nth(to)].units.begin(), rows_[nth(to)].units.end());
    std::vector<offset_t> costs;
    costs.reserve(units.size());
    for (const row_number u : units) costs.push_back(cost(u));
    const std::vector<row_number> part_of = difference_out(costs, 2);
    row dealt[2];
    for (std::size_t k = 0; k < units.size(); ++k) put(dealt[nth(part_of[k])], units[k]);
    for (const row& r : dealt) {
      if (r.cost >= rows_[nth(from)].cost || !within(r)) return false;
    }
    const std::size_t give = rows_[nth(from)].units.size();
    for (std::size_t k = 0; k < units.size(); ++k) {
      if (k < give && part_of[k] == 1) move(units[k], from, to);
      if (k >= give && part_of[k] == 0) move(units[k], to, from);
    }
    return true;
  }

  constexpr step best_step(const row& from, const row& to) const {
    const offset_t difference = from.cost - to.cost;
    step best;
    const auto consider = [&](row_number give, row_number take) {
      const offset_t moved = cost(give) - cost(take);
      const offset_t gain = min_of(moved, difference - moved);
      if (gain > best.gain && allowed(from, to, give, take)) best = {gain, give, take};
    };
    std::size_t next = 0;  // the first unit that costs more than what would make both rows equal
    for (const row_number give : from.units) {
      consider(give, no_row);
      const offset_t wanted = cost(give) - difference / 2;
      while (next < to.units.size() && cost(to.units[next]) <= wanted) ++next;
      if (next > 0) consider(give, to.units[next - 1]);
      if (next < to.units.size()) consider(give, to.units[next]);
    }
    return best;
  }

  /// A row that is within the limits stays there, and one that is not comes no further from them.
  constexpr bool allowed(const row& from, const row& to, row_number give, row_number take) const {
    const offset_t moved = content(give) - content(take);
    const offset_t more = take == no_row;
    return to.content + moved <= limits_.room &&
           static_cast<offset_t>(to.units.size()) + more <= limits_.most_units &&
           (moved >= 0 || from.content - moved <= limits_.room);
  }

  constexpr void put(row& r, row_number unit) {
    r.cost += cost(unit);
    r.content += content(unit);
    r.units.push_back(unit);
  }
  constexpr bool cheaper(row_number a, row_number b) const {
    return cost(a) != cost(b) ? cost(a) < cost(b) : a > b;
  }
  constexpr void move(row_number unit, row_number from, row_number to) {
    if (unit == no_row) return;
    const auto before = [this](row_number a, row_number b) { return cheaper(a, b); };
    row& source = rows_[nth(from)];
    source.units.erase(std::lower_bound(source.units.begin(), source.units.end(), unit, before));
    source.cost -= cost(unit);
    source.content -= content(unit);
    row& target = rows_[nth(to)];
    put(target, unit);
    target.units.pop_back();
    target.units.insert(std::lower_bound(target.units.begin(), target.units.end(), unit, before),
                        unit);
    row_of_[nth(unit)] = to;
  }

  /// Puts the first row and the k-th one to where they now belong.
  constexpr void reorder(std::size_t k) {
    const auto before = [this](row_number a, row_number b) { return dearer(a, b); };
    const row_number cheap = order_[k];
    const row_number dear = order_.front();
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(k));
    order_.erase(order_.begin());
    for (const row_number r : {cheap, dear}) {
      order_.insert(std::lower_bound(order_.begin(), order_.end(), r, before), r);
    }
  }

  std::span<const offset_t> contents_;
  std::span<const offset_t> costs_;
  Limits limits_;
  std::vector<row_number>& row_of_;
  std::vector<row> rows_;
  std::vector<row_number> order_;  ///< the dearest row first
};

/// The dearest units first, each into the cheapest row that has room for it.
/// \returns nothing where one has no room, or where looking for it takes too long
constexpr std::vector<row_number> dearest_first(std::span<const offset_t> contents,
                                                std::span<const offset_t> costs,
                                                const std::same_as<row_limits> auto& limits,
                                                offset_t rows) {
  struct open_row {
    offset_t cost;
    row_number row;
    offset_t content;
    offset_t units;
    constexpr bool operator>(const open_row& other) const noexcept {
      return cost != other.cost ? cost > other.cost : row > other.row;
    }
  };
  std::vector<open_row> open;  // a heap, the cheapest on top
  for (offset_t k = 0; k < rows; ++k) open.push_back({0, static_cast<row_number>(k), 0, 0});
  std::vector<open_row> without_room;
  std::vector<row_number> row_of(costs.size(), no_row);
  offset_t work = 32 * static_cast<offset_t>(costs.size()) + 65'536;
  for (const sized_unit& u : sorted_units(costs)) {
    const offset_t content = contents[nth(u.unit)];
    while (!open.empty() && open.front().content + content > limits.room) {
      std::pop_heap(open.begin(), open.end(), std::greater<>());
      without_room.push_back(open.back());
      open.pop_back();
    }
    work -= static_cast<offset_t>(without_room.size());
    if (open.empty() || work < 0) return {};
    std::pop_heap(open.begin(), open.end(), std::greater<>());
    open_row& r = open.back();
    row_of[nth(u.unit)] = r.row;
    r.cost += u.size;
    r.content += content;
    if (++r.units == limits.most_units) {
      open.pop_back();
    } else {
      std::push_heap(open.begin(), open.end(), std::greater<>());
    }
    for (; !without_room.empty(); without_room.pop_back()) {
      open.push_back(without_room.back());
      std::push_heap(open.begin(), open.end(), std::greater<>());
    }
  }
  return row_of;
}

constexpr offset_t content_sum(std::span<const offset_t> contents) {
  offset_t sum = 0;
  for (const offset_t content : contents) sum = min_of(sum + content, saturated_sum);
  return sum;
}

/// The row of each unit, for rows of about the same cost: by differencing and, where that leaves
/// something to gain or holds too much in a row, the dearest units first, or as the units are packed.
/// \param packed of all units, by size
/// \param rows at least as many as the packed ones
constexpr std::vector<row_number> balanced(std::span<const offset_t> contents,
                                           std::span<const offset_t> costs,
                                           const std::same_as<row_limits> auto& limits,
                                           offset_t rows, std::vector<row_number> packed) {
  const auto improve = [&](std::vector<row_number>& row_of) {
    exchange e(contents, costs, limits, rows, row_of);
    return e.run();
  };
  std::vector<row_number> best;
  exchange_result found;
  // Differencing knows nothing of contents: a row may get all of them, and their sum must not wrap.
  if (content_sum(contents) < saturated_sum) {
    best = differencing(costs, rows).run(sorted_units(costs));
    found = improve(best);
    if (found.fits && found.optimal) return best;
  }
  std::vector<row_number> other = dearest_first(contents, costs, limits, rows);
  if (other.empty()) other = std::move(packed);
  const exchange_result of_other = improve(other);
  if (!found.fits || of_other.largest_cost < found.largest_cost) best = std::move(other);
  return best;
}

}  // namespace seqpack::detail
