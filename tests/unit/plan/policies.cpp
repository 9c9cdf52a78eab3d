// What the planner says that a row takes is what make_layout then takes, for any policies.
#define BOOST_TEST_MODULE plan_policies
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "seqpack/plan/plan_rows.hpp"
#include "seqpack/plan/plan_summary.hpp"
#include "seqpack/plan/require_plan.hpp"
#include "seqpack/policy/any_padding.hpp"
#include "seqpack/policy/any_sharding.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refusal;

namespace {

using sharded = context_parallel<dynamic, any_sharding>;
using numbers = std::vector<int>;

int number(std::mt19937& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

any_padding random_padding(std::mt19937& random, int divisor) {
  const each_multiple_of<> each{number(random, 0, 2) == 0 ? 1 : divisor * number(random, 1, 3)};
  const total_multiple_of<> multiple{divisor * number(random, 1, 4)};
  const fixed_total<> fixed{multiple.value() * number(random, 1, 12)};
  switch (number(random, 0, 6)) {
    case 0: return padding{each};
    case 1: return padding{each, multiple};
    case 2: return padding{each, multiple, ghost_tail{}};
    case 3: return padding{each, multiple, fixed};
    case 4: return padding{each, fixed, ghost_tail{}};
    case 5: return padding{each, total_multiple_of<>{number(random, 1, 9)}};
    default: return no_padding{};
  }
}

/// Rounds up to a power of two, and the row to a multiple of 4.
struct powers_of_two {
  static constexpr offset_t static_each = 1;
  static constexpr offset_t static_total_multiple = 4;
  static constexpr offset_t static_fixed_total = 0;
  static constexpr bool has_total = true;
  static constexpr bool has_fixed_total = false;
  static constexpr tail tail_goes_to = tail::ghost;
  constexpr offset_t padded_length(offset_t n) const {
    offset_t power = n > 0;
    while (power < n) power *= 2;
    return power;
  }
  constexpr offset_t each() const { return 1; }
  constexpr offset_t total_multiple() const { return 4; }
  constexpr offset_t fixed_total() const { return 0; }
};

/// Whether the layouts of all rows are what the summary says; with no fixed total, within the capacity.
template <class P, class C>
void check_rows(const row_plan& plan, const numbers& lengths, offset_t capacity, const P& padding,
                const C& cp) {
  require_plan(plan, lengths, capacity, padding, cp);
  const plan_summary summary = summary_of(plan, lengths, capacity, padding, cp);
  offset_t real = 0;
  for (offset_t k = 0; k < plan.rows(); ++k) {
    const auto layout = make_layout(lengths, padding, cp, {.order = plan.row(k)});
    BOOST_REQUIRE(layout.total_tokens() == summary.row_tokens[static_cast<std::size_t>(k)]);
    BOOST_REQUIRE((padding.has_fixed_total || layout.total_tokens() <= capacity));
    real += layout.real_tokens();
  }
  BOOST_REQUIRE(summary.real_tokens == real);
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_a_row_takes_is_what_its_layout_takes) {
  std::mt19937 random(1);
  int planned = 0;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const sharded cp{number(random, 1, 4), static_cast<sharding_kind>(number(random, 0, 3))};
    const auto divisor = static_cast<int>(cp.total_divisor());
    const any_padding padding = random_padding(random, divisor);
    const offset_t capacity =
        padding.has_fixed_total && i % 2 == 0 ? dynamic : number(random, 1, 200);
    const offset_t most = padding.has_fixed_total ? padding.fixed_total() : capacity;
    numbers lengths(static_cast<std::size_t>(number(random, 0, 8)));
    for (int& n : lengths) {
      n = number(random, 0, static_cast<int>(most));
      if (i % 3 != 0) n -= n % divisor;
    }
    const plan_options options{.method = static_cast<plan_method>(number(random, 0, 2))};
    row_plan plan;
    try {
      plan = plan_rows(lengths, capacity, padding, cp, options);
    } catch (const invalid_input&) {
      ++refused;
      continue;
    }
    ++planned;
    check_rows(plan, lengths, capacity, padding, cp);
  }
  BOOST_TEST(planned > 5000);
  BOOST_TEST(refused > 1000);
}

BOOST_AUTO_TEST_CASE(what_is_refused_has_a_sequence_or_a_row_that_no_layout_takes) {
  // With one sequence there is one plan: it is refused exactly if the layout is, or is too long.
  std::mt19937 random(2);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const sharded cp{number(random, 1, 4), static_cast<sharding_kind>(number(random, 0, 3))};
    const any_padding padding = random_padding(random, static_cast<int>(cp.total_divisor()));
    const offset_t capacity = number(random, 1, 100);
    const numbers lengths{number(random, 0, 100)};
    const auto plan = [&] { plan_rows(lengths, capacity, padding, cp); };
    offset_t takes = 0;
    const auto layout = [&] { takes = make_layout(lengths, padding, cp).total_tokens(); };
    const bool is_refused = refusal(plan) != "accepted";
    const bool layout_refused = refusal(layout) != "accepted";
    if (padding.has_fixed_total) takes = padding.padded_length(lengths[0]);
    const bool too_small = !padding.has_fixed_total && capacity < padding.total_multiple();
    BOOST_REQUIRE(is_refused == (layout_refused || takes > capacity || too_small));
    refused += is_refused;
  }
  BOOST_TEST(refused > 1000);
  BOOST_TEST(refused < 19'000);
}

BOOST_AUTO_TEST_CASE(a_user_defined_padding_is_asked) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    numbers lengths(static_cast<std::size_t>(number(random, 0, 20)));
    for (int& n : lengths) n = number(random, 0, 64);
    const plan_options options{.method = static_cast<plan_method>(i % 3)};
    const row_plan plan = plan_rows(lengths, 101, powers_of_two{}, no_context_parallel{}, options);
    check_rows(plan, lengths, 101, powers_of_two{}, no_context_parallel{});
  }
}

BOOST_AUTO_TEST_CASE(static_and_dynamic_numbers_plan_alike) {
  const numbers lengths{5, 9, 16, 3, 30, 8, 1};
  const auto fixed = padding{each_multiple_of<8>{}, fixed_total<32>{}, ghost_tail{}};
  const auto told = padding{each_multiple_of<>{8}, fixed_total<>{32}, ghost_tail{}};
  BOOST_TEST((plan_rows(lengths, dynamic, fixed, context_parallel<4>{}) ==
              plan_rows(lengths, dynamic, told, context_parallel<>{4})));
  BOOST_TEST((plan_rows(lengths, dynamic, any_padding(fixed), context_parallel<4>{}) ==
              plan_rows(lengths, dynamic, fixed)));
}
