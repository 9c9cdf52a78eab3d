#define BOOST_TEST_MODULE layout_view
#include "seqpack/layout/layout_view.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "support/oracle.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refusal;

namespace {

using two_ranks = layout_view<context_parallel<2>>;

/// A view of bounds written by hand.
template <class View, class Index, std::size_t Entries>
View over(const std::array<Index, Entries>& cu, const std::array<Index, Entries>& cu_padded) {
  View view;
  view.cu = cu.data();
  view.cu_padded = cu_padded.data();
  view.sequences = view.segments = view.batch = static_cast<offset_t>(Entries) - 1;
  view.total = cu_padded.back();
  return view;
}

struct without_a_view {
  using index_type = std::int32_t;
  using context_parallel_type = no_context_parallel;
};
struct with_a_view_of_another_type : without_a_view {
  layout_view<context_parallel<2>> view() const { return {}; }
};
struct with_a_view : without_a_view {
  layout_view<no_context_parallel> view() const { return {}; }
};

}  // namespace

static_assert(std::is_trivially_copyable_v<two_ranks>);
static_assert(std::is_trivially_copyable_v<layout_view<context_parallel<>, std::int64_t>>);
static_assert(std::same_as<layout_view<no_context_parallel>::index_type, std::int32_t>);

static_assert(layout<two_ranks> && layout<packed_layout<no_context_parallel>>);
static_assert(layout<packed_layout<context_parallel<>, std::int64_t>>);
static_assert(layout<with_a_view>);
static_assert(!layout<int> && !layout<std::vector<int>>);
static_assert(!layout<without_a_view> && !layout<with_a_view_of_another_type>);

static_assert(place<full_row_t> && place<shard> && place<all_shards_t>);
static_assert(!place<int> && !place<const shard&>);

static_assert(detail::max_total<std::int32_t> == 2147483647);
static_assert(detail::max_total<std::int64_t> == max_tokens);

BOOST_AUTO_TEST_CASE(sizes_of_the_places) {
  const std::array lens{5, 3};
  const auto layout = make_layout(lens, padding{each_multiple_of<8>{}}, context_parallel<4>{});
  const auto view = layout.view();
  BOOST_TEST(view.rows(full_row) == 16);
  BOOST_TEST(view.rows(all_shards) == 16);
  BOOST_TEST(view.rows(shard{3}) == 4);
  BOOST_TEST(view.total_tokens() == 16);
  BOOST_TEST(view.shard_tokens() == 4);
  BOOST_TEST(view.max_seqlen() == 8);
  BOOST_TEST(view.max_length() == 5);
  BOOST_TEST(view.batch_size() == 2);
  BOOST_TEST(view.cu_seqlens().size() == 3U);
  BOOST_TEST(view.cu_seqlens_padded().back() == 16);
  BOOST_TEST(&view.view() == &view);
}

BOOST_AUTO_TEST_CASE(lengths_and_bounds_of_the_sequences) {
  const std::array lens{5, 0, 3};
  const auto layout =
      make_layout(lens, padding{each_multiple_of<4>{}, fixed_total<16>{}}, context_parallel<2>{});
  const auto view = layout.view();
  const offset_t begin[] = {0, 8, 8, 16};
  const offset_t padded[] = {8, 0, 8};
  for (offset_t k = 0; k < 3; ++k) {
    BOOST_TEST(view.begin_of(k) == begin[k]);
    BOOST_TEST(view.padded_length(k) == padded[k]);
    BOOST_TEST(view.length(k) == lens[static_cast<std::size_t>(k)]);
    BOOST_TEST(view.shard_begin(shard{1}, k) == begin[k] / 2);
  }
}

BOOST_AUTO_TEST_CASE(a_length_is_never_above_the_padded_one) {
  const std::array cu{0, 9, 12};
  const std::array cu_padded{0, 4, 8};
  const auto view = over<two_ranks>(cu, cu_padded);
  BOOST_TEST(view.length(0) == 4);
  BOOST_TEST(view.length(1) == 3);
}

BOOST_AUTO_TEST_CASE(empty_sequences_own_no_row) {
  const std::array cu{0, 0, 4, 4, 4, 8, 8};
  const auto view = over<two_ranks>(cu, cu);
  const offset_t owner[] = {1, 1, 1, 1, 4, 4, 4, 4};
  for (offset_t row = 0; row < 8; ++row) BOOST_TEST(view.slot_at(row) == owner[row]);
}

BOOST_AUTO_TEST_CASE(every_row_of_random_bounds_has_its_owner) {
  std::uint32_t state = 12345;
  for (int round = 0; round < 50; ++round) {
    std::vector<int> lens;
    oracle::numbers owners;
    for (int k = 0; k < 40; ++k) {
      state = state * 1664525U + 1013904223U;
      const auto length = static_cast<int>((state >> 16) % 5);
      lens.push_back(length);
      owners.insert(owners.end(), static_cast<std::size_t>(length), k);
    }
    const auto layout = make_layout<std::int64_t>(lens);
    oracle::numbers found;
    for (offset_t row = 0; row < layout.total_tokens(); ++row) {
      found.push_back(layout.view().slot_at(row));
    }
    BOOST_TEST(found == owners);
  }
}

BOOST_AUTO_TEST_CASE(without_an_order_slots_are_batch_rows) {
  const std::array cu{0, 4, 8};
  const auto view = over<two_ranks>(cu, cu);
  for (offset_t k = 0; k < 2; ++k) {
    BOOST_TEST(view.sequence_in(k) == k);
    BOOST_TEST(view.slot(k) == k);
  }
}

BOOST_AUTO_TEST_CASE(a_ghost_is_the_segment_behind_the_sequences) {
  const std::array lens{3};
  const auto layout = make_layout(lens, padding{fixed_total<8>{}, ghost_tail{}});
  const auto view = layout.view();
  BOOST_TEST(view.sequences == 1);
  BOOST_TEST(view.segments == 2);
  const token_ref token = view.token_at(full_row, 5);
  BOOST_TEST(token.slot == 1);
  BOOST_TEST(token.index == 2);
  BOOST_TEST(token.length == 0);
  BOOST_TEST(!token.real());
}

BOOST_AUTO_TEST_CASE(a_token_is_real_within_the_length_of_its_sequence) {
  static_assert(token_ref{0, 2, 3}.real());
  static_assert(!token_ref{0, 3, 3}.real() && !token_ref{0, 0, 0}.real());
}

BOOST_AUTO_TEST_CASE(only_the_owner_of_a_token_has_a_row_for_it) {
  const std::array lens{8};
  const auto layout = make_layout(lens, no_padding{}, context_parallel<2>{});
  const auto view = layout.view();
  BOOST_TEST(view.row_of(shard{0}, 0, 6) == 2);
  BOOST_TEST(view.row_of(shard{1}, 0, 6) == -1);
  BOOST_TEST(view.row_of(all_shards, 0, 6) == 2);
  BOOST_TEST(view.row_of(all_shards, 0, 2) == 4);
  BOOST_TEST(view.row_of(full_row, 0, 6) == 6);
}

BOOST_AUTO_TEST_CASE(a_rank_that_does_not_exist_is_refused) {
  const std::array lens{8};
  const auto layout = make_layout(lens, no_padding{}, context_parallel<2>{});
  const auto view = layout.view();
  BOOST_TEST(refusal([&] { view.require_place(shard{1}); }) == "accepted");
  BOOST_TEST(refusal([&] { view.require_place(full_row); }) == "accepted");
  BOOST_TEST(refusal([&] { view.require_place(all_shards); }) == "accepted");
  const std::string range = ": it must be from 0 to 1, the last context-parallel rank";
  BOOST_TEST(refusal([&] { view.require_place(shard{2}); }) == "rank is 2" + range);
  BOOST_TEST(refusal([&] { view.require_place(shard{-1}); }) == "rank is -1" + range);
}

BOOST_AUTO_TEST_CASE(nothing_is_visited_in_an_empty_range) {
  const std::array lens{8, 0};
  const auto layout = make_layout(lens, no_padding{}, context_parallel<2>{});
  const auto view = layout.view();
  bool visited = false;
  const auto visit = [&](auto&&...) { visited = true; };
  for_each_run(view, full_row, 3, 3, visit);
  for_each_run(view, shard{1}, 4, 4, visit);
  for_each_run(view, all_shards, 8, 8, visit);
  for_each_source_run(view, full_row, 0, 5, 5, visit);
  for_each_source_run(view, shard{1}, 1, 0, 0, visit);
  for_each_source_run(view, all_shards, 1, 0, 0, visit);
  BOOST_TEST(!visited);
  const auto empty = make_layout(std::array{0, 0}, no_padding{}, context_parallel<2>{});
  for_each_run(empty.view(), all_shards, 0, 0, visit);
  BOOST_TEST(!visited);
}

// Sequences without their last tokens: the same rows, of which more count as padding.
BOOST_AUTO_TEST_CASE(dropped_tokens_are_padding) {
  const auto layout = make_layout(std::array{5, 2});
  BOOST_TEST(!layout.has_padding());
  BOOST_TEST(!layout.view().without_last(0).has_padding());
  BOOST_TEST(layout.view().without_last(1).has_padding());
}

BOOST_AUTO_TEST_CASE(without_the_last_tokens) {
  const auto whole = make_layout(std::vector<int>{5, 1, 0, 2}, padding{each_multiple_of<4>{}},
                                 context_parallel<2>{});
  const auto view = whole.view().without_last(1);
  BOOST_TEST(view.total_tokens() == whole.total_tokens());
  BOOST_TEST(view.max_length() == 4);
  BOOST_TEST(view.max_seqlen() == whole.max_seqlen());
  const std::array<offset_t, 4> lengths{4, 0, 0, 1};
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    BOOST_TEST(view.length(static_cast<offset_t>(s)) == lengths[s]);
  }
  for (offset_t row = 0; row < view.total; ++row) {
    const token_ref before = whole.view().token_at(full_row, row);
    const token_ref after = view.token_at(full_row, row);
    BOOST_TEST(after.slot == before.slot);
    BOOST_TEST(after.index == before.index);
    BOOST_TEST(after.real() == (before.index + 1 < before.length));
  }
  BOOST_TEST(view.without_last(2).length(0) == 2);
  BOOST_TEST(view.without_last(0).length(0) == 4);
  BOOST_TEST(whole.view().without_last(9).max_length() == 0);
}
