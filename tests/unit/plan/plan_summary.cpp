#define BOOST_TEST_MODULE plan_plan_summary
#include "seqpack/plan/plan_summary.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <vector>

#include "seqpack/plan/plan_rows.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refusal;

namespace {

using numbers = std::vector<offset_t>;
const no_context_parallel alone;
const std::array lengths{5, 9, 3, 0};
const row_plan plan(numbers{1, 2, 0, 3}, numbers{0, 2, 4});  // 9 + 3 and 5 + 0

constexpr bool in_constant_expressions() {
  const row_plan rows(numbers{1, 0}, numbers{0, 1, 2});
  const plan_summary s = summary_of(rows, std::array{4, 6}, 8);
  return s.rows == 2 && s.lower_bound == 2 && s.longest_row == 6;
}
static_assert(in_constant_expressions());

}  // namespace

BOOST_AUTO_TEST_CASE(rows_tokens_and_fill) {
  const plan_summary s = summary_of(plan, lengths, 16);
  BOOST_TEST(s.rows == 2);
  BOOST_TEST(s.sequences == 4);
  BOOST_TEST(s.real_tokens == 17);
  BOOST_TEST(s.content == 17);
  BOOST_TEST(s.lower_bound == 2);
  BOOST_TEST(s.fill == 17.0 / 32);
  BOOST_TEST(s.row_tokens == (numbers{12, 5}), boost::test_tools::per_element());
  BOOST_TEST(s.longest_row == 12);
}

BOOST_AUTO_TEST_CASE(tokens_are_those_of_the_layouts) {
  const plan_summary s =
      summary_of(plan, lengths, 24, padding{each_multiple_of<4>{}, total_multiple_of<6>{}});
  BOOST_TEST(s.real_tokens == 17);
  BOOST_TEST(s.content == 12 + 4 + 8);
  BOOST_TEST(s.row_tokens == (numbers{18, 12}), boost::test_tools::per_element());
  BOOST_TEST(s.fill == 24.0 / 48);
  const plan_summary fixed = summary_of(plan, lengths, dynamic, padding{fixed_total<20>{}});
  BOOST_TEST(fixed.row_tokens == (numbers{20, 20}), boost::test_tools::per_element());
  BOOST_TEST(fixed.lower_bound == 1);
  BOOST_TEST(fixed.fill == 17.0 / 40);
}

BOOST_AUTO_TEST_CASE(costs_are_of_padded_lengths) {
  const plan_summary s =
      summary_of(plan, lengths, 24, padding{each_multiple_of<4>{}}, alone, {1, 1});
  // 12 + 144 + 4 + 16 and 8 + 64
  BOOST_TEST(s.row_costs == (numbers{176, 72}), boost::test_tools::per_element());
  BOOST_TEST(s.largest_cost == 176);
  BOOST_TEST(s.mean_cost == 124.0);
}

BOOST_AUTO_TEST_CASE(pieces_have_lengths_of_their_own) {
  const std::array one{25};
  const row_plan split = plan_rows(one, 10, no_padding{}, alone, {.too_long = too_long::split});
  const plan_summary s = summary_of(split, one, 10);
  BOOST_TEST(s.rows == 3);
  BOOST_TEST(s.sequences == 3);
  BOOST_TEST(s.content == 25);
  const row_plan cut = plan_rows(one, 10, no_padding{}, alone, {.too_long = too_long::truncate});
  BOOST_TEST(summary_of(cut, one, 10).real_tokens == 10);
}

BOOST_AUTO_TEST_CASE(a_plan_without_rows_wastes_nothing) {
  const plan_summary s = summary_of(row_plan(), numbers{}, 16);
  BOOST_TEST(s.rows == 0);
  BOOST_TEST(s.lower_bound == 0);
  BOOST_TEST(s.fill == 1.0);
  BOOST_TEST(s.mean_cost == 0.0);
}

BOOST_AUTO_TEST_CASE(a_plan_of_other_lengths_is_refused) {
  BOOST_TEST(refusal([] { summary_of(plan, std::array{5, 9, 3}, 16); }) ==
             "slot 1 of row 1 is 3: it must be a sequence, from 0 to 2");
  BOOST_TEST(
      refusal([] { summary_of(plan, lengths, 11); }) ==
      "padded lengths of row 0 together is 12: it must be at most 11, what a row of capacity 11 "
      "has room for");
  const row_plan some(numbers{1}, numbers{0, 1});
  BOOST_TEST(summary_of(some, lengths, 16).content == 9);  // it may leave some out
}
