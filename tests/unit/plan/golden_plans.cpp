// Against what other planners make of the same lengths (tests/data/plans.json).
#define BOOST_TEST_MODULE plan_golden_plans
#include <boost/test/unit_test.hpp>
#include <vector>

#include "seqpack/plan/plan_rows.hpp"
#include "seqpack/plan/plan_summary.hpp"
#include "seqpack/plan/require_plan.hpp"
#include "support/golden.hpp"

using namespace seqpack;

namespace {

const no_context_parallel alone;

any_padding padding_of(const golden::plan_case& c) {
  return padding{each_multiple_of<>{c.each}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(there_are_cases) {
  BOOST_TEST(golden::plan_cases().size() == 49u);
}

BOOST_AUTO_TEST_CASE(never_more_rows_than_first_fit_decreasing) {
  for (const golden::plan_case& c : golden::plan_cases()) {
    BOOST_TEST_CONTEXT(c.name) {
      const any_padding padding = padding_of(c);
      const row_plan plan = plan_rows(c.lengths, c.capacity, padding);
      require_plan(plan, c.lengths, c.capacity, padding);
      BOOST_TEST(plan.rows() <= c.ffd_rows);
      BOOST_TEST(plan.rows() >= c.lower_bound_l2);
      BOOST_TEST(summary_of(plan, c.lengths, c.capacity, padding).lower_bound == c.lower_bound);
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_in_order_are_within_twice_the_lower_bound) {
  for (const golden::plan_case& c : golden::plan_cases()) {
    BOOST_TEST_CONTEXT(c.name) {
      const any_padding padding = padding_of(c);
      const row_plan plan =
          plan_rows(c.lengths, c.capacity, padding, alone, {.method = plan_method::in_order});
      require_plan(plan, c.lengths, c.capacity, padding);
      BOOST_TEST(plan.rows() < 2 * c.lower_bound_l2 + 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(balance_is_at_least_that_of_largest_differencing) {
  int better = 0;
  for (const golden::plan_case& c : golden::plan_cases()) {
    for (const auto& parts : c.balanced) {
      BOOST_TEST_CONTEXT(c.name << ", " << parts.k << " rows") {
        const any_padding padding = padding_of(c);
        const row_plan plan = plan_rows(c.lengths, max_tokens, padding, alone,
                                        {.method = plan_method::balanced, .rows = parts.k});
        require_plan(plan, c.lengths, max_tokens, padding);
        const plan_summary summary = summary_of(plan, c.lengths, max_tokens, padding);
        BOOST_TEST(plan.rows() == parts.k);
        BOOST_TEST(summary.largest_cost <= parts.max_load);
        BOOST_TEST(summary.largest_cost <= parts.lpt_max_load);
        BOOST_TEST(summary.largest_cost >= parts.lower_bound);
        better += summary.largest_cost < parts.max_load;
      }
    }
  }
  BOOST_TEST(better > 0);
}

BOOST_AUTO_TEST_CASE(balanced_rows_stay_within_the_capacity) {
  for (const golden::plan_case& c : golden::plan_cases()) {
    BOOST_TEST_CONTEXT(c.name) {
      const any_padding padding = padding_of(c);
      const row_plan fewest = plan_rows(c.lengths, c.capacity, padding);
      for (const offset_t more : {0, 1, 3}) {
        const row_plan plan =
            plan_rows(c.lengths, c.capacity, padding, alone,
                      {.method = plan_method::balanced, .rows = fewest.rows() + more});
        require_plan(plan, c.lengths, c.capacity, padding);
        BOOST_TEST(plan.rows() == fewest.rows() + more);
      }
      BOOST_TEST(plan_rows(c.lengths, c.capacity, padding, alone, {.method = plan_method::balanced})
                     .rows() == fewest.rows());
    }
  }
}
