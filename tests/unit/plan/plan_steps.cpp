// Micro-batches for data-parallel ranks: the budget, the number of steps, the balance.
#define BOOST_TEST_MODULE plan_plan_steps
#include "seqpack/plan/plan_steps.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "seqpack/plan/require_plan.hpp"
#include "support/golden.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

using numbers = std::vector<offset_t>;
constexpr no_context_parallel alone{};

step_plan planned(const numbers& lengths, offset_t budget, offset_t ranks,
                  const step_plan_options& options = {}) {
  return plan_steps(lengths, budget, ranks, padding<each_multiple_of<>>{each_multiple_of<>{1}},
                    alone, options);
}
step_plan padded(const numbers& lengths, offset_t budget, offset_t ranks, offset_t each) {
  return plan_steps(lengths, budget, ranks, padding<each_multiple_of<>>{each_multiple_of<>{each}});
}

/// The micro-batches of all steps, as lists.
std::vector<numbers> lists(const step_plan& plan) {
  std::vector<numbers> result;
  for (offset_t k = 0; k < plan.micro_batches().rows(); ++k) {
    const auto row = plan.micro_batches().row(k);
    result.emplace_back(row.begin(), row.end());
  }
  return result;
}

/// The sum over each micro-batch of a function of its lengths.
template <class F>
numbers sums(const step_plan& plan, const numbers& lengths, const F& f) {
  numbers result;
  for (const numbers& micro_batch : lists(plan)) {
    offset_t sum = 0;
    for (const offset_t s : micro_batch) sum += f(lengths[static_cast<std::size_t>(s)]);
    result.push_back(sum);
  }
  return result;
}
const auto tokens = [](offset_t n) { return n; };
const auto squares = [](offset_t n) { return n * n; };

/// The sum over the steps of the dearest of `ranks` numbers.
offset_t cost_of_steps(const numbers& costs, offset_t ranks) {
  offset_t sum = 0;
  for (auto at = costs.begin(); at != costs.end(); at += ranks) {
    sum += *std::max_element(at, at + ranks);
  }
  return sum;
}

/// What every plan is: each sequence once, the budget held, the same number of micro-batches for all.
void check_plan(const step_plan& plan, const numbers& padded_lengths, offset_t budget,
                offset_t ranks, const step_plan_options& options = {}) {
  BOOST_TEST_REQUIRE(plan.ranks() == ranks);
  BOOST_TEST(plan.steps() % options.steps_multiple == 0);
  BOOST_TEST(plan.micro_batches().rows() == plan.steps() * ranks);
  std::vector<int> times(padded_lengths.size());
  for (const numbers& micro_batch : lists(plan)) {
    BOOST_TEST(static_cast<offset_t>(micro_batch.size()) <= options.most_sequences);
    BOOST_TEST(std::ranges::is_sorted(micro_batch));
    BOOST_TEST(static_cast<offset_t>(micro_batch.size()) % options.tuple == 0);
    for (std::size_t k = 0; k < micro_batch.size(); ++k) {
      ++times[static_cast<std::size_t>(micro_batch[k])];
      const std::size_t first = k - k % static_cast<std::size_t>(options.tuple);
      BOOST_TEST(micro_batch[k] / options.tuple == micro_batch[first] / options.tuple);
    }
  }
  BOOST_TEST(times == std::vector<int>(padded_lengths.size(), 1), boost::test_tools::per_element());
  for (const offset_t sum : sums(plan, padded_lengths, tokens)) BOOST_TEST(sum <= budget);
}

/// Rows of first-fit-decreasing.
offset_t first_fit_rows(numbers lengths, offset_t budget) {
  std::ranges::sort(lengths, std::greater<>());
  numbers rooms;
  for (const offset_t n : lengths) {
    const auto fit = std::ranges::find_if(rooms, [&](offset_t room) { return room >= n; });
    if (fit == rooms.end()) {
      rooms.push_back(budget - n);
    } else {
      *fit -= n;
    }
  }
  return static_cast<offset_t>(rooms.size());
}

/// Largest differencing as it is written in a book: all partitions in a list, as vectors of sums.
numbers largest_differencing(const numbers& costs, std::size_t parts) {
  std::vector<numbers> all;
  for (const offset_t c : costs) {
    all.emplace_back(parts, 0);
    all.back().front() = c;  // decreasing
  }
  const auto difference = [](const numbers& p) { return p.front() - p.back(); };
  while (all.size() > 1) {
    std::ranges::stable_sort(all, std::greater<>(), difference);
    numbers joined = all[0];
    for (std::size_t k = 0; k < parts; ++k) joined[k] += all[1][parts - 1 - k];
    std::ranges::sort(joined, std::greater<>());
    all.erase(all.begin(), all.begin() + 2);
    all.push_back(joined);
  }
  return all.empty() ? numbers(parts, 0) : all.front();
}

/// The fewest steps, and the least cost of so many, by looking at all assignments.
struct optimum {
  offset_t steps;
  offset_t cost;
};
template <class F>
class exhaustive {
 public:
  exhaustive(const numbers& lengths, offset_t budget, offset_t ranks, const F& f)
      : lengths_(lengths), budget_(budget), ranks_(ranks), f_(f) {}
  optimum find(offset_t multiple) {
    for (offset_t steps = multiple;; steps += multiple) {
      loads_.assign(static_cast<std::size_t>(steps * ranks_), 0);
      costs_ = loads_;
      assign(0, 0);
      if (best_ >= 0) return {steps, best_};
    }
  }

 private:
  void assign(std::size_t next, std::size_t used) {
    if (next == lengths_.size()) {
      numbers sorted = costs_;
      std::ranges::sort(sorted, std::greater<>());
      const offset_t cost = cost_of_steps(sorted, ranks_);
      if (best_ < 0 || cost < best_) best_ = cost;
      return;
    }
    for (std::size_t k = 0; k < std::min(used + 1, loads_.size()); ++k) {
      if (loads_[k] + lengths_[next] > budget_) continue;
      loads_[k] += lengths_[next];
      costs_[k] += f_(lengths_[next]);
      assign(next + 1, std::max(used, k + 1));
      loads_[k] -= lengths_[next];
      costs_[k] -= f_(lengths_[next]);
    }
  }
  const numbers& lengths_;
  offset_t budget_;
  offset_t ranks_;
  const F& f_;
  numbers loads_;
  numbers costs_;
  offset_t best_ = -1;
};

numbers random_lengths(std::mt19937& random, std::size_t count, offset_t longest) {
  std::lognormal_distribution<double> skewed(0, 1);
  std::uniform_int_distribution<offset_t> even(0, longest);
  const bool skew = random() % 2 == 0;
  numbers lengths(count);
  for (offset_t& n : lengths) {
    n = skew ? std::min(longest, static_cast<offset_t>(skewed(random) * double(longest) / 8))
             : even(random);
  }
  return lengths;
}

constexpr std::array<offset_t, 4> tokens_of_two_ranks() {
  const step_plan plan = plan_steps(std::array{8, 7, 6, 5, 4}, 15, 2);
  std::array<offset_t, 4> result{plan.steps(), plan.empty_micro_batches(), 0, 0};
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (const offset_t s : plan.micro_batch(0, static_cast<offset_t>(rank))) {
      result[2 + rank] += std::array{8, 7, 6, 5, 4}[static_cast<std::size_t>(s)];
    }
  }
  return result;
}
static_assert(tokens_of_two_ranks() == std::array<offset_t, 4>{1, 0, 15, 15});

}  // namespace

BOOST_AUTO_TEST_CASE(the_budget_comes_before_the_balance_of_differencing) {
  const numbers lengths{8, 7, 6, 5, 4};
  BOOST_TEST(largest_differencing(lengths, 2) == (numbers{16, 14}));
  const step_plan plan = planned(lengths, 15, 2);
  BOOST_TEST((lists(plan) == std::vector<numbers>{{0, 1}, {2, 3, 4}}));
  // Where the budget leaves room for it, the result is not worse.
  BOOST_TEST(sums(planned(lengths, 16, 2), lengths, tokens) == (numbers{15, 15}));
  check_plan(planned(lengths, 14, 2), lengths, 14, 2);
  BOOST_TEST(planned(lengths, 14, 2).steps() == 2);
}

BOOST_AUTO_TEST_CASE(not_worse_than_the_reference) {
  int parts = 0;
  const golden::tree document = golden::read("plans.json");
  for (const auto& [key, c] : document.get_child("cases")) {
    numbers lengths;
    for (const auto& [k, n] : c.get_child("lengths")) lengths.push_back(golden::number(n));
    const offset_t each = c.get<offset_t>("each");
    const offset_t capacity = c.get<offset_t>("capacity");
    numbers rounded = lengths;
    for (offset_t& n : rounded) n = (n + each - 1) / each * each;
    BOOST_TEST_CONTEXT(c.get<std::string>("name")) {
      for (const auto& [k, b] : c.get_child("balanced")) {
        const offset_t ranks = b.get<offset_t>("k");
        const step_plan plan = padded(lengths, max_tokens, ranks, each);
        check_plan(plan, rounded, max_tokens, ranks);
        BOOST_TEST(plan.steps() == 1);
        const offset_t cost = cost_of_steps(sums(plan, rounded, tokens), ranks);
        BOOST_TEST(cost <= b.get<offset_t>("max_load"));
        BOOST_TEST(cost <= b.get<offset_t>("lpt_max_load"));
        BOOST_TEST(cost >= b.get<offset_t>("lower_bound"));
        ++parts;
      }
      for (const offset_t ranks : {1, 3, 8}) {
        const step_plan plan = padded(lengths, capacity, ranks, each);
        check_plan(plan, rounded, capacity, ranks);
        const auto steps_of = [&](const char* rows) {
          return (c.get<offset_t>(rows) + ranks - 1) / ranks;
        };
        BOOST_TEST(plan.steps() <= std::max<offset_t>(steps_of("ffd_rows"), 1));
        BOOST_TEST(plan.steps() >= steps_of("lower_bound_l2"));
      }
    }
  }
  BOOST_TEST(parts > 50);
}

BOOST_AUTO_TEST_CASE(near_the_best_of_all_assignments) {
  std::mt19937 random(11);
  int optimal = 0;
  int fewest = 0;
  double worst = 1;
  constexpr int cases = 1200;
  for (int t = 0; t < cases; ++t) {
    const offset_t budget = 10 + static_cast<offset_t>(random() % 40);
    numbers lengths(1 + random() % 8);
    for (offset_t& n : lengths) n = static_cast<offset_t>(random()) % (budget + 1);
    const offset_t ranks = 1 + t % 3;
    const offset_t multiple = 1 + t / 3 % 2;
    const auto check = [&](const auto& f, const sequence_cost& cost) {
      const optimum best = exhaustive(lengths, budget, ranks, f).find(multiple);
      const step_plan_options options{.cost = cost, .steps_multiple = multiple};
      const step_plan plan = planned(lengths, budget, ranks, options);
      check_plan(plan, lengths, budget, ranks, options);
      BOOST_TEST(plan.steps() >= best.steps);
      const numbers costs = sums(plan, lengths, f);
      const offset_t found = cost_of_steps(costs, ranks);
      fewest += plan.steps() == best.steps;
      if (plan.steps() != best.steps) return;
      BOOST_TEST(found >= best.cost);
      optimal += found == best.cost;
      if (best.cost > 0) {
        worst = std::max(worst, static_cast<double>(found) / static_cast<double>(best.cost));
      }
    };
    check(tokens, {});
    check(squares, {0, 1});
  }
  BOOST_TEST_MESSAGE("of " << 2 * cases << " plans " << fewest << " have the fewest steps, and "
                           << optimal << " cost the least; the others at most " << worst
                           << " times that");
  BOOST_TEST(fewest >= 2 * cases - 2);
  BOOST_TEST(optimal >= 2 * cases * 97 / 100);
  BOOST_TEST(worst <= 1.3);
}

BOOST_AUTO_TEST_CASE(random_lists_keep_what_is_promised) {
  std::mt19937 random(5);
  for (int t = 0; t < 1500; ++t) {
    const offset_t budget = 1 + static_cast<offset_t>(random() % 300);
    const offset_t ranks = 1 + static_cast<offset_t>(random() % 9);
    step_plan_options options{.steps_multiple = 1 + t % 3, .tuple = 1 + t / 3 % 3};
    options.most_sequences =
        t % 4 == 0 ? options.tuple * (1 + static_cast<offset_t>(random() % 4)) : max_tokens;
    options.cost = t % 2 == 0 ? sequence_cost{} : sequence_cost{3, 1};
    const auto count = (random() % 60) / static_cast<std::size_t>(options.tuple) *
                       static_cast<std::size_t>(options.tuple);
    const numbers lengths = random_lengths(random, count, budget / options.tuple);
    const step_plan plan = planned(lengths, budget, ranks, options);
    check_plan(plan, lengths, budget, ranks, options);
    BOOST_TEST((plan == planned(lengths, budget, ranks, options)));

    // Steps: never more than first-fit-decreasing and the fewest multiple ask for.
    if (options.tuple == 1 && options.most_sequences == max_tokens && count > 0) {
      const offset_t needed = (first_fit_rows(lengths, budget) + ranks - 1) / ranks;
      const offset_t multiple = options.steps_multiple;
      BOOST_TEST(plan.steps() <= (needed + multiple - 1) / multiple * multiple);
    }
    // Balance: not worse than largest differencing, where that keeps the budget.
    if (options.tuple == 1 && options.most_sequences == max_tokens && count > 0 && t % 2 == 0) {
      const numbers parts =
          largest_differencing(lengths, static_cast<std::size_t>(plan.steps() * ranks));
      if (parts.front() <= budget) {
        BOOST_TEST(cost_of_steps(sums(plan, lengths, tokens), ranks) <=
                   cost_of_steps(parts, ranks));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(costs_are_balanced_and_not_tokens) {
  // 10^2 = 6^2 + 8^2: with squares two ranks cost the same where their tokens differ.
  const numbers lengths{10, 6, 8};
  const step_plan plan = planned(lengths, 14, 2, {.cost = {0, 1}});
  BOOST_TEST(sums(plan, lengths, squares) == (numbers{100, 100}));
  BOOST_TEST(sums(plan, lengths, tokens) == (numbers{10, 14}));

  const auto by_hand = [](offset_t n) -> offset_t { return n == 6 ? 100 : 1; };
  const step_plan other = planned(lengths, 18, 2, {.cost = by_hand});
  BOOST_TEST((lists(other) == std::vector<numbers>{{1}, {0, 2}}));

  std::mt19937 random(3);
  for (int t = 0; t < 100; ++t) {
    const numbers many = random_lengths(random, 50, 1000);
    const numbers parts = [&] {
      numbers costs = many;
      for (offset_t& c : costs) c = c * (7 + c);
      return largest_differencing(costs, 4);
    }();
    const step_plan four = planned(many, max_tokens, 4, {.cost = {7, 1}});
    BOOST_TEST(four.steps() == 1);
    const numbers costs = sums(four, many, [](offset_t n) { return n * (7 + n); });
    BOOST_TEST(*std::ranges::max_element(costs) <= parts.front());
  }
}

BOOST_AUTO_TEST_CASE(micro_batches_of_a_step_cost_about_the_same) {
  // Two long ones, which fill a micro-batch each, belong into one step.
  const numbers lengths{1, 10, 1, 10, 1, 1};
  const step_plan plan = planned(lengths, 10, 2, {.steps_multiple = 2});
  BOOST_TEST(sums(plan, lengths, tokens) == (numbers{10, 10, 2, 2}));
  std::mt19937 random(17);
  for (int t = 0; t < 100; ++t) {
    const numbers many = random_lengths(random, 100, 100);
    const numbers costs = sums(planned(many, 100, 3), many, tokens);
    for (std::size_t first = 3; first < costs.size(); first += 3) {
      const auto before = costs.begin() + static_cast<std::ptrdiff_t>(first) - 3;
      BOOST_TEST(*std::min_element(before, before + 3) >=
                 *std::max_element(before + 3, before + 6));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_dearest_micro_batch_is_not_always_the_same_ranks) {
  const numbers lengths{9, 8, 7, 6};
  const step_plan plan = planned(lengths, 9, 2);
  BOOST_TEST((lists(plan) == std::vector<numbers>{{0}, {1}, {3}, {2}}));
}

BOOST_AUTO_TEST_CASE(micro_batches_may_be_empty) {
  const step_plan plan = planned({5, 3}, 8, 4);
  BOOST_TEST((lists(plan) == std::vector<numbers>{{0}, {1}, {}, {}}));
  BOOST_TEST(plan.empty_micro_batches() == 2);
  BOOST_TEST(plan.is_empty(0, 2));
  BOOST_TEST(!plan.is_empty(0, 1));
  const step_plan four_steps = planned({5}, 8, 2, {.steps_multiple = 4});
  BOOST_TEST(four_steps.steps() == 4);
  BOOST_TEST(four_steps.empty_micro_batches() == 7);
  BOOST_TEST(!four_steps.is_empty(0, 0));
  const step_plan many = planned({5, 3}, 8, 10'000);
  BOOST_TEST(many.steps() == 1);
  BOOST_TEST(many.empty_micro_batches() == 9'998);
}

BOOST_AUTO_TEST_CASE(no_sequences_make_no_steps) {
  const step_plan plan = planned({}, 8, 4, {.steps_multiple = 3});
  BOOST_TEST(plan.steps() == 0);
  BOOST_TEST(plan.ranks() == 4);
}

BOOST_AUTO_TEST_CASE(empty_sequences_are_in_a_micro_batch_too) {
  const numbers lengths{0, 0, 0};
  const step_plan plan = planned(lengths, 1, 2);
  check_plan(plan, lengths, 1, 2);
  BOOST_TEST(plan.steps() == 1);
  const step_plan few = planned(lengths, 1, 2, {.most_sequences = 1});
  check_plan(few, lengths, 1, 2, {.most_sequences = 1});
  BOOST_TEST(few.steps() == 2);
}

BOOST_AUTO_TEST_CASE(the_padding_says_what_fits) {
  // 3 sequences of 5 become 8 each; a total multiple of 10 leaves 20 of 29 tokens.
  const std::vector lengths{5, 5, 5};
  const padding<each_multiple_of<8>, total_multiple_of<10>> tens{};
  BOOST_TEST(plan_steps(lengths, 29, 1, tens).steps() == 2);
  BOOST_TEST(plan_steps(lengths, 30, 1, tens).steps() == 1);
  // Of a fixed total the smaller number counts, and an empty micro-batch is legal.
  const padding<each_multiple_of<8>, fixed_total<16>> fixed{};
  const step_plan plan = plan_steps(lengths, 100, 2, fixed);
  BOOST_TEST(plan.steps() == 1);
  BOOST_TEST((plan_steps(lengths, dynamic, 2, fixed) == plan));
  const step_plan with_empty = plan_steps(lengths, 16, 3, fixed, alone, {.steps_multiple = 2});
  BOOST_TEST(with_empty.empty_micro_batches() == 3);
  require_plan(with_empty, lengths, 16, fixed);
  for (const auto micro_batch : plan.of_rank(0)) {
    BOOST_TEST(make_layout(lengths, fixed, alone, {.order = micro_batch}).total_tokens() == 16);
  }
}

BOOST_AUTO_TEST_CASE(types_of_lengths_and_static_numbers_make_no_difference) {
  std::mt19937 random(9);
  const numbers lengths = random_lengths(random, 200, 120);
  const step_plan plan = padded(lengths, 500, 3, 8);
  const std::vector<std::int8_t> narrow(lengths.begin(), lengths.end());
  BOOST_TEST((plan == plan_steps(narrow, 500, 3, padding<each_multiple_of<8>>{})));
  const std::vector<std::uint64_t> wide(lengths.begin(), lengths.end());
  BOOST_TEST((plan == plan_steps(wide, 500, 3, padding<each_multiple_of<8>>{})));
}

BOOST_AUTO_TEST_CASE(what_is_too_long_is_refused_truncated_or_split) {
  const numbers lengths{3, 20};
  BOOST_TEST(
      refusal([&] { planned(lengths, 8, 2); }) ==
      "padded length of lengths[1] is 20: it must be at most 8, what a row of capacity 8 has "
      "room for");
  const step_plan cut = planned(lengths, 8, 2, {.too_long = too_long::truncate});
  BOOST_TEST((lists(cut) == std::vector<numbers>{{1}, {0}}));
  BOOST_TEST((std::ranges::equal(cut.micro_batches().pieces(),
                                 std::vector<sequence_piece>{{0, 0, 3}, {1, 0, 8}})));
  const step_plan pieces = planned(lengths, 8, 2, {.too_long = too_long::split});
  BOOST_TEST((std::ranges::equal(
      pieces.micro_batches().pieces(),
      std::vector<sequence_piece>{{0, 0, 3}, {1, 0, 8}, {1, 8, 8}, {1, 16, 4}})));
  BOOST_TEST((lists(pieces) == std::vector<numbers>{{1}, {2}, {3}, {0}}));
  require_plan(pieces, lengths, 8);
}

BOOST_AUTO_TEST_CASE(numbers_out_of_range_are_refused) {
  const numbers lengths{3, 4, 5};
  const auto says = [&](offset_t budget, offset_t ranks, const step_plan_options& options = {}) {
    return refusal([&] { planned(lengths, budget, ranks, options); });
  };
  BOOST_TEST(says(0, 2) == "token_budget is 0: it must be from 1 to 281474976710656");
  BOOST_TEST(says(max_tokens + 1, 2) ==
             "token_budget is 281474976710657: it must be from 1 to 281474976710656");
  BOOST_TEST(says(dynamic, 2) ==
             "token_budget is dynamic: it must be given where the padding has no fixed_total");
  BOOST_TEST(says(8, 0) == "ranks is 0: it must be from 1 to 1048576");
  BOOST_TEST(says(8, std::numeric_limits<offset_t>::max()) ==
             "ranks is 9223372036854775807: it must be from 1 to 1048576");
  const std::string multiple =
      ": it must be from 1 to 2097152, so that times 2 ranks it is at most 4194304";
  BOOST_TEST(says(8, 2, {.steps_multiple = 0}) == "steps_multiple is 0" + multiple);
  BOOST_TEST(says(8, 2, {.steps_multiple = max_tokens}) ==
             "steps_multiple is 281474976710656" + multiple);
  BOOST_TEST(says(8, 2, {.tuple = 2}) ==
             "number of sequences is 3: it must be a multiple of 2, the sequences of a tuple");
  BOOST_TEST(says(8, 2, {.tuple = 0}) == "tuple is 0: it must be from 1 to 281474976710656");
  BOOST_TEST(says(8, 2, {.most_sequences = 0}) == "most_sequences is 0: it must be at least 1");
  BOOST_TEST(refusal([&] { planned({3, -1}, 8, 2); }) ==
             "lengths[1] is -1: a length must be at least 0");
  BOOST_TEST(refusal([&] { planned({3, max_tokens}, max_tokens, 2, {.cost = {0, 1}}); }) ==
             "cost of lengths[1] is 9223372036854775807: it must be from 0 to 2305843009213693952");
}

BOOST_AUTO_TEST_CASE(the_largest_numbers_do_not_wrap) {
  const numbers lengths(64, max_tokens);
  const step_plan plan = planned(lengths, max_tokens, 8);
  check_plan(plan, lengths, max_tokens, 8);
  BOOST_TEST(plan.steps() == 8);
  const sequence_cost dear = [](offset_t) { return max_cost / 64; };
  BOOST_TEST(planned(lengths, max_tokens, 8, {.cost = dear}).steps() == 8);
  // Together more than 64 bits hold, and for nothing.
  const numbers endless(140'000, max_tokens / 2);
  const sequence_cost nothing = [](offset_t) { return offset_t{0}; };
  const step_plan in_twos = planned(endless, max_tokens, 8, {.cost = nothing});
  BOOST_TEST(in_twos.steps() == 8'750);
  require_plan(in_twos, endless, max_tokens);
}

BOOST_AUTO_TEST_CASE(adopted_plans_are_checked) {
  const numbers lengths{3, 4, 5};
  const auto says = [&](const std::vector<int>& sequences, const std::vector<int>& bounds,
                        const plan_requirements& requirements = {}) {
    return refusal([&] {
      require_plan(step_plan(row_plan(sequences, bounds), 2), lengths, 8, no_padding{}, alone,
                   requirements);
    });
  };
  BOOST_TEST(says({0, 1, 2}, {0, 2, 3}) == "accepted");
  BOOST_TEST(says({0, 1, 2}, {0, 2, 3, 3, 3}) == "accepted");
  BOOST_TEST(says({0, 1}, {0, 2, 2}) == "sequence 2 is in no row: each must be in one row");
  BOOST_TEST(says({0, 1, 0}, {0, 2, 3}) ==
             "slot 0 of row 1 is 0: a sequence may be in one slot, and row 0 has it");
  BOOST_TEST(
      says({0, 1, 2}, {0, 1, 3}) ==
      "padded lengths of row 1 together is 9: it must be at most 8, what a row of capacity 8 "
      "has room for");
  BOOST_TEST(says({0, 1, 2}, {0, 2, 3}, {.most_sequences = 1}) ==
             "number of sequences of row 0 is 2: it must be at most 1");
  BOOST_TEST(refusal([&] {
               require_plan(step_plan(row_plan(std::vector{0, 1, 2, 3}, std::vector{0, 1, 4}), 2),
                            std::vector{1, 1, 1, 1}, 8, no_padding{}, alone, {.tuple = 2});
             }) == "sequence 1 is in row 1: sequence 0 of its tuple is in row 0");
  BOOST_TEST(refusal([&] { require_plan(step_plan(), lengths, 0); }) ==
             "token_budget is 0: it must be from 1 to 281474976710656");
}
