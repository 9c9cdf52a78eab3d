#define BOOST_TEST_MODULE adopt
#include "seqpack/layout/adopt.hpp"

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <list>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "seqpack/layout/layout_hash.hpp"
#include "seqpack/policy/any_padding.hpp"
#include "seqpack/policy/any_sharding.hpp"
#include "seqpack/tokens/per_token.hpp"
#include "support/oracle.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using namespace seqpack::testing;
using bounds = std::vector<offset_t>;

namespace {

template <class Index>
bounds plain(std::span<const Index> cu) {
  return {cu.begin(), cu.end()};
}

std::string refused(const bounds& cu, const bounds& cu_padded, offset_t total,
                    const adopt_options& options = {}) {
  return refusal([&] { from_cu_seqlens(cu, cu_padded, total, no_context_parallel{}, options); });
}

std::string refused_ids(const std::vector<int>& ids) {
  return refusal([&] { from_position_ids(ids); });
}

/// The rows of the full row that a shard holds, in its order.
template <layout L>
bounds full_rows_of(const L& l, offset_t rank) {
  const auto view = l.view();
  bounds rows;
  for (offset_t k = 0; k < view.rows(shard{rank}); ++k) {
    const token_ref token = view.token_at(shard{rank}, k);
    rows.push_back(view.row_of(full_row, token.slot, token.index));
  }
  return rows;
}

template <layout L>
bounds padding_rows(const L& l) {
  bounds rows;
  for (offset_t row = 0; row < l.total_tokens(); ++row) {
    if (!l.view().token_at(full_row, row).real()) rows.push_back(row);
  }
  return rows;
}

}  // namespace

BOOST_AUTO_TEST_CASE(adopted_bounds_make_the_layout_that_made_them) {
  const std::vector<int> lens{5, 0, 3};
  const auto made =
      make_layout(lens, padding{each_multiple_of<4>{}, fixed_total<16>{}}, context_parallel<2>{});
  const auto l =
      from_cu_seqlens(made.cu_seqlens(), made.cu_seqlens_padded(), 16, context_parallel<2>{});
  BOOST_TEST(plain(l.cu_seqlens()) == plain(made.cu_seqlens()));
  BOOST_TEST(plain(l.cu_seqlens_padded()) == plain(made.cu_seqlens_padded()));
  BOOST_TEST(l.batch_size() == 3);
  BOOST_TEST(l.sequences() == 3);
  BOOST_TEST(l.total_tokens() == 16);
  BOOST_TEST(l.shard_tokens() == 8);
  BOOST_TEST(l.max_seqlen() == made.max_seqlen());
  BOOST_TEST(l.max_length() == 5);
  BOOST_TEST(l.real_tokens() == 8);
  BOOST_TEST(l.has_padding());
  for (offset_t rank = 0; rank < 2; ++rank) {
    BOOST_TEST(full_rows_of(l, rank) == full_rows_of(made, rank));
  }
}

BOOST_AUTO_TEST_CASE(one_array_of_bounds_is_a_row_without_padding) {
  const auto l = from_cu_seqlens(bounds{0, 5, 5, 8}, 8);
  BOOST_TEST(plain(l.cu_seqlens()) == (bounds{0, 5, 5, 8}));
  BOOST_TEST(plain(l.cu_seqlens_padded()) == (bounds{0, 5, 5, 8}));
  BOOST_TEST(!l.has_padding());
  BOOST_TEST(l.max_seqlen() == 5);
}

BOOST_AUTO_TEST_CASE(the_bounds_are_copied) {
  bounds cu{0, 4, 8};
  const auto l = from_cu_seqlens(cu, 8);
  cu.assign({9, 9, 9});
  BOOST_TEST(plain(l.cu_seqlens()) == (bounds{0, 4, 8}));
}

BOOST_AUTO_TEST_CASE(any_range_of_integers_and_both_index_types) {
  const std::array<short, 3> cu{0, 5, 8};
  const std::list<std::uint64_t> cu_padded{0, 8, 12};
  const auto check = [](const auto& l) {
    BOOST_TEST(plain(l.cu_seqlens()) == (bounds{0, 5, 8}));
    BOOST_TEST(plain(l.cu_seqlens_padded()) == (bounds{0, 8, 12}));
  };
  check(from_cu_seqlens(cu, cu_padded, 12));
  check(from_cu_seqlens<std::int64_t>(cu, cu_padded, 12));
  static_assert(std::same_as<decltype(from_cu_seqlens<std::int64_t>(cu, cu_padded, 12))::index_type,
                             std::int64_t>);
}

BOOST_AUTO_TEST_CASE(nothing_at_all_can_be_adopted) {
  const auto l = from_cu_seqlens(bounds{0}, 0);
  BOOST_TEST(l.batch_size() == 0);
  BOOST_TEST(l.total_tokens() == 0);
  const auto from_ids = from_position_ids(std::vector<int>{});
  BOOST_TEST(plain(from_ids.cu_seqlens()) == bounds{0});
}

BOOST_AUTO_TEST_CASE(case_9_repeated_bounds_are_empty_sequences) {
  const context_parallel<2> cp;
  const auto repeated = from_cu_seqlens(bounds{0, 16, 40, 40, 40}, 40, cp);
  const auto without = from_cu_seqlens(bounds{0, 16, 40}, 40, cp);
  BOOST_TEST(repeated.sequences() == 4);
  for (offset_t rank = 0; rank < 2; ++rank) {
    BOOST_TEST(full_rows_of(repeated, rank) == full_rows_of(without, rank));
  }
  BOOST_TEST(full_rows_of(without, 0) ==
             (bounds{0, 1, 2, 3, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 34, 35, 36, 37, 38, 39}));
  BOOST_TEST(refusal([&] { from_cu_seqlens(bounds{0, 16, 40, 24, 40}, 40, cp); }) ==
             "cu_seqlens[3] is 24: entries must not decrease, and the one before is 40");
}

BOOST_AUTO_TEST_CASE(case_11_a_zero_after_a_zero_starts_a_sequence_too) {
  const auto l = from_position_ids(std::array{0, 1, 2, 0, 0, 1});
  BOOST_TEST(plain(l.cu_seqlens()) == (bounds{0, 3, 4, 6}));
  BOOST_TEST(l.total_tokens() == 6);
}

BOOST_AUTO_TEST_CASE(case_20_bounds_that_claim_more_tokens_than_there_are) {
  BOOST_TEST(refusal([] { from_cu_seqlens(bounds{0, 256, 512, 768}, 256); }) ==
             "cu_seqlens[3] is 768: the last entry must be 256, the tokens of the packed "
             "row");
}

BOOST_AUTO_TEST_CASE(case_50_capacity_behind_the_last_real_token) {
  const auto l = from_cu_seqlens(bounds{0, 3, 8}, bounds{0, 4, 16}, 16);
  BOOST_TEST(padding_rows(l) == (bounds{3, 9, 10, 11, 12, 13, 14, 15}));
  BOOST_TEST(refused({0, 3, 8}, {0, 4, 12}, 16) ==
             "cu_seqlens_padded[2] is 12: the last entry must be 16, the tokens of the packed row");
}

BOOST_AUTO_TEST_CASE(case_59_negative_and_absurd_numbers) {
  BOOST_TEST(refused({0, 3, 2}, {0, 3, 2}, 2) ==
             "cu_seqlens[2] is 2: entries must not decrease, and the one before is 3");
  BOOST_TEST(refused({0, -1}, {0, 1}, 1) ==
             "cu_seqlens[1] is -1: entries must not decrease, and the one before is 0");
  BOOST_TEST(refused({0, 3}, {0, 4}, offset_t{1} << 62) ==
             "cu_seqlens_padded[1] is 4: the last entry must be 4611686018427387904, the tokens of "
             "the packed row");
  const std::string range = ": it must be at most 2147483647, the range of the type of cu_seqlens";
  BOOST_TEST(refused({0, 2147483648}, {0, 2147483648}, 2147483648) ==
             "cu_seqlens[1] is 2147483648" + range);
  BOOST_TEST(refused({0, 4}, {0, 2147483648}, 2147483648) ==
             "cu_seqlens_padded[1] is 2147483648" + range);
  BOOST_TEST(refusal([] { from_cu_seqlens<std::int64_t>(bounds{0, 2147483648}, 2147483648); }) ==
             "accepted");
}

BOOST_AUTO_TEST_CASE(unsigned_bounds_are_named_by_their_own_value) {
  const std::vector<std::uint64_t> cu{0, std::uint64_t{1} << 63};
  BOOST_TEST(refusal([&] {
               from_cu_seqlens(cu, 4);
             }).starts_with("cu_seqlens[1] is 9223372036854775808: "));
}

BOOST_AUTO_TEST_CASE(case_82_a_length_above_the_width) {
  BOOST_TEST(refused({0, 4}, {0, 4}, 4, {.width = 3}) ==
             "sequence 0 is 4: a length must be at most 3, the width of the batch");
  // Padding may be wider than the row.
  BOOST_TEST(refused({0, 3}, {0, 8}, 8, {.width = 3}) == "accepted");
}

BOOST_AUTO_TEST_CASE(case_83_four_malformed_bounds_and_four_refusals) {
  BOOST_TEST(refused({1, 4}, {1, 4}, 4) == "cu_seqlens[0] is 1: the first entry must be 0");
  BOOST_TEST(refused({-1, 3}, {-1, 3}, 3) == "cu_seqlens[0] is -1: the first entry must be 0");
  BOOST_TEST(refused({0, 3}, {0, 3}, 4) ==
             "cu_seqlens_padded[1] is 3: the last entry must be 4, the tokens of the packed row");
  BOOST_TEST(refused({0, 3, 2, 4}, {0, 3, 2, 4}, 4) ==
             "cu_seqlens[2] is 2: entries must not decrease, and the one before is 3");
  BOOST_TEST(refused({0, 3}, {0, 3}, 3, {.max_seqlen = 2}) ==
             "max_seqlen is 2: it must be at least 3, the longest padded length of the bounds");
  BOOST_TEST(refused({0, 3}, {0, 3}, 3, {.max_seqlen = 3}) == "accepted");
  BOOST_TEST(refused({0, 3}, {0, 3}, 3, {.max_seqlen = 4}) == "accepted");
}

BOOST_AUTO_TEST_CASE(case_84_the_number_of_entries) {
  BOOST_TEST(refused({0, 5}, {0, 5}, 5, {.sequences = 2}) ==
             "number of entries of cu_seqlens is 2: it must be 3, one more than there are "
             "sequences");
  BOOST_TEST(refused({0, 5}, {0, 5, 8}, 8) ==
             "number of entries of cu_seqlens_padded is 3: it must be 2, one more than there are "
             "sequences");
  BOOST_TEST(refused({}, {}, 0) == "size of cu_seqlens is 0: it must have at least 1 entry");
  BOOST_TEST(refused({0, 5}, {}, 5) ==
             "size of cu_seqlens_padded is 0: it must have at least 1 entry");
}

BOOST_AUTO_TEST_CASE(padded_bounds_are_checked_like_the_real_ones) {
  BOOST_TEST(refused({0, 1, 2}, {1, 2, 4}, 4) ==
             "cu_seqlens_padded[0] is 1: the first entry must be 0");
  BOOST_TEST(refused({0, 1, 2}, {0, 5, 4}, 4) ==
             "cu_seqlens_padded[2] is 4: entries must not decrease, and the one before is 5");
}

BOOST_AUTO_TEST_CASE(a_real_length_is_within_the_padded_one) {
  BOOST_TEST(refused({0, 5, 6}, {0, 4, 8}, 8) ==
             "real length of sequence 0 is 5: it must be at most 4, its padded length");
  BOOST_TEST(refused({0, 2, 7}, {0, 4, 8}, 8) ==
             "real length of sequence 1 is 5: it must be at most 4, its padded length");
}

BOOST_AUTO_TEST_CASE(the_sharding_divides_every_padded_length) {
  const context_parallel<2> cp;
  BOOST_TEST(refusal([&] { from_cu_seqlens(bounds{0, 4, 9}, bounds{0, 4, 10}, 10, cp); }) ==
             "padded length of sequence 1 is 6: it must be a multiple of 4, what the sharding "
             "divides by");
  BOOST_TEST(refusal([&] {
               from_cu_seqlens(bounds{0, 4, 9}, bounds{0, 4, 10}, 10,
                               context_parallel<2, striped>{});
             }) == "accepted");
}

BOOST_AUTO_TEST_CASE(a_ghost_can_be_adopted) {
  const std::vector<int> lens{5, 3};
  const auto made = make_layout(
      lens, padding{each_multiple_of<4>{}, fixed_total<16>{}, ghost_tail{}}, context_parallel<2>{});
  const auto l = from_cu_seqlens(made.cu_seqlens(), made.cu_seqlens_padded(), 16,
                                 context_parallel<2>{}, {.sequences = 2, .ghost = true});
  BOOST_TEST(l.sequences() == 2);
  BOOST_TEST(l.batch_size() == 2);
  BOOST_TEST(l.cu_seqlens().size() == 4U);
  BOOST_TEST(l.max_seqlen() == 8);
  BOOST_TEST(l.view().token_at(full_row, 15).slot == 2);
  BOOST_TEST(refused({0, 5, 6}, {0, 8, 12}, 12, {.ghost = true}) ==
             "real length of the ghost sequence is 1: it must be 0");
  BOOST_TEST(refused({0}, {0}, 0, {.ghost = true}) ==
             "number of entries of cu_seqlens is 1: a ghost needs at least 2");
  BOOST_TEST(refused({0, 5}, {0, 8}, 8, {.sequences = 1, .ghost = true}) ==
             "number of entries of cu_seqlens is 2: it must be 3, one more than there are "
             "sequences");
}

BOOST_AUTO_TEST_CASE(an_order_of_adopted_slots) {
  const std::array<offset_t, 3> order{2, 0, 1};
  const auto l = from_cu_seqlens(bounds{0, 5, 7, 8}, 8, no_context_parallel{}, {.order = order});
  BOOST_TEST(l.batch_size() == 3);
  const auto view = l.view();
  for (offset_t k = 0; k < 3; ++k) {
    BOOST_TEST(view.sequence_in(k) == order[static_cast<std::size_t>(k)]);
    BOOST_TEST(view.slot(order[static_cast<std::size_t>(k)]) == k);
  }
}

BOOST_AUTO_TEST_CASE(an_order_into_a_larger_batch) {
  const std::array<offset_t, 2> order{4, 1};
  const auto l =
      from_cu_seqlens(bounds{0, 5, 7}, 7, no_context_parallel{}, {.order = order, .batch = 5});
  BOOST_TEST(l.batch_size() == 5);
  BOOST_TEST(l.sequences() == 2);
  const offset_t slot[] = {-1, 1, -1, -1, 0};
  for (offset_t b = 0; b < 5; ++b) BOOST_TEST(l.view().slot(b) == slot[b]);
}

BOOST_AUTO_TEST_CASE(an_empty_order_of_a_row_without_sequences) {
  const bounds nobody;
  const auto l =
      from_cu_seqlens(bounds{0}, 0, no_context_parallel{}, {.order = nobody, .batch = 3});
  BOOST_TEST(l.batch_size() == 3);
  BOOST_TEST(l.sequences() == 0);
  for (offset_t b = 0; b < 3; ++b) BOOST_TEST(l.view().slot(b) == -1);
}

BOOST_AUTO_TEST_CASE(an_order_that_does_not_fit_is_refused) {
  const auto with_order = [](const bounds& order, offset_t batch) {
    return refused({0, 5, 7}, {0, 5, 7}, 7, {.order = order, .batch = batch});
  };
  BOOST_TEST(with_order({0}, dynamic) ==
             "size of order is 1: it must be 2, the number of sequences");
  BOOST_TEST(with_order({0, 2}, dynamic) ==
             "order[1] is 2: it must be a sequence of the batch, from 0 to 1");
  BOOST_TEST(with_order({-1, 0}, dynamic) ==
             "order[0] is -1: it must be a sequence of the batch, from 0 to 1");
  BOOST_TEST(with_order({1, 1}, dynamic) ==
             "order[1] is 1: each sequence may be packed at most once");
  BOOST_TEST(with_order({1, 0}, 1) ==
             "order[0] is 1: it must be a sequence of the batch, from 0 to 0");
}

BOOST_AUTO_TEST_CASE(a_batch_of_a_negative_size_is_refused_like_any_other_argument) {
  const std::array<offset_t, 1> order{0};
  BOOST_TEST(refusal([&] {
               from_cu_seqlens(bounds{0, 5}, 5, no_context_parallel{},
                               {.order = order, .batch = -2});
             }) == "batch is -2: it must be from 0 to 2147483647");
}

BOOST_AUTO_TEST_CASE(a_batch_size_is_not_ignored) {
  // Without an order there are as many sequences as sequences, and five are not one.
  BOOST_TEST(refused({0, 5}, {0, 5}, 5, {.batch = 5}) ==
             "batch is 5: without an order it must be 1, the number of sequences");
}

BOOST_AUTO_TEST_CASE(position_ids_with_ranks) {
  const auto l =
      from_position_ids(std::vector<std::int64_t>{0, 1, 2, 3, 0, 1, 2, 3}, context_parallel<2>{});
  BOOST_TEST(plain(l.cu_seqlens()) == (bounds{0, 4, 8}));
  BOOST_TEST(full_rows_of(l, 0) == (bounds{0, 3, 4, 7}));
  BOOST_TEST(refusal([] { from_position_ids(std::array{0, 1, 2}, context_parallel<2>{}); }) ==
             "padded length of sequence 0 is 3: it must be a multiple of 4, what the sharding "
             "divides by");
}

BOOST_AUTO_TEST_CASE(position_ids_of_every_small_batch) {
  for (int a = 1; a <= 4; ++a) {
    for (int b = 1; b <= 4; ++b) {
      std::vector<int> ids;
      for (const int length : {a, b, 1}) {
        for (int k = 0; k < length; ++k) ids.push_back(k);
      }
      BOOST_TEST(plain(from_position_ids(ids).cu_seqlens()) == (bounds{0, a, a + b, a + b + 1}));
    }
  }
}

BOOST_AUTO_TEST_CASE(position_ids_that_do_not_count_are_refused) {
  BOOST_TEST(refused_ids({1, 2}) == "position_ids[0] is 1: the first must be 0");
  BOOST_TEST(refused_ids({-1}) == "position_ids[0] is -1: the first must be 0");
  BOOST_TEST(refused_ids({0, 1, 3}) ==
             "position_ids[2] is 3: it must be 0 or 2, one more than the last");
  BOOST_TEST(refused_ids({0, 1, 1}) ==
             "position_ids[2] is 1: it must be 0 or 2, one more than the last");
  BOOST_TEST(refused_ids({0, -1}) ==
             "position_ids[1] is -1: it must be 0 or 1, one more than the last");
}

BOOST_AUTO_TEST_CASE(position_ids_are_checked_against_the_options) {
  const std::array ids{0, 1, 2, 0};
  const auto with = [&](const adopt_options& options) {
    return refusal([&] { from_position_ids(ids, no_context_parallel{}, options); });
  };
  BOOST_TEST(with({.width = 2}) ==
             "sequence 0 is 3: a length must be at most 2, the width of the batch");
  BOOST_TEST(with({.sequences = 3}) ==
             "number of entries of cu_seqlens is 3: it must be 4, one more than there are "
             "sequences");
  BOOST_TEST(with({.sequences = 2, .max_seqlen = 3}) == "accepted");
}

BOOST_AUTO_TEST_CASE(a_layout_is_adopted_again_with_its_order) {
  const auto check = [](auto index) {
    using Index = decltype(index);
    const std::vector<offset_t> order{3, 0, 2};
    const auto made = make_layout<Index>(std::vector{3, 9, 0, 5}, padding{each_multiple_of<4>{}},
                                         context_parallel<2>{}, {.order = order});
    const auto again = from_cu_seqlens<Index>(made.cu_seqlens(), made.cu_seqlens_padded(),
                                              made.total_tokens(), context_parallel<2>{},
                                              {.order = made.order(), .batch = made.batch_size()});
    BOOST_TEST(again.batch_size() == 4);
    BOOST_TEST(again.sequences() == 3);
    for (offset_t slot = 0; slot < 3; ++slot) {
      BOOST_TEST(again.view().sequence_in(slot) == order[static_cast<std::size_t>(slot)]);
    }
    BOOST_TEST(again.view().slot(1) == -1);
    // From lengths, and into the other index type.
    const auto other = make_layout<std::int64_t>(std::vector{3, 9, 0, 5}, no_padding{},
                                                 no_context_parallel{}, {.order = made.order()});
    BOOST_TEST(other.view().sequence_in(0) == 3);
    BOOST_TEST(other.total_tokens() == 8);
  };
  check(std::int32_t{});
  check(std::int64_t{});

  // No order is none, and an order of no slots stays one.
  const auto plain = make_layout(std::vector{3, 9});
  BOOST_TEST(!plain.order());
  BOOST_TEST(
      from_cu_seqlens(plain.cu_seqlens(), 12, no_context_parallel{}, {.order = plain.order()})
          .sequences() == 2);
  const auto empty = make_layout(std::vector{3, 9}, no_padding{}, no_context_parallel{},
                                 {.order = std::vector<offset_t>{}});
  BOOST_TEST(bool{empty.order()});
  BOOST_TEST(from_cu_seqlens(empty.cu_seqlens(), 0, no_context_parallel{},
                             {.order = empty.order(), .batch = 2})
                 .view()
                 .slot(1) == -1);
}

BOOST_AUTO_TEST_CASE(position_ids_with_a_tail) {
  const auto check = [](const std::vector<int>& ids, const adopt_options& options,
                        const std::vector<std::int32_t>& cu,
                        const std::vector<std::int32_t>& cu_padded) {
    const auto layout = from_position_ids(ids, no_context_parallel{}, options);
    BOOST_TEST(layout.cu_seqlens() == cu, boost::test_tools::per_element());
    BOOST_TEST(layout.cu_seqlens_padded() == cu_padded, boost::test_tools::per_element());
    BOOST_TEST(layout.sequences() == static_cast<offset_t>(cu.size()) - 1 - options.ghost);
  };
  // A ghost's ids count from 0, as a sequence's do.
  check({0, 1, 2, 0, 1, 0, 1, 2}, {.ghost = true, .tail = 3}, {0, 3, 5, 5}, {0, 3, 5, 8});
  // An absorbed tail counts on; zeros are no sequences there, nor is anything else.
  check({0, 1, 2, 0, 1, 2, 3, 4}, {.tail = 3}, {0, 3, 5}, {0, 3, 8});
  check({0, 1, 2, 0, 1, 0, 0, 0}, {.tail = 3}, {0, 3, 5}, {0, 3, 8});
  check({0, 1, 2, 0, 1, 7, -1, 7}, {.tail = 3}, {0, 3, 5}, {0, 3, 8});
  check({0, 1, 2, 0, 1}, {.tail = 0}, {0, 3, 5}, {0, 3, 5});
  check({0, 1, 2, 0, 1}, {.ghost = true, .tail = 0}, {0, 3, 5, 5}, {0, 3, 5, 5});
  check({5, 5}, {.ghost = true, .tail = 2}, {0, 0}, {0, 2});
  check({}, {.tail = 0}, {0}, {0});

  const auto refuse = [](const std::vector<int>& ids, const adopt_options& options,
                         const std::string& text) {
    BOOST_CHECK_EXCEPTION(from_position_ids(ids, no_context_parallel{}, options), invalid_input,
                          refused_as(text));
  };
  refuse({0, 1, 2, 0, 1, 0, 1, 2}, {.ghost = true},
         "tail is not given: position ids do not tell a ghost from a sequence: say how many tokens "
         "it has");
  refuse({0, 1}, {.tail = 3}, "tail is 3: it must be at most 2, the tokens of the row");
  refuse({0, 1}, {.tail = -2}, "tail is -2: it must be from 0 to 2147483647");
  refuse({0, 1}, {.tail = 2},
         "number of sequences is 0: it must be at least 1, so that one can absorb the tail of 2 "
         "tokens (or use ghost_tail)");
  refuse({0, 1, 7, 0}, {.tail = 1},
         "position_ids[2] is 7: it must be 0 or 2, one more than the last");
}

BOOST_AUTO_TEST_CASE(position_ids_with_a_start) {
  const auto bounds_from = [](const std::vector<int>& ids, const adopt_options& options) {
    return plain(from_position_ids(ids, no_context_parallel{}, options).cu_seqlens());
  };
  BOOST_TEST(bounds_from({2, 3, 4, 2, 3}, {.position_start = 2}) == (bounds{0, 3, 5}));
  BOOST_TEST(bounds_from({2, 2, 3}, {.position_start = 2}) == (bounds{0, 1, 3}));
  BOOST_TEST(bounds_from({-1, 0, 1, -1, 0}, {.position_start = -1}) == (bounds{0, 3, 5}));
  BOOST_TEST(bounds_from({2, 3, 0, 0}, {.ghost = true, .tail = 2, .position_start = 2}) ==
             (bounds{0, 2, 2}));

  const auto refused_at = [](const std::vector<int>& ids, offset_t start) {
    return refusal(
        [&] { from_position_ids(ids, no_context_parallel{}, {.position_start = start}); });
  };
  BOOST_TEST(refused_at({0, 1}, 2) == "position_ids[0] is 0: the first must be 2");
  BOOST_TEST(refused_at({3, 4}, 2) == "position_ids[0] is 3: the first must be 2");
  BOOST_TEST(refused_at({2, 3, 5}, 2) ==
             "position_ids[2] is 5: it must be 2 or 4, one more than the last");
  BOOST_TEST(refused_at({2, 3, 1, 2}, 2) ==
             "position_ids[2] is 1: it must be 2 or 4, one more than the last");
  BOOST_TEST(refused_at({0}, offset_t{1} << 48) ==
             "position_start is 281474976710656: it must be from -140737488355328 to "
             "140737488355328");
}

BOOST_AUTO_TEST_CASE(segment_ids) {
  const auto check = [](const std::vector<int>& ids, const adopt_options& options, const bounds& cu,
                        const bounds& cu_padded) {
    const auto layout = from_segment_ids(ids, no_context_parallel{}, options);
    BOOST_TEST(plain(layout.cu_seqlens()) == cu);
    BOOST_TEST(plain(layout.cu_seqlens_padded()) == cu_padded);
    BOOST_TEST(layout.sequences() == static_cast<offset_t>(cu.size()) - 1 - options.ghost);
    BOOST_TEST(layout.view().has_ghost() == options.ghost);
  };
  check({1, 1, 2, 2, 2, 0}, {}, {0, 2, 5}, {0, 2, 6});
  check({1, 1, 2, 2, 2, 0}, {.ghost = true}, {0, 2, 5, 5}, {0, 2, 5, 6});
  check({1, 1, 2, 2, 2}, {.ghost = true}, {0, 2, 5, 5}, {0, 2, 5, 5});
  // Ids are any numbers in any order.
  check({7, -3, -3, 5}, {}, {0, 1, 3, 4}, {0, 1, 3, 4});
  // Padding between sequences belongs to the one before.
  check({4, 0, 0, 9, 9, 0, 8}, {}, {0, 1, 3, 4}, {0, 3, 6, 7});
  // Another padding id, and none.
  check({0, 0, -1, 4, -1, -1}, {.padding_id = -1}, {0, 2, 3}, {0, 3, 6});
  check({0, 0, -1, 4, -1, -1}, {.ghost = true, .padding_id = -1}, {0, 2, 3, 3}, {0, 3, 4, 6});
  check({0, 0, 1, 2, 2}, {.padding_id = std::nullopt}, {0, 2, 3, 5}, {0, 2, 3, 5});
  check({0, 0, 1, 2, 2}, {.ghost = true, .padding_id = 2}, {0, 2, 3, 3}, {0, 2, 3, 5});
  // A tail that is given is one, whatever it holds; other padding belongs to the last sequence.
  check({1, 1, 2, 0, 0, 0}, {.ghost = true, .tail = 2}, {0, 2, 3, 3}, {0, 2, 4, 6});
  check({1, 1, 2, 2, 1, 3}, {.ghost = true, .tail = 2, .padding_id = std::nullopt}, {0, 2, 4, 4},
        {0, 2, 4, 6});
  check({1, 1, 2, 2, 1, 3}, {.tail = 3}, {0, 2, 3}, {0, 2, 6});
  // Nothing but a ghost.
  check({0, 0, 0}, {.ghost = true}, {0, 0}, {0, 3});
  check({5, 5}, {.ghost = true, .tail = 2}, {0, 0}, {0, 2});
  check({}, {}, {0}, {0});
  check({}, {.ghost = true}, {0, 0}, {0, 0});
}

BOOST_AUTO_TEST_CASE(segment_ids_of_any_type_and_range) {
  const std::uint64_t large = std::uint64_t{1} << 63;
  const auto l = from_segment_ids<std::int64_t>(std::list<std::uint64_t>{large, large, 3, 0});
  BOOST_TEST(plain(l.cu_seqlens()) == (bounds{0, 2, 3}));
  BOOST_TEST(plain(l.cu_seqlens_padded()) == (bounds{0, 2, 4}));
  // A padding id that the type does not hold is in no entry.
  const std::array<std::uint8_t, 3> bytes{255, 255, 0};
  BOOST_TEST(
      plain(from_segment_ids(bytes, no_context_parallel{}, {.padding_id = -1}).cu_seqlens()) ==
      (bounds{0, 2, 3}));
  const context_parallel<2> cp;
  BOOST_TEST(full_rows_of(from_segment_ids(std::array{1, 1, 1, 0, 2, 2, 2, 2}, cp), 0) ==
             (bounds{0, 3, 4, 7}));
}

BOOST_AUTO_TEST_CASE(segment_ids_that_return_are_refused) {
  const auto refused_segments = [](const std::vector<int>& ids, const adopt_options& options = {}) {
    return refusal([&] { from_segment_ids(ids, no_context_parallel{}, options); });
  };
  const std::string ended =
      ": the tokens of a sequence must be neighbours, and this id ended at entry ";
  BOOST_TEST(refused_segments({5, 5, 7, 7, 5}) == "segment_ids[4] is 5" + ended + "1");
  BOOST_TEST(refused_segments({1, 1, 0, 1}) == "segment_ids[3] is 1" + ended + "1");
  // The first entry that returns is named, and where its id was last.
  BOOST_TEST(refused_segments({9, 8, 9, 8, 9}) == "segment_ids[2] is 9" + ended + "0");
  BOOST_TEST(refused_segments({3, 4, 4, 5, 4, 3}) == "segment_ids[4] is 4" + ended + "2");
  BOOST_TEST(refused_segments({-1, 2, -1}) == "segment_ids[2] is -1" + ended + "0");
  // Not in a tail that was given.
  BOOST_TEST(refused_segments({5, 5, 7, 7, 5}, {.tail = 1}) == "accepted");
}

BOOST_AUTO_TEST_CASE(segment_ids_that_show_no_row_are_refused) {
  const auto refused_segments = [](const std::vector<int>& ids, const adopt_options& options = {}) {
    return refusal([&] { from_segment_ids(ids, no_context_parallel{}, options); });
  };
  const std::string first = ": padding before the first sequence belongs to none";
  BOOST_TEST(refused_segments({0, 1, 1}) == "segment_ids[0] is 0" + first);
  BOOST_TEST(refused_segments({-1, -1, 1}, {.padding_id = -1}) == "segment_ids[0] is -1" + first);
  BOOST_TEST(refused_segments({0, 0, 0}, {.ghost = true, .tail = 2}) ==
             "segment_ids[0] is 0" + first);
  BOOST_TEST(
      refused_segments({0, 0, 0}) ==
      "number of sequences is 0: it must be at least 1, so that one can absorb the tail of 3 "
      "tokens (or use ghost_tail)");
  BOOST_TEST(refused_segments({1, 2}, {.ghost = true, .padding_id = std::nullopt}) ==
             "tail is not given: without a padding_id, segment ids do not tell a ghost from a "
             "sequence: say how many tokens it has");
  BOOST_TEST(refused_segments({1, 2}, {.tail = 3}) ==
             "tail is 3: it must be at most 2, the tokens of the row");
  BOOST_TEST(refused_segments({1, 2}, {.position_start = 1}) ==
             "position_start is 1: it goes with position ids");
  BOOST_TEST(refused_segments({1, 2, 2}, {.width = 1}) ==
             "sequence 1 is 2: a length must be at most 1, the width of the batch");
  BOOST_TEST(refused_segments({1, 2, 2}, {.sequences = 3}) ==
             "number of entries of cu_seqlens is 3: it must be 4, one more than there are "
             "sequences");
  BOOST_TEST(refusal([] {
               from_position_ids(std::array{0, 1}, no_context_parallel{}, {.padding_id = 1});
             }) == "padding_id is 1: it goes with segment ids");
}

BOOST_AUTO_TEST_CASE(ids_with_the_real_lengths) {
  const auto check = [](const auto& layout, const bounds& cu, const bounds& cu_padded) {
    BOOST_TEST(plain(layout.cu_seqlens()) == cu);
    BOOST_TEST(plain(layout.cu_seqlens_padded()) == cu_padded);
  };
  const no_context_parallel one;
  const std::array ids{0, 1, 2, 3, 0, 1};
  check(from_position_ids(ids, std::array{3, 1}), {0, 3, 4}, {0, 4, 6});
  // Sequences without tokens are where their lengths are 0.
  check(from_position_ids(ids, std::array{0, 3, 0, 0, 1, 0}), {0, 0, 3, 3, 3, 4, 4},
        {0, 0, 4, 4, 4, 6, 6});
  // One that has padding alone: all have tokens, or the last one has the tail.
  check(from_position_ids(ids, std::array{0, 1}), {0, 0, 1}, {0, 4, 6});
  check(from_position_ids(ids, std::array{0, 4, 0}), {0, 0, 4, 4}, {0, 0, 4, 6});
  check(from_position_ids(ids, std::array{4, 0}, one, {.tail = 2}), {0, 4, 4}, {0, 4, 6});
  check(from_position_ids(ids, std::array{3}, one, {.ghost = true, .tail = 2}), {0, 3, 3},
        {0, 4, 6});
  check(from_position_ids(std::array<int, 0>{}, std::array{0, 0}), {0, 0, 0}, {0, 0, 0});

  const std::array segments{4, 4, 4, 4, 9, 9};
  check(from_segment_ids(segments, std::list<std::uint16_t>{3, 0, 1}), {0, 3, 3, 4}, {0, 4, 4, 6});
  check(from_segment_ids(segments, std::array{3}, one, {.ghost = true, .padding_id = 9}), {0, 3, 3},
        {0, 4, 6});
  check(from_segment_ids(segments, std::array{4, 0}, one, {.tail = 2}), {0, 4, 4}, {0, 4, 6});
  check(from_segment_ids(std::array{0, 0, 0}, std::array{0, 0}), {0, 0, 0}, {0, 0, 3});
}

BOOST_AUTO_TEST_CASE(real_lengths_that_the_row_does_not_show_are_refused) {
  const std::array ids{0, 1, 2, 3, 0, 1};
  const auto refused_lengths = [&](const std::vector<std::int64_t>& lengths) {
    return refusal([&] { from_position_ids(ids, lengths); });
  };
  BOOST_TEST(refused_lengths({3, 3}) ==
             "lengths[1] is 3: it must be at most 2, the tokens of its sequence in the row");
  BOOST_TEST(refused_lengths({0, 5, 0, 1}) ==
             "lengths[1] is 5: it must be at most 4, the tokens of its sequence in the row");
  BOOST_TEST(refused_lengths({3, -1}) ==
             "lengths[1] is -1: a length must be from 0 to 281474976710656");
  BOOST_TEST(refused_lengths({3}) == "number of lengths above 0 is 1: the row shows 2 sequences");
  BOOST_TEST(refused_lengths({1, 1, 1}) ==
             "number of lengths above 0 is 3: the row shows 2 sequences");
  // Which of the empty ones has the tokens cannot be told.
  BOOST_TEST(refused_lengths({0, 0, 1}) ==
             "number of lengths above 0 is 1: the row shows 2 sequences");
  BOOST_TEST(refused_lengths({}) == "number of lengths above 0 is 0: the row shows 2 sequences");
  BOOST_TEST(refusal([&] {
               from_position_ids(std::array{0, 1, 0, 0}, std::array{2, 0, 0, 0, 0});
             }) == "number of lengths above 0 is 1: the row shows 3 sequences");
  BOOST_TEST(refusal([&] { from_segment_ids(std::array{1, 1, 0, 2}, std::array{3, 1}); }) ==
             "lengths[0] is 3: it must be at most 2, the tokens of its sequence in the row");
}

namespace {

using any_parallel = context_parallel<dynamic, any_sharding>;
using any_layout = packed_layout<any_parallel>;

/// Any padding that fits the sharding; with a total there is a tail, often of more than a sequence.
any_padding random_padding(std::mt19937& random, offset_t divisor, offset_t content) {
  const each_multiple_of<> each{divisor};
  const total_multiple_of<> multiple{divisor * static_cast<offset_t>(1 + random() % 5)};
  const offset_t more = divisor * static_cast<offset_t>(random() % 4);
  const fixed_total<> fixed{std::max(content + more, divisor)};
  switch (random() % 5) {
    case 0: return padding{each};
    case 1: return padding{each, multiple};
    case 2: return padding{each, multiple, ghost_tail{}};
    case 3: return padding{each, fixed};
    default: return padding{each, fixed, ghost_tail{}};
  }
}

void require_same(const any_layout& again, const any_layout& made) {
  BOOST_TEST(plain(again.cu_seqlens()) == plain(made.cu_seqlens()));
  BOOST_TEST(plain(again.cu_seqlens_padded()) == plain(made.cu_seqlens_padded()));
  BOOST_TEST(again.batch_size() == made.batch_size());
  BOOST_TEST(again.sequences() == made.sequences());
  BOOST_TEST(again.max_seqlen() == made.max_seqlen());
  BOOST_TEST(again.max_length() == made.max_length());
  BOOST_TEST(layout_hash(again) == layout_hash(made));
}

/// The layout from each of its own arrays.
void check_adopted_again(const any_layout& made) {
  const auto view = made.view();
  const auto size = static_cast<std::size_t>(made.total_tokens());
  std::vector<std::int32_t> positions(size);
  std::vector<std::int64_t> index(size);
  per_token(host, made, full_row, position_ids(positions), sequence_index(index));
  bounds lengths;
  for (offset_t slot = 0; slot < made.sequences(); ++slot) lengths.push_back(view.length(slot));
  const bool ghost = view.has_ghost();
  adopt_options options{.sequences = made.sequences(),
                        .max_seqlen = made.max_seqlen(),
                        .ghost = ghost,
                        .order = made.order(),
                        .batch = made.batch_size()};
  require_same(from_cu_seqlens(made.cu_seqlens(), made.cu_seqlens_padded(), made.total_tokens(),
                               view.cp, options),
               made);
  options.padding_id = std::nullopt;
  if (ghost) options.padding_id = made.sequences();
  require_same(from_segment_ids(index, lengths, view.cp, options), made);
  options.padding_id = 0;
  if (ghost) options.tail = view.padded_length(made.sequences());
  require_same(from_position_ids(positions, lengths, view.cp, options), made);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_layout_is_adopted_again_from_each_of_its_own_arrays) {
  std::mt19937 random(19);
  int ghosts = 0;
  int empty_tails = 0;
  for (int round = 0; round < 600; ++round) {
    const any_parallel cp(1 + static_cast<offset_t>(random() % 4),
                          static_cast<sharding_kind>(random() % 3));
    bounds lengths(random() % 7);
    for (auto& length : lengths) length = std::max(0, static_cast<int>(random() % 16) - 5);
    bounds order(lengths.size());
    std::iota(order.begin(), order.end(), offset_t{0});
    std::shuffle(order.begin(), order.end(), random);
    order.resize(random() % (order.size() + 1));
    layout_options options;
    if (round % 2 == 0) options.order = order;
    offset_t content = 0;
    for (const offset_t length : lengths) content += round_up(length, cp.divisor());
    const any_padding how = random_padding(random, cp.divisor(), content);
    const offset_t slots = static_cast<offset_t>(round % 2 == 0 ? order.size() : lengths.size());
    if (slots == 0 && how.has_fixed_total && !has_ghost(how)) continue;  // nobody takes the tail
    const any_layout made = make_layout(lengths, how, cp, options);
    BOOST_TEST_CONTEXT("round " << round) {
      check_adopted_again(made);
    }
    ghosts += made.view().has_ghost() && made.view().padded_length(slots) > 0;
    empty_tails += !made.view().has_ghost() && slots > 1 && made.view().length(slots - 1) == 0 &&
                   made.view().padded_length(slots - 1) > 0;
  }
  // What is hard to see was seen.
  BOOST_TEST(ghosts > 50);
  BOOST_TEST(empty_tails > 20);
}

BOOST_AUTO_TEST_CASE(a_row_that_was_not_packed_is_adopted_again) {
  // Every sequence takes the whole width, empty ones too.
  const auto made = unpacked_layout(std::vector{3, 0, 4, 0}, 4, any_parallel(2, zigzag{}));
  check_adopted_again(made);
}
