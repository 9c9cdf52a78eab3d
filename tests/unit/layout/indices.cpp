// The lazy indices of the map: what they are, and the standard algorithms over them.
#define BOOST_TEST_MODULE indices
#include "seqpack/layout/indices.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <iterator>
#include <random>
#include <ranges>
#include <utility>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "support/layouts.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using oracle::number;
using oracle::numbers;

using some_layout = decltype(make_layout(numbers{}, no_padding{}, context_parallel<2>{}));
using to_batch = decltype(batch_indices(std::declval<const some_layout&>(), shard{}, 1));
using to_row = decltype(packed_indices(std::declval<const some_layout&>(), full_row, 1));

template <class Range>
constexpr bool is_lazy_array =
    std::random_access_iterator<std::ranges::iterator_t<Range>> &&
    std::sized_sentinel_for<std::ranges::iterator_t<Range>, std::ranges::iterator_t<Range>> &&
    std::default_initializable<Range> && std::ranges::random_access_range<const Range> &&
    std::ranges::sized_range<const Range> && std::ranges::common_range<const Range> &&
    std::ranges::view<Range> && std::ranges::borrowed_range<Range>;
static_assert(is_lazy_array<to_batch> && is_lazy_array<to_row>);
static_assert(!std::contiguous_iterator<to_batch::iterator>);
static_assert(!std::indirectly_writable<to_batch::iterator, offset_t>);
static_assert(std::same_as<std::iter_value_t<to_batch::iterator>, offset_t>);
static_assert(std::same_as<std::iter_reference_t<to_batch::iterator>, offset_t>);
static_assert(std::is_trivially_copyable_v<to_batch> && std::is_trivially_copyable_v<to_row>);

/// The answer at compile time, as that of every function of the map.
constexpr std::int32_t bounds[] = {0, 2, 3};
constexpr std::int32_t padded_bounds[] = {0, 4, 8};
constexpr auto constant_view() {
  decltype(make_layout(numbers{}))::view_type view;
  view.cu = bounds;
  view.cu_padded = padded_bounds;
  view.sequences = view.segments = view.batch = 2;
  view.total = 8;
  view.longest = 2;
  view.longest_padded = 4;
  return view;
}
static_assert(batch_indices(constant_view(), full_row, 5)[4] == 5);
static_assert(*(batch_indices(constant_view(), full_row, 5).begin() + 5) == -1);
static_assert(packed_indices(constant_view(), full_row, 5)[5] == 4);

template <class Range>
numbers values_of(const Range& range) {
  return {range.begin(), range.end()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(written_out) {
  // Padded to 4 and 4; of each sequence rank 0 has the tokens 0 and 3, rank 1 has 1 and 2.
  const auto layout =
      make_layout(std::vector{3, 2}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const auto check = [&](auto at, const numbers& to_batch, const numbers& to_row) {
    BOOST_TEST(values_of(batch_indices(layout, at, 5)) == to_batch, per_element());
    BOOST_TEST(values_of(packed_indices(layout, at, 5)) == to_row, per_element());
  };
  check(full_row, {0, 1, 2, -1, 5, 6, -1, -1}, {0, 1, 2, -1, -1, 4, 5, -1, -1, -1});
  check(shard{0}, {0, -1, 5, -1}, {0, -1, -1, -1, -1, 2, -1, -1, -1, -1});
  check(shard{1}, {1, 2, 6, -1}, {-1, 0, 1, -1, -1, -1, 2, -1, -1, -1});
  check(all_shards, {0, -1, 5, -1, 1, 2, 6, -1}, {0, 4, 5, -1, -1, 2, 6, -1, -1, -1});
  BOOST_TEST(values_of(batch_indices(layout, shard{1}, 5, 10)) == (numbers{1, 2, 6, 10}),
             per_element());
  BOOST_TEST(packed_indices(layout, full_row, 5, 8)[3] == 8);
  BOOST_TEST(packed_indices(layout, shard{0}, 5, 8)[1] == 8);
}

BOOST_AUTO_TEST_CASE(an_order_that_leaves_sequences_out) {
  const std::vector<offset_t> order{2, 0};
  const auto layout =
      make_layout(std::vector{2, 4, 1}, no_padding{}, no_context_parallel{}, {.order = order});
  BOOST_TEST(values_of(batch_indices(layout, full_row, 4)) == (numbers{8, 0, 1}), per_element());
  BOOST_TEST(values_of(packed_indices(layout, full_row, 4)) ==
                 (numbers{1, 2, -1, -1, -1, -1, -1, -1, 0, -1, -1, -1}),
             per_element());
}

BOOST_AUTO_TEST_CASE(every_layout_and_place) {
  constexpr number width = 23;
  std::mt19937 random(71);
  for (int round = 0; round < 4; ++round) {
    const numbers lengths = random_lengths(random, 6, 20);
    const numbers order = round % 2 == 0 ? numbers{} : random_order(random, 6);
    for_each_layout(lengths, order, [&](const auto& layout, const auto& expected, const auto&) {
      for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
        numbers to_batch;
        numbers to_row(6 * width, -1);
        for (std::size_t row = 0; row < tokens.size(); ++row) {
          const oracle::token& token = tokens[row];
          to_batch.push_back(token.real ? token.row * width + token.position : -1);
          if (token.real) to_row[oracle::at(to_batch.back())] = static_cast<number>(row);
        }
        BOOST_TEST(values_of(batch_indices(layout, at, width)) == to_batch);
        BOOST_TEST(values_of(packed_indices(layout, at, width)) == to_row);
      });
    });
  }
}

BOOST_AUTO_TEST_CASE(iterators_move_at_random) {
  const auto layout = make_layout(std::vector{3, 2}, padding{each_multiple_of<4>{}});
  const auto range = batch_indices(layout, full_row, 5);
  auto i = range.begin();
  BOOST_TEST(*i++ == 0);
  BOOST_TEST(*i == 1);
  BOOST_TEST(*++i == 2);
  i += 2;
  BOOST_TEST(*i-- == 5);
  BOOST_TEST(*i == -1);
  i -= 2;
  BOOST_TEST(*--i == 0);
  BOOST_TEST((i == range.begin() && i != range.end() && i < range.end() && range.end() > i));
  BOOST_TEST((i <= i && i >= i && !(i < i)));
  BOOST_TEST(*(i + 5) == 6);
  BOOST_TEST(*(5 + i) == 6);
  BOOST_TEST(*(range.end() - 4) == 5);
  BOOST_TEST((range.end() - i == 8 && i - range.end() == -8));
  BOOST_TEST(i[4] == 5);
  BOOST_TEST(range.size() == 8U);
  BOOST_TEST(!range.empty());
  BOOST_TEST((decltype(i){} == decltype(i){}));
}

BOOST_AUTO_TEST_CASE(standard_algorithms) {
  const auto layout =
      make_layout(std::vector{3, 2}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const std::vector<int> batch{10, 11, 12, 77, 77, 20, 21, 77, 77, 77};
  // pack
  const auto from = batch_indices(layout, all_shards, 5);
  std::vector<int> row(8, 99);
  std::ranges::transform(from, row.begin(), [&](offset_t k) {
    return k < 0 ? -1 : batch[static_cast<std::size_t>(k)];
  });
  BOOST_TEST(row == (std::vector{10, -1, 20, -1, 11, 12, 21, -1}), per_element());
  // unpack
  const auto to = packed_indices(layout, all_shards, 5);
  std::vector<int> back(10, 99);
  std::transform(to.begin(), to.end(), back.begin(),
                 [&](offset_t k) { return k < 0 ? 0 : row[static_cast<std::size_t>(k)]; });
  BOOST_TEST(back == (std::vector{10, 11, 12, 0, 0, 20, 21, 0, 0, 0}), per_element());
  // The same by a scatter.
  std::vector<int> scattered(10, 0);
  for (auto i = from.begin(); i != from.end(); ++i) {
    if (is_index{}(*i)) {
      scattered[static_cast<std::size_t>(*i)] = row[static_cast<std::size_t>(i - from.begin())];
    }
  }
  BOOST_TEST(scattered == back, per_element());

  BOOST_TEST(std::ranges::count_if(from, is_index{}) == 5);
  BOOST_TEST(*std::ranges::max_element(from) == 6);
  const auto full = batch_indices(layout, full_row, 5);
  auto real = full | std::views::filter(is_index{});
  BOOST_TEST(std::ranges::is_sorted(real));
  BOOST_TEST((std::ranges::find(full, 5) - full.begin() == 4));
  BOOST_TEST(*std::make_reverse_iterator(full.begin() + 3) == 2);
  BOOST_TEST(*std::lower_bound(full.begin() + 4, full.begin() + 6, 6) == 6);
}

BOOST_AUTO_TEST_CASE(of_nothing) {
  const auto layout = make_layout(std::vector<int>{});
  BOOST_TEST(batch_indices(layout, full_row, 0).empty());
  BOOST_TEST(packed_indices(layout, full_row, 7).empty());
  const auto empty = make_layout(std::vector{0, 0});
  BOOST_TEST(packed_indices(empty, full_row, 0).empty());
  BOOST_TEST(values_of(packed_indices(empty, full_row, 1)) == (numbers{-1, -1}), per_element());
}

BOOST_AUTO_TEST_CASE(positions_above_two_to_the_31) {
  const auto layout = make_layout<std::int64_t>(std::vector<offset_t>{offset_t{1} << 31, 3});
  constexpr offset_t width = (offset_t{1} << 31) + 1;
  BOOST_TEST(batch_indices(layout, full_row, width)[(offset_t{1} << 31) + 2] == width + 2);
  BOOST_TEST(packed_indices(layout, full_row, width)[width + 2] == (offset_t{1} << 31) + 2);
}

BOOST_AUTO_TEST_CASE(refusals) {
  const auto layout = make_layout(std::vector{3, 2}, no_padding{}, context_parallel<1>{});
  BOOST_CHECK_EXCEPTION(batch_indices(layout, shard{1}, 5), invalid_input,
                        refused("rank", "1", "0"));
  BOOST_CHECK_EXCEPTION(
      batch_indices(layout, full_row, 2), invalid_input,
      refused_as("width is 2: it must be at least 3, the longest real length of the layout"));
  BOOST_CHECK_EXCEPTION(packed_indices(layout, full_row, -1), invalid_input,
                        refused("width", "-1", "at least 3"));
  BOOST_CHECK_EXCEPTION(packed_indices(layout, full_row, max_tokens + 1), invalid_input,
                        refused("width", "281474976710657", "at most 281474976710656"));
  BOOST_CHECK_EXCEPTION(
      packed_indices(layout, full_row, max_tokens), invalid_input,
      refused("batch size * width", "2 * 281474976710656", "at most 281474976710656"));
}
