// Real tokens of a shard, against counting them one by one.
#define BOOST_TEST_MODULE counts
#include "seqpack/tokens/counts.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <random>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "support/buffers.hpp"
#include "support/layouts.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using oracle::numbers;

}  // namespace

BOOST_AUTO_TEST_CASE(random_layouts) {
  std::mt19937 random(31);
  for (int round = 0; round < 20; ++round) {
    const int batch = round % 6;
    const numbers lens = random_lengths(random, batch, 40);
    const numbers order = round % 2 == 0 ? numbers{} : random_order(random, batch);
    for_each_layout(lens, order, [&](const auto& layout, const auto& expected, const auto&) {
      for (std::size_t r = 0; r < expected.shards.size(); ++r) {
        const shard at{static_cast<offset_t>(r)};
        numbers wanted(static_cast<std::size_t>(layout.sequences()), 0);
        for (const auto& token : expected.shards[r]) {
          if (token.real) ++wanted[static_cast<std::size_t>(token.slot)];
        }
        poisoned_buffer<long long> found(layout.sequences());
        real_tokens_per_sequence(host, layout, at, found.span());
        BOOST_TEST(found.values() == wanted, per_element());
        BOOST_TEST(found.guards_intact());
        BOOST_TEST(real_tokens(layout, at) == oracle::real_tokens(expected.shards[r]));
      }
    });
  }
}

BOOST_AUTO_TEST_CASE(counts_of_the_ranks_sum_to_the_lengths) {
  const numbers lens{7, 0, 1, 30};
  const auto layout = make_layout(lens, padding{each_multiple_of<8>{}, total_multiple_of<64>{}},
                                  context_parallel<4>{});
  numbers sum(4, 0);
  for (offset_t r = 0; r < 4; ++r) {
    numbers counts(4);
    real_tokens_per_sequence(host, layout, shard{r}, counts);
    for (std::size_t k = 0; k < 4; ++k) sum[k] += counts[k];
  }
  BOOST_TEST(sum == lens, per_element());
}

BOOST_AUTO_TEST_CASE(counts_of_one_sequence_of_a_view) {
  const auto layout = make_layout(numbers{9, 8, 8, 12, 8, 12}, padding{each_multiple_of<4>{}},
                                  context_parallel<2>{});
  BOOST_TEST(real_tokens(layout.view(), shard{0}, 0) == 3);
  BOOST_TEST(real_tokens(layout.view(), shard{1}, 0) == 6);
}

BOOST_AUTO_TEST_CASE(one_rank_holds_everything) {
  const auto layout = make_layout(numbers{3, 0, 5}, padding{each_multiple_of<4>{}});
  numbers counts(3);
  real_tokens_per_sequence(host, layout, shard{0}, counts);
  BOOST_TEST(counts == (numbers{3, 0, 5}), per_element());
}

BOOST_AUTO_TEST_CASE(refused_arguments) {
  const auto layout =
      make_layout(numbers{4, 2}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  poisoned_buffer<std::int32_t> out(3);
  BOOST_CHECK_EXCEPTION(
      real_tokens_per_sequence(host, layout, shard{2}, out.span().first(2)), invalid_input,
      refused_as("rank is 2: it must be from 0 to 1, the last context-parallel rank"));
  BOOST_CHECK_EXCEPTION(real_tokens_per_sequence(host, layout, shard{0}, out.span()), invalid_input,
                        refused_as("counts is 3: it must be 2, the sequences of the layout"));
  BOOST_CHECK_EXCEPTION(
      real_tokens_per_sequence(host, layout, shard{0}, row_view<std::int32_t>(nullptr, 2)),
      invalid_input, refused_as("counts is null: it must point to 2 elements"));
  BOOST_CHECK_EXCEPTION(
      real_tokens(layout, shard{-1}), invalid_input,
      refused_as("rank is -1: it must be from 0 to 1, the last context-parallel rank"));
  BOOST_TEST(out.untouched());
}

BOOST_AUTO_TEST_CASE(types_that_cannot_hold_the_counts_are_refused) {
  const auto layout = make_layout(numbers{300});
  poisoned_buffer<std::int8_t> out(1);
  BOOST_CHECK_EXCEPTION(
      real_tokens_per_sequence(host, layout, shard{0}, out.span()), invalid_input,
      refused_as("largest count is 300: the element type of the array holds at most 127"));
  BOOST_TEST(out.untouched());
}

BOOST_AUTO_TEST_CASE(a_type_that_holds_the_counts_of_a_shard_need_not_hold_the_lengths) {
  const auto layout =
      make_layout(numbers{200}, padding{each_multiple_of<8>{}}, context_parallel<4>{});
  poisoned_buffer<std::int8_t> out(1);
  real_tokens_per_sequence(host, layout, shard{0}, out.span());
  BOOST_TEST(int{out[0]} == 50);
  // And the other way round: no sequence is as long as the shard.
  const auto many = make_layout(numbers{100, 100});
  poisoned_buffer<std::int8_t> both(2);
  real_tokens_per_sequence(host, many, shard{0}, both.span());
  BOOST_TEST(int{both[0]} == 100);
  BOOST_TEST(int{both[1]} == 100);
}
