#define BOOST_TEST_MODULE adopt
#include "seqpack/layout/adopt.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

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
