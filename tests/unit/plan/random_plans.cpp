// Random small lists against oracles that know nothing of the planner.
#define BOOST_TEST_MODULE plan_random_plans
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "seqpack/plan/plan_rows.hpp"

using namespace seqpack;

namespace {

using numbers = std::vector<long>;
const no_context_parallel alone;

/// The fewest rows, by trying every row for every sequence.
struct search {
  const numbers& lengths;
  long capacity;
  std::size_t best;
  numbers rows = {};

  void place(std::size_t k) {
    if (rows.size() >= best) return;
    if (k == lengths.size()) {
      best = rows.size();
      return;
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (rows[r] + lengths[k] > capacity) continue;
      rows[r] += lengths[k];
      place(k + 1);
      rows[r] -= lengths[k];
    }
    rows.push_back(lengths[k]);
    place(k + 1);
    rows.pop_back();
  }
};
std::size_t fewest_rows(const numbers& lengths, long capacity) {
  search s{lengths, capacity, lengths.size() + 1};
  s.place(0);
  return s.best;
}

/// The smallest largest sum of k parts, by trying every part for every number.
void split(const numbers& costs, std::size_t k, numbers& parts, long& best) {
  if (k == costs.size()) {
    best = std::min(best, *std::max_element(parts.begin(), parts.end()));
    return;
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    parts[p] += costs[k];
    if (parts[p] < best) split(costs, k + 1, parts, best);
    parts[p] -= costs[k];
    if (parts[p] == 0) break;  // other empty parts are no different
  }
}
long smallest_largest(const numbers& costs, std::size_t parts) {
  numbers sums(parts);
  long best = std::accumulate(costs.begin(), costs.end(), 0L) + 1;
  split(costs, 0, sums, best);
  return best;
}

std::size_t first_fit_decreasing(numbers lengths, long capacity, std::size_t most) {
  std::sort(lengths.rbegin(), lengths.rend());
  numbers room;
  std::vector<std::size_t> count;
  for (const long length : lengths) {
    std::size_t r = 0;
    while (r < room.size() && (room[r] < length || count[r] == most)) ++r;
    if (r == room.size()) {
      room.push_back(capacity);
      count.push_back(0);
    }
    room[r] -= length;
    ++count[r];
  }
  return room.size();
}

/// What is wrong with a plan, or nothing.
std::string wrong(const row_plan& plan, const numbers& lengths, long each, long capacity,
                  std::size_t most) {
  std::vector<int> seen(lengths.size());
  for (offset_t k = 0; k < plan.rows(); ++k) {
    long sum = 0;
    for (const offset_t s : plan.row(k)) {
      if (s < 0 || s >= static_cast<offset_t>(lengths.size())) return "no sequence";
      ++seen[static_cast<std::size_t>(s)];
      sum += (lengths[static_cast<std::size_t>(s)] + each - 1) / each * each;
    }
    if (sum > capacity) return "above the capacity";
    if (plan.row(k).size() > most) return "too many sequences";
  }
  for (const int times : seen) {
    if (times != 1) return "not once";
  }
  return "";
}

numbers random_lengths(std::mt19937& random, std::size_t most, long longest) {
  numbers lengths(std::uniform_int_distribution<std::size_t>(0, most)(random));
  const int kind = std::uniform_int_distribution<int>(0, 3)(random);
  for (long& n : lengths) {
    n = std::uniform_int_distribution<long>(0, longest)(random);
    if (kind == 1) n = longest / (1 + n % 5);                         // a few lengths
    if (kind == 2) n = std::min(longest, longest / 2 + n % 5);        // about half
    if (kind == 3) n = std::min(longest, n * n / (longest + 1) + 1);  // mostly short
  }
  return lengths;
}

}  // namespace

BOOST_AUTO_TEST_CASE(rows_are_few_against_the_fewest) {
  std::mt19937 random(1);
  int optimal = 0;
  constexpr int lists = 20'000;
  for (int i = 0; i < lists; ++i) {
    const long capacity = std::uniform_int_distribution<long>(1, 60)(random);
    const numbers lengths = random_lengths(random, 9, capacity);
    const auto fewest = static_cast<offset_t>(fewest_rows(lengths, capacity));
    const offset_t rows = plan_rows(lengths, capacity).rows();
    BOOST_REQUIRE(rows >= fewest);
    BOOST_REQUIRE(9 * rows <= 11 * fewest + 9);
    optimal += rows == fewest;
  }
  BOOST_TEST(optimal >= lists * 98 / 100);
}

BOOST_AUTO_TEST_CASE(balanced_rows_are_near_the_best_balance) {
  std::mt19937 random(2);
  int optimal = 0;
  constexpr int lists = 5000;
  for (int i = 0; i < lists; ++i) {
    const numbers lengths = random_lengths(random, 8, 40);
    const auto k = std::uniform_int_distribution<offset_t>(1, 4)(random);
    const long best = smallest_largest(lengths, static_cast<std::size_t>(k));
    const row_plan plan = plan_rows(lengths, max_tokens, no_padding{}, alone,
                                    {.method = plan_method::balanced, .rows = k});
    long largest = 0;
    for (offset_t r = 0; r < k; ++r) {
      long sum = 0;
      for (const offset_t s : plan.row(r)) sum += lengths[static_cast<std::size_t>(s)];
      largest = std::max(largest, sum);
    }
    BOOST_REQUIRE(plan.rows() == k);
    BOOST_REQUIRE(largest >= best);
    BOOST_REQUIRE(3 * largest <= 4 * best);  // longest first onto the least loaded is no worse
    optimal += largest == best;
  }
  BOOST_TEST(optimal >= lists * 95 / 100);
}

BOOST_AUTO_TEST_CASE(every_plan_of_random_lists_holds) {
  std::mt19937 random(3);
  const auto number = [&](long least, long most) {
    return std::uniform_int_distribution<long>(least, most)(random);
  };
  for (int i = 0; i < 100'000; ++i) {
    const long each = i % 2 == 0 ? 1 : number(1, 8);
    const long capacity = each * number(1, i % 16 == 0 ? 4000 : 24) + number(0, each - 1);
    const numbers lengths = random_lengths(random, 12, capacity - capacity % each);
    const auto most = static_cast<std::size_t>(i % 3 == 0 ? number(1, 6) : 1000);
    plan_options options{.method = static_cast<plan_method>(i % 5 == 3   ? 1
                                                            : i % 5 == 4 ? 2
                                                                         : 0),
                         .most_sequences = static_cast<offset_t>(most)};
    const row_plan plan =
        plan_rows(lengths, capacity, padding{each_multiple_of<>{each}}, alone, options);
    const std::string fault = wrong(plan, lengths, each, capacity, most);
    BOOST_REQUIRE_MESSAGE(fault.empty(), "list " << i << ": " << fault);
    if (options.method == plan_method::in_order) {
      BOOST_REQUIRE(std::is_sorted(plan.sequences().begin(), plan.sequences().end()));
      continue;
    }
    numbers padded = lengths;
    for (long& n : padded) n = (n + each - 1) / each * each;
    const std::size_t rows = first_fit_decreasing(padded, capacity, most);
    BOOST_REQUIRE(plan.rows() <= static_cast<offset_t>(rows));
  }
}

BOOST_AUTO_TEST_CASE(a_given_number_of_rows_is_kept) {
  std::mt19937 random(4);
  for (int i = 0; i < 5000; ++i) {
    const long capacity = std::uniform_int_distribution<long>(1, 60)(random);
    const numbers lengths = random_lengths(random, 12, capacity);
    const auto most = std::uniform_int_distribution<offset_t>(1, 12)(random);
    const sequence_cost cost = i % 2 == 0 ? sequence_cost{} : sequence_cost{3, 1};
    plan_options options{.most_sequences = most};
    options.rows = std::max<offset_t>(
        1, plan_rows(lengths, capacity, no_padding{}, alone, options).rows() + i % 3);
    options.method = plan_method::balanced;
    options.cost = cost;
    const row_plan plan = plan_rows(lengths, capacity, no_padding{}, alone, options);
    BOOST_REQUIRE(plan.rows() == options.rows);
    const std::string fault = wrong(plan, lengths, 1, capacity, static_cast<std::size_t>(most));
    BOOST_REQUIRE_MESSAGE(fault.empty(), "list " << i << ": " << fault);
  }
}

BOOST_AUTO_TEST_CASE(the_same_list_gives_the_same_plan) {
  std::mt19937 random(5);
  for (const std::size_t count : {20u, 700u, 5000u}) {
    numbers lengths(count);
    for (long& n : lengths) n = std::uniform_int_distribution<long>(0, 100)(random);
    for (const plan_method method :
         {plan_method::decreasing, plan_method::in_order, plan_method::balanced}) {
      const row_plan plan = plan_rows(lengths, 300, no_padding{}, alone, {.method = method});
      for (int again = 0; again < 3; ++again) {
        BOOST_TEST((plan_rows(lengths, 300, no_padding{}, alone, {.method = method}) == plan));
      }
      BOOST_TEST(wrong(plan, lengths, 1, 300, 5000) == "");
    }
  }
}

BOOST_AUTO_TEST_CASE(lists_made_to_mislead) {
  const auto rows = [](const numbers& lengths, long capacity) {
    const row_plan plan = plan_rows(lengths, capacity);
    BOOST_TEST(wrong(plan, lengths, 1, capacity, lengths.size()) == "");
    BOOST_TEST(plan.rows() <=
               static_cast<offset_t>(first_fit_decreasing(lengths, capacity, lengths.size())));
    return plan.rows();
  };
  BOOST_TEST(rows(numbers(1000, 7), 70) == 100);    // all equal
  BOOST_TEST(rows(numbers(1000, 36), 70) == 1000);  // just above half
  BOOST_TEST(rows(numbers(1000, 35), 70) == 500);
  BOOST_TEST(rows(numbers(1000, 0), 70) == 1);
  numbers giant(2000, 3);
  giant[1234] = 1'000'000;
  BOOST_TEST(rows(giant, 1'000'000) == 2);
  numbers harmonic;
  for (long k = 1; k <= 3000; ++k) harmonic.push_back(1'000'000 / k);
  BOOST_TEST(rows(harmonic, 1'000'000) <= 10);  // the sum is 8.6 rows
  // Six of each kind: 5/9, 4/9 and so on of a row, for which first fit needs 11/9 of the fewest.
  numbers worst;
  for (int k = 0; k < 30; ++k) worst.insert(worst.end(), {51, 27, 26, 23, 23});
  for (int k = 0; k < 15; ++k) worst.insert(worst.end(), {51, 27, 26, 23, 23});
  rows(worst, 101);
}

BOOST_AUTO_TEST_CASE(many_short_ones_about_one_size_are_quick) {
  // Rooms that are all but equal, in rows too large for an array of rooms.
  numbers lengths;
  for (long k = 0; k < 20'000; ++k) lengths.push_back((1L << 40) + k % 7);
  const row_plan plan = plan_rows(lengths, (1L << 41) - 1);
  BOOST_TEST(plan.rows() == 20'000);
}
