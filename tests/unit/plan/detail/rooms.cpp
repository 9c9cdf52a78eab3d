#define BOOST_TEST_MODULE plan_detail_rooms
#include "seqpack/plan/detail/rooms.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "seqpack/plan/detail/decreasing.hpp"

using namespace seqpack;
using namespace seqpack::detail;

namespace {

/// Rows by room, the least first, and of equal rooms the one put in last.
struct plain_rooms {
  std::vector<std::pair<offset_t, row_number>> rows;

  row_number take(offset_t size) {
    auto best = rows.end();
    for (auto it = rows.begin(); it != rows.end(); ++it) {
      if (it->first >= size && (best == rows.end() || it->first <= best->first)) best = it;
    }
    if (best == rows.end()) return no_row;
    const row_number row = best->second;
    rows.erase(best);
    return row;
  }
  void put(row_number row, offset_t room) { rows.emplace_back(room, row); }
};

template <class Rooms>
void check(offset_t largest, int rows, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<offset_t> number(0, largest);
  Rooms rooms(largest, rows);
  plain_rooms plain;
  std::vector<row_number> outside(static_cast<std::size_t>(rows));
  for (int k = 0; k < rows; ++k) outside[static_cast<std::size_t>(k)] = k;
  for (int i = 0; i < 2000; ++i) {
    if (!outside.empty() && (i % 3 != 0 || plain.rows.empty())) {
      const offset_t room = number(random);
      rooms.put(outside.back(), room);
      plain.put(outside.back(), room);
      outside.pop_back();
      continue;
    }
    const offset_t size = number(random);
    const row_number row = plain.take(size);
    BOOST_REQUIRE(rooms.take(size) == row);
    if (row != no_row) outside.push_back(row);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(bits_are_found_again) {
  for (const offset_t largest : {0, 1, 63, 64, 65, 4095, 4096, 300'000}) {
    std::mt19937 random(static_cast<unsigned>(largest));
    std::uniform_int_distribution<offset_t> number(0, largest);
    bit_tree tree(largest);
    std::set<offset_t> plain;
    BOOST_TEST(tree.find(0) == -1);
    for (int i = 0; i < 3000; ++i) {
      const offset_t n = number(random);
      if (i % 3 == 0) {
        tree.erase(n);
        plain.erase(n);
      } else {
        tree.insert(n);
        plain.insert(n);
      }
      const offset_t from = i % 2 == 0 ? number(random) : n + 1;
      const auto next = plain.lower_bound(from);
      BOOST_REQUIRE(tree.find(from) == (next == plain.end() ? -1 : *next));
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_are_taken_by_least_room) {
  for (const offset_t largest : {0, 5, 100, 5000}) {
    for (const int rows : {1, 3, 200}) {
      check<room_lists>(largest, rows, 1);
      check<room_tree>(largest, rows, 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_in_order_are_found_by_room) {
  std::mt19937 random(1);
  for (const offset_t rows : {1, 2, 3, 7, 64, 100}) {
    room_order order(50, rows);
    std::vector<offset_t> plain(static_cast<std::size_t>(rows), 50);
    for (int i = 0; i < 500; ++i) {
      const auto size = std::uniform_int_distribution<offset_t>(0, 50)(random);
      const auto first =
          std::find_if(plain.begin(), plain.end(), [&](offset_t r) { return r >= size; });
      const row_number found = order.find(size);
      BOOST_REQUIRE(found == (first == plain.end() ? no_row : first - plain.begin()));
      const auto row =
          std::uniform_int_distribution<row_number>(0, static_cast<row_number>(rows - 1))(random);
      const auto room = std::uniform_int_distribution<offset_t>(-1, 50)(random);
      order.set(row, room);
      plain[static_cast<std::size_t>(row)] = room;
      BOOST_REQUIRE(order.room(row) == room);
    }
  }
}

BOOST_AUTO_TEST_CASE(sizes_are_sorted_and_equal_ones_keep_their_order) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {0u, 1u, 2u, 511u, 512u, 513u, 3000u}) {
    for (const int bits : {0, 3, 11, 12, 40, 62}) {
      std::vector<sized_unit> units;
      for (std::size_t k = 0; k < count; ++k) {
        units.push_back(
            {static_cast<offset_t>(random() >> 1) >> (63 - bits), static_cast<row_number>(k)});
      }
      std::vector<sized_unit> plain = units;
      std::stable_sort(plain.begin(), plain.end(),
                       [](const auto& a, const auto& b) { return a.size > b.size; });
      sort_decreasing(units);
      const bool same = std::equal(
          units.begin(), units.end(), plain.begin(), plain.end(),
          [](const auto& a, const auto& b) { return a.size == b.size && a.unit == b.unit; });
      BOOST_TEST(same, count << " of " << bits << " bits");
    }
  }
}

BOOST_AUTO_TEST_CASE(units_are_counted_where_sizes_are_small) {
  std::mt19937 random(2);
  for (const std::size_t count : {0u, 1u, 600u}) {
    for (const offset_t largest : {0, 1, 599, 600, 601, 100'000}) {
      for (const int shift : {0, 3}) {
        std::vector<offset_t> sizes(count);
        for (offset_t& s : sizes) {
          s = std::uniform_int_distribution<offset_t>(0, largest)(random) << shift;
        }
        const std::vector<sized_unit> units = sorted_units(sizes, shift);
        BOOST_REQUIRE(units.size() == count);
        std::set<row_number> seen;
        for (std::size_t k = 0; k < count; ++k) {
          BOOST_REQUIRE(units[k].size << shift == sizes[static_cast<std::size_t>(units[k].unit)]);
          seen.insert(units[k].unit);
          if (k == 0) continue;
          BOOST_REQUIRE((units[k - 1].size > units[k].size || (units[k - 1].size == units[k].size &&
                                                               units[k - 1].unit < units[k].unit)));
        }
        BOOST_REQUIRE(seen.size() == count);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(arrays_and_trees_of_rooms_give_the_same_rows) {
  std::mt19937 random(1);
  for (int i = 0; i < 50; ++i) {
    std::vector<sized_unit> units;
    for (int k = 0; k < 700; ++k) {
      units.push_back({std::uniform_int_distribution<offset_t>(0, 99)(random), k});
    }
    sort_decreasing(units);
    const row_limits limits{99 + i, i % 2 == 0 ? max_tokens : 5};
    BOOST_TEST(best_fit<room_lists>(units, limits).row_of ==
               best_fit<room_tree>(units, limits).row_of);
  }
}
