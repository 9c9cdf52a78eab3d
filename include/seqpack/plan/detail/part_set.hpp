/// \file
/// Units in parts, and the moves and swaps that take something from one part to another.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/plan/detail/decreasing.hpp"
#include "seqpack/plan/detail/rooms.hpp"

namespace seqpack::detail {

/// No unit, one, or two.
struct few_units {
  std::array<row_number, 2> units{no_row, no_row};

  constexpr few_units() = default;
  constexpr few_units(row_number one, row_number other = no_row) : units{one, other} {}
  constexpr offset_t count() const noexcept {
    return (units[0] != no_row) + offset_t{units[1] != no_row};
  }
};

/// Units go from one part to another, and those that are taken for them the other way.
struct unit_exchange {
  row_number from = no_row;
  row_number to = no_row;
  few_units given;
  few_units taken;
  offset_t difference = 0;  ///< what `from` loses and `to` gains

  constexpr explicit operator bool() const noexcept { return given.count() > 0; }
};

/// Units in parts. Those of a part are sorted by a key, their costs or their contents, so that what comes
/// nearest to a difference is found by bisection.
template <std::same_as<row_limits> Limits>
class basic_part_set {
 public:
  using keyed_units = std::vector<std::pair<offset_t, row_number>>;
  struct part {
    offset_t cost = 0;
    offset_t content = 0;
    keyed_units units;  ///< increasing

    constexpr offset_t count() const noexcept { return static_cast<offset_t>(units.size()); }
  };

  /// \param contents, costs of the units; `keys` is one of the two
  /// \param part_of the part of each unit
  constexpr basic_part_set(std::span<const offset_t> contents, std::span<const offset_t> costs,
                           std::span<const offset_t> keys, std::vector<row_number> part_of,
                           offset_t parts, const row_limits& limits)
      : contents_(contents),
        costs_(costs),
        keys_(keys),
        part_of_(std::move(part_of)),
        parts_(nth(parts), part{}),
        limits_(limits) {
    std::vector<std::size_t> counts(parts_.size(), 0);
    for (const row_number k : part_of_) ++counts[nth(k)];
    for (std::size_t k = 0; k < parts_.size(); ++k) parts_[k].units.reserve(counts[k]);
    for (std::size_t u = 0; u < part_of_.size(); ++u) {
      part& p = parts_[nth(part_of_[u])];
      p.cost += costs_[u];
      p.content += contents_[u];
      p.units.emplace_back(keys_[u], static_cast<row_number>(u));
    }
    for (part& p : parts_) std::sort(p.units.begin(), p.units.end());
  }
  constexpr ~basic_part_set() = default;  // for nvcc, which sees none where a member is a span

  constexpr row_number size() const noexcept { return static_cast<row_number>(parts_.size()); }
  constexpr const part& operator[](row_number k) const { return parts_[nth(k)]; }
  constexpr const row_limits& limits() const noexcept { return limits_; }
  constexpr const std::vector<row_number>& part_of() const noexcept { return part_of_; }
  /// How often the units of a part were searched.
  constexpr offset_t searches() const noexcept { return searches_; }

  constexpr void move(row_number unit, row_number to) {
    part& source = parts_[nth(part_of_[nth(unit)])];
    part& target = parts_[nth(to)];
    const std::pair entry{keys_[nth(unit)], unit};
    source.units.erase(std::lower_bound(source.units.begin(), source.units.end(), entry));
    target.units.insert(std::lower_bound(target.units.begin(), target.units.end(), entry), entry);
    source.cost -= costs_[nth(unit)];
    target.cost += costs_[nth(unit)];
    source.content -= contents_[nth(unit)];
    target.content += contents_[nth(unit)];
    part_of_[nth(unit)] = to;
  }
  constexpr void apply(const unit_exchange& e) {
    for (const row_number unit : e.given.units) {
      if (unit != no_row) move(unit, e.to);
    }
    for (const row_number unit : e.taken.units) {
      if (unit != no_row) move(unit, e.from);
    }
  }

  /// The move or swap between two parts whose difference of keys, from 1 to `most`, is nearest to
  /// `wanted`; of equally near ones, the first found. `to` keeps the limits, and so does `from` where its
  /// content would grow.
  constexpr unit_exchange find(row_number from, row_number to, offset_t wanted, offset_t most) {
    search s{.found = {from, to, {}, {}}, .wanted = wanted, .most = most};
    if (most < 1) return s.found;
    const keyed_units& givable = (*this)[from].units;
    if ((*this)[to].count() < limits_.most_units) {
      for (const row_number unit : nearest(givable, wanted)) {
        if (unit != no_row) consider(s, unit, {});
      }
    }
    for (auto given = givable.rbegin(); given != givable.rend() && s.distance > 0; ++given) {
      for (const row_number unit : nearest((*this)[to].units, given->first - wanted)) {
        if (unit != no_row) consider(s, given->second, unit);
      }
    }
    return s.found;
  }

  /// The same for exchanges of up to two units for up to two, where there are few enough of them: what
  /// this costs grows with the square.
  constexpr unit_exchange find_pairs(row_number from, row_number to, offset_t wanted,
                                     offset_t most) {
    constexpr offset_t few = 48;
    constexpr std::size_t few_in_all = 1024;
    search s{.found = {from, to, {}, {}}, .wanted = wanted, .most = most};
    if (most < 1 || part_of_.size() > few_in_all) return s.found;
    if ((*this)[from].count() > few || (*this)[to].count() > few) return s.found;
    const keyed_pairs given = pairs_of((*this)[from].units);
    const keyed_pairs taken = pairs_of((*this)[to].units);
    searches_ += static_cast<offset_t>(given.size() + taken.size());
    for (const keyed_pair& g : given) {
      auto above = std::lower_bound(taken.begin(), taken.end(), g.key - wanted,
                                    [](const keyed_pair& t, offset_t key) { return t.key < key; });
      if (above != taken.end()) consider(s, g.units, above->units);
      if (above != taken.begin()) consider(s, g.units, (--above)->units);
    }
    return s.found;
  }

 private:
  struct search {
    unit_exchange found;
    offset_t wanted;
    offset_t most;
    offset_t distance = max_distance;
  };
  static constexpr offset_t max_distance = offset_t{1} << 62;

  static constexpr int few_near = 3;
  /// Units whose keys are nearest to a number, on both sides: a few, for where the nearest breaks a limit.
  constexpr std::array<row_number, 2 * few_near> nearest(const keyed_units& units,
                                                         offset_t number) {
    ++searches_;
    std::array<row_number, 2 * few_near> found{no_row, no_row, no_row, no_row, no_row, no_row};
    auto above = std::lower_bound(units.begin(), units.end(), std::pair{number, row_number{0}});
    auto below = above;
    auto next = found.begin();
    for (int k = 0; k < few_near && above != units.end(); ++k) *next++ = (above++)->second;
    for (int k = 0; k < few_near && below != units.begin(); ++k) *next++ = (--below)->second;
    return found;
  }

  struct keyed_pair {
    offset_t key;
    few_units units;
  };
  using keyed_pairs = std::vector<keyed_pair>;
  /// No unit, every unit and every two, by what their keys sum up to.
  constexpr keyed_pairs pairs_of(const keyed_units& units) const {
    keyed_pairs pairs{{0, {}}};
    for (std::size_t a = 0; a < units.size(); ++a) {
      pairs.push_back({units[a].first, units[a].second});
      for (std::size_t b = 0; b < a; ++b) {
        pairs.push_back({units[a].first + units[b].first, {units[a].second, units[b].second}});
      }
    }
    std::sort(pairs.begin(), pairs.end(), [](const keyed_pair& a, const keyed_pair& b) {
      return a.key != b.key ? a.key < b.key : a.units.units < b.units.units;
    });
    return pairs;
  }

  constexpr offset_t sum(std::span<const offset_t> numbers, const few_units& units) const {
    offset_t result = 0;
    for (const row_number unit : units.units) result += unit == no_row ? 0 : numbers[nth(unit)];
    return result;
  }

  constexpr void consider(search& s, const few_units& given, const few_units& taken) const {
    const offset_t difference = sum(keys_, given) - sum(keys_, taken);
    const offset_t distance = difference < s.wanted ? s.wanted - difference : difference - s.wanted;
    if (difference < 1 || difference > s.most || distance >= s.distance) return;
    const offset_t content = sum(contents_, given) - sum(contents_, taken);
    const offset_t count = given.count() - taken.count();
    const part& from = (*this)[s.found.from];
    const part& to = (*this)[s.found.to];
    if (to.content + content > limits_.room || to.count() + count > limits_.most_units) return;
    if (content < 0 && from.content - content > limits_.room) return;
    if (count < 0 && from.count() - count > limits_.most_units) return;
    s.distance = distance;
    s.found.given = given;
    s.found.taken = taken;
    s.found.difference = difference;
  }

  std::span<const offset_t> contents_;
  std::span<const offset_t> costs_;
  std::span<const offset_t> keys_;
  std::vector<row_number> part_of_;
  std::vector<part> parts_;
  row_limits limits_;
  offset_t searches_ = 0;
};

using part_set = basic_part_set<row_limits>;

}  // namespace seqpack::detail
