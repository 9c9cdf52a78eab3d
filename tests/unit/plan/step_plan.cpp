// The micro-batches of data-parallel ranks: adopted from arrays, step by step, of one rank.
#define BOOST_TEST_MODULE plan_step_plan
#include "seqpack/plan/step_plan.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

using rows = std::vector<std::vector<offset_t>>;

/// 3 steps of 2 ranks; the last one has an empty micro-batch.
step_plan three_steps() {
  return {row_plan(std::vector{4, 1, 0, 5, 2, 6, 3}, std::vector{0, 2, 3, 4, 5, 7, 7}), 2};
}

std::vector<offset_t> entries(std::span<const offset_t> micro_batch) {
  return {micro_batch.begin(), micro_batch.end()};
}

static_assert(std::random_access_iterator<rank_micro_batches::iterator>);
static_assert(std::ranges::random_access_range<rank_micro_batches>);
static_assert(std::ranges::sized_range<rank_micro_batches>);
static_assert(std::ranges::view<rank_micro_batches>);
static_assert(std::ranges::borrowed_range<rank_micro_batches>);

template <class Plan>
concept gives_a_rank = requires(Plan&& plan) { std::forward<Plan>(plan).of_rank(0); };
static_assert(gives_a_rank<const step_plan&>);
static_assert(!gives_a_rank<step_plan>, "the micro-batches of a temporary plan dangle");

constexpr offset_t sum_of_rank(offset_t rank) {
  const step_plan plan(row_plan(std::vector{4, 1, 0, 5, 2, 6, 3}, std::vector{0, 2, 3, 4, 5, 7, 7}),
                       2);
  offset_t sum = 0;
  for (const auto micro_batch : plan.of_rank(rank)) {
    for (const offset_t sequence : micro_batch) sum += sequence;
  }
  return sum;
}
static_assert(sum_of_rank(0) == 19 && sum_of_rank(1) == 2);

}  // namespace

BOOST_AUTO_TEST_CASE(row_step_times_ranks_plus_rank_is_a_micro_batch) {
  const step_plan plan = three_steps();
  BOOST_TEST(plan.steps() == 3);
  BOOST_TEST(plan.ranks() == 2);
  const rows expected{{4, 1}, {0}, {5}, {2}, {6, 3}, {}};
  for (offset_t step = 0; step < 3; ++step) {
    for (offset_t rank = 0; rank < 2; ++rank) {
      const auto k = static_cast<std::size_t>(step * 2 + rank);
      BOOST_TEST(entries(plan.micro_batch(step, rank)) == expected[k]);
      BOOST_TEST(entries(plan.micro_batches().row(step * 2 + rank)) == expected[k]);
      BOOST_TEST(plan.is_empty(step, rank) == expected[k].empty());
    }
  }
  BOOST_TEST(plan.empty_micro_batches() == 1);
}

BOOST_AUTO_TEST_CASE(micro_batches_of_a_rank_are_a_random_access_range) {
  const step_plan plan = three_steps();
  const rank_micro_batches first = plan.of_rank(0);
  BOOST_TEST(first.size() == 3U);
  rows found;
  for (const auto micro_batch : first) found.push_back(entries(micro_batch));
  BOOST_TEST((found == rows{{4, 1}, {5}, {6, 3}}));
  rows second;
  std::ranges::transform(plan.of_rank(1), std::back_inserter(second), entries);
  BOOST_TEST((second == rows{{0}, {2}, {}}));

  auto at = first.begin();
  BOOST_TEST(entries(at[2]) == (std::vector<offset_t>{6, 3}));
  BOOST_TEST(entries(*(at++)) == (std::vector<offset_t>{4, 1}));
  BOOST_TEST(at.step() == 1);
  BOOST_TEST(entries(*(at--)) == (std::vector<offset_t>{5}));
  BOOST_TEST((at == first.begin()));
  at += 3;
  BOOST_TEST((at == first.end()));
  BOOST_TEST((at - first.begin() == 3));
  BOOST_TEST((at > first.begin()));
  at -= 1;
  BOOST_TEST((at == 2 + first.begin() && at == first.end() - 1));
  BOOST_TEST(entries(first[2]) == (std::vector<offset_t>{6, 3}));
}

BOOST_AUTO_TEST_CASE(a_micro_batch_is_the_order_of_a_layout) {
  const step_plan plan = three_steps();
  const std::vector lengths{1, 2, 3, 4, 5, 6, 7};
  const auto layout =
      make_layout(lengths, no_padding{}, no_context_parallel{}, {.order = plan.micro_batch(2, 0)});
  BOOST_TEST(layout.cu_seqlens() == (std::vector{0, 7, 11}), boost::test_tools::per_element());
  const auto empty =
      make_layout(lengths, no_padding{}, no_context_parallel{}, {.order = plan.micro_batch(2, 1)});
  BOOST_TEST(empty.sequences() == 0);
  BOOST_TEST(empty.batch_size() == 7);
}

BOOST_AUTO_TEST_CASE(no_steps) {
  const step_plan none;
  BOOST_TEST(none.steps() == 0);
  BOOST_TEST(none.ranks() == 1);
  BOOST_TEST(none.of_rank(0).empty());
  BOOST_TEST(none.empty_micro_batches() == 0);
  BOOST_TEST((none == step_plan(row_plan(), 1)));
  const step_plan many(row_plan(), 1000);
  BOOST_TEST(many.steps() == 0);
  BOOST_TEST(many.of_rank(999).empty());
  BOOST_CHECK_EXCEPTION(many.micro_batch(0, 0), invalid_input,
                        refused_as("step is 0: the plan has no steps"));
}

BOOST_AUTO_TEST_CASE(plans_are_equal_by_micro_batches_and_ranks) {
  const std::vector sequences{0, 1, 2, 3};
  const step_plan two(row_plan(sequences, std::vector{0, 1, 2, 3, 4}), 2);
  BOOST_TEST((two == step_plan(row_plan(sequences, std::vector{0, 1, 2, 3, 4}), 2)));
  BOOST_TEST((two != step_plan(row_plan(sequences, std::vector{0, 1, 2, 3, 4}), 4)));
  BOOST_TEST((two != step_plan(row_plan(sequences, std::vector{0, 2, 2, 3, 4}), 2)));
  const step_plan copy = two;
  BOOST_TEST((copy == two));
}

BOOST_AUTO_TEST_CASE(what_does_not_exist_is_refused) {
  const step_plan plan = three_steps();
  const auto says = [&](offset_t step, offset_t rank) {
    return refusal([&] { plan.micro_batch(step, rank); });
  };
  BOOST_TEST(says(3, 0) == "step is 3: it must be from 0 to 2");
  BOOST_TEST(says(-1, 0) == "step is -1: it must be from 0 to 2");
  BOOST_TEST(says(0, 2) == "rank is 2: it must be from 0 to 1");
  BOOST_TEST(says(0, -1) == "rank is -1: it must be from 0 to 1");
  BOOST_TEST(says(max_tokens * 32767, 1) == "step is 9223090561878065152: it must be from 0 to 2");
  BOOST_TEST(refusal([&] { plan.of_rank(2); }) == "rank is 2: it must be from 0 to 1");
  BOOST_TEST(refusal([&] { plan.is_empty(0, 7); }) == "rank is 7: it must be from 0 to 1");
}

BOOST_AUTO_TEST_CASE(rows_that_the_ranks_do_not_share_are_refused) {
  const row_plan three(std::vector{0, 1}, std::vector{0, 1, 2, 2});
  BOOST_TEST(refusal([&] { step_plan(three, 2); }) ==
             "number of micro-batches is 3: it must be a multiple of 2, the number of ranks");
  BOOST_TEST(refusal([&] { step_plan(three, 0); }) ==
             "ranks is 0: it must be from 1 to 281474976710656");
  BOOST_TEST(refusal([&] { step_plan(three, -3); }) ==
             "ranks is -3: it must be from 1 to 281474976710656");
  BOOST_TEST(refusal([&] { step_plan(three, max_tokens + 1); }) ==
             "ranks is 281474976710657: it must be from 1 to 281474976710656");
  BOOST_TEST(step_plan(three, 3).steps() == 1);
}
