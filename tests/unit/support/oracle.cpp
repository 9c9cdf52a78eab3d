#define BOOST_TEST_MODULE oracle
#include "support/oracle.hpp"

#include <boost/test/unit_test.hpp>

#include "support/golden.hpp"

// The oracle judges the library, so it is judged itself, against values written by hand.

namespace {

using oracle::numbers;

constexpr long long ign = -100;

numbers held(const oracle::packed& p, std::size_t rank) {
  return oracle::values(p.shards[rank], oracle::id, 0);
}

numbers labels(const oracle::packed& p, std::size_t rank) {
  return oracle::labels(p.shards[rank], p, oracle::id, 1, ign);
}

numbers real_by_sequence(const oracle::packed& p, std::size_t rank) {
  numbers counts(p.lens.size());
  for (const oracle::token& t : p.shards[rank]) {
    if (t.real) ++counts[oracle::at(t.slot)];
  }
  return counts;
}

}  // namespace

BOOST_AUTO_TEST_CASE(case_1_short_sequence_over_four_ranks) {
  const auto p = oracle::pack({.lens = {38}, .each = 128, .cp = 4});
  BOOST_TEST((p.refused == oracle::refusal::none));
  BOOST_TEST(p.total == 128);
  const numbers counts{16, 16, 6, 0};
  for (std::size_t rank = 0; rank < 4; ++rank) {
    BOOST_TEST(p.shards[rank].size() == 32U);
    BOOST_TEST(oracle::real_tokens(p.shards[rank]) == counts[rank]);
  }
  numbers third(32, 0);
  for (std::size_t k = 0; k < 6; ++k) third[k] = 132 + static_cast<long long>(k);
  BOOST_TEST(held(p, 2) == third);
  BOOST_TEST(held(p, 3) == numbers(32, 0));
}

BOOST_AUTO_TEST_CASE(case_2_short_sequence_over_eight_ranks) {
  const auto p = oracle::pack({.lens = {10}, .each = 32, .cp = 8});
  BOOST_TEST(held(p, 0) == (numbers{100, 101, 0, 0}));
  BOOST_TEST(held(p, 1) == (numbers{102, 103, 0, 0}));
  BOOST_TEST(held(p, 2) == (numbers{104, 105, 0, 0}));
  BOOST_TEST(held(p, 3) == (numbers{106, 107, 0, 0}));
  BOOST_TEST(held(p, 4) == (numbers{108, 109, 0, 0}));
  for (std::size_t rank = 5; rank < 8; ++rank) BOOST_TEST(held(p, rank) == numbers(4, 0));
}

BOOST_AUTO_TEST_CASE(case_3_two_tokens) {
  const auto p = oracle::pack({.lens = {2}, .each = 16, .cp = 2});
  BOOST_TEST(held(p, 0) == (numbers{100, 101, 0, 0, 0, 0, 0, 0}));
  BOOST_TEST(held(p, 1) == numbers(8, 0));
}

BOOST_AUTO_TEST_CASE(case_4_real_tokens_of_every_sequence) {
  const auto p = oracle::pack({.lens = {9, 8, 8, 12, 8, 12}, .each = 4, .cp = 2});
  BOOST_TEST(p.cu == (numbers{0, 9, 17, 25, 37, 45, 57}));
  BOOST_TEST(p.cu_padded == (numbers{0, 12, 20, 28, 40, 48, 60}));
  BOOST_TEST(real_by_sequence(p, 0) == (numbers{3, 4, 4, 6, 4, 6}));
  BOOST_TEST(real_by_sequence(p, 1) == (numbers{6, 4, 4, 6, 4, 6}));
  BOOST_TEST(oracle::real_tokens(p.shards[0]) == 27);
  BOOST_TEST(oracle::real_tokens(p.shards[1]) == 30);
}

BOOST_AUTO_TEST_CASE(case_5_odd_length) {
  const auto p = oracle::pack({.lens = {7}, .each = 4, .cp = 2});
  BOOST_TEST(held(p, 0) == (numbers{100, 101, 106, 0}));
  BOOST_TEST(held(p, 1) == (numbers{102, 103, 104, 105}));
}

BOOST_AUTO_TEST_CASE(case_6_four_sequences) {
  const auto p = oracle::pack({.lens = {4, 8, 6, 10}, .each = 4, .cp = 2});
  BOOST_TEST(p.cu == (numbers{0, 4, 12, 18, 28}));
  BOOST_TEST(p.cu_padded == (numbers{0, 4, 12, 20, 32}));
  BOOST_TEST(held(p, 0) ==
             (numbers{100, 103, 200, 201, 206, 207, 300, 301, 0, 0, 400, 401, 402, 409, 0, 0}));
  BOOST_TEST(held(p, 1) == (numbers{101, 102, 202, 203, 204, 205, 302, 303, 304, 305, 403, 404, 405,
                                    406, 407, 408}));
}

BOOST_AUTO_TEST_CASE(case_28_labels_of_odd_lengths) {
  const auto p = oracle::pack({.lens = {5, 3}, .each = 4, .cp = 2});
  BOOST_TEST(labels(p, 0) == (numbers{101, 102, ign, ign, 201, ign}));
  BOOST_TEST(labels(p, 1) == (numbers{103, 104, ign, ign, 202, ign}));
  const auto one = oracle::pack({.lens = {5, 3}, .each = 4});
  BOOST_TEST(labels(one, 0) ==
             (numbers{101, 102, 103, 104, ign, ign, ign, ign, 201, 202, ign, ign}));
}

BOOST_AUTO_TEST_CASE(case_29_labels_with_padding) {
  const auto p = oracle::pack({.lens = {3, 2}, .each = 4, .cp = 2});
  BOOST_TEST(held(p, 0) == (numbers{100, 0, 200, 0}));
  BOOST_TEST(held(p, 1) == (numbers{101, 102, 201, 0}));
  BOOST_TEST(labels(p, 0) == (numbers{101, ign, 201, ign}));
  BOOST_TEST(labels(p, 1) == (numbers{102, ign, ign, ign}));
}

BOOST_AUTO_TEST_CASE(case_30_labels_at_the_chunk_edge) {
  const auto p = oracle::pack({.lens = {8}, .cp = 2});
  BOOST_TEST(labels(p, 0) == (numbers{101, 102, 107, ign}));
  BOOST_TEST(labels(p, 1) == (numbers{103, 104, 105, 106}));
}

BOOST_AUTO_TEST_CASE(labels_of_a_larger_shift) {
  const auto p = oracle::pack({.lens = {4, 2}});
  BOOST_TEST(oracle::labels(p.row, p, oracle::id, 2, ign) ==
             (numbers{102, 103, ign, ign, ign, ign}));
}

BOOST_AUTO_TEST_CASE(the_other_shardings) {
  const auto contiguous =
      oracle::pack({.lens = {3, 4}, .each = 4, .cp = 2, .sharding = oracle::kind::contiguous});
  BOOST_TEST(held(contiguous, 0) == (numbers{100, 101, 200, 201}));
  BOOST_TEST(held(contiguous, 1) == (numbers{102, 0, 202, 203}));
  const auto striped =
      oracle::pack({.lens = {3, 4}, .each = 4, .cp = 2, .sharding = oracle::kind::striped});
  BOOST_TEST(held(striped, 0) == (numbers{100, 102, 200, 202}));
  BOOST_TEST(held(striped, 1) == (numbers{101, 0, 201, 203}));
}

BOOST_AUTO_TEST_CASE(the_tail_is_absorbed_or_a_ghost) {
  const auto absorbed = oracle::pack({.lens = {3, 2}, .each = 4, .total_multiple = 16});
  BOOST_TEST(absorbed.cu == (numbers{0, 3, 5}));
  BOOST_TEST(absorbed.cu_padded == (numbers{0, 4, 16}));
  BOOST_TEST(absorbed.max_seqlen == 12);
  const auto ghost = oracle::pack(
      {.lens = {3, 2}, .each = 4, .total_multiple = 16, .tail_to = oracle::tail::ghost});
  BOOST_TEST(ghost.cu == (numbers{0, 3, 5, 5}));
  BOOST_TEST(ghost.cu_padded == (numbers{0, 4, 8, 16}));
  BOOST_TEST(ghost.max_seqlen == 8);
  BOOST_TEST(oracle::sequence_index(ghost.row) ==
             (numbers{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2}));
  BOOST_TEST(oracle::position_ids(ghost.row) ==
             (numbers{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7}));
  BOOST_TEST(oracle::padding_mask(ghost.row) ==
             (numbers{0, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
}

BOOST_AUTO_TEST_CASE(an_order_maps_slots_to_batch_rows) {
  const auto p = oracle::pack({.lens = {2, 1, 3}, .order = {2, 0}});
  BOOST_TEST(p.cu == (numbers{0, 3, 5}));
  const numbers row = oracle::values(p.row, oracle::id, 0);
  BOOST_TEST(row == (numbers{300, 301, 302, 100, 101}));
  BOOST_TEST(oracle::unpack(p.row, row, 3, 3, -1) ==
             (numbers{100, 101, -1, -1, -1, -1, 300, 301, 302}));
}

BOOST_AUTO_TEST_CASE(what_is_refused) {
  using oracle::refusal;
  const auto why = [](const oracle::request& r) { return oracle::pack(r).refused; };
  BOOST_TEST((why({.lens = {20}, .each = 32, .cp = 3}) == refusal::each_not_divisible));
  BOOST_TEST((why({.lens = {1}, .total_multiple = 3, .fixed_total = 4}) ==
              refusal::fixed_total_not_divisible));
  BOOST_TEST((why({.lens = {1}, .fixed_total = 6, .cp = 2}) == refusal::fixed_total_not_divisible));
  BOOST_TEST((why({.lens = {3, -1}}) == refusal::negative_length));
  BOOST_TEST((why({.lens = {5, 3}, .cp = 2}) == refusal::padded_length_not_divisible));
  BOOST_TEST((why({.lens = {10}, .fixed_total = 8}) == refusal::content_above_total));
  BOOST_TEST((why({.fixed_total = 8}) == refusal::nobody_absorbs));
  BOOST_TEST((why({.fixed_total = 8, .tail_to = oracle::tail::ghost}) == refusal::none));
  BOOST_TEST((why({.total_multiple = 8}) == refusal::none));
}

BOOST_AUTO_TEST_CASE(the_oracle_agrees_with_the_reference_values) {
  const auto cases = golden::pack_cases();
  BOOST_TEST(cases.size() == 80U);
  for (const golden::pack_case& c : cases) {
    BOOST_TEST_CONTEXT(c.name) {
      const auto p = oracle::pack({.lens = c.seq_lengths,
                                   .each = c.pad_each,
                                   .total_multiple = c.pad_total_multiple,
                                   .fixed_total = c.pad_total_to,
                                   .cp = c.cp_size});
      const auto content = [](long long b, long long s) { return 1000 * (b + 1) + s; };
      BOOST_TEST((p.refused == oracle::refusal::none));
      BOOST_TEST(p.cu == c.cu_seqlens);
      BOOST_TEST(p.cu_padded == c.cu_seqlens_padded);
      BOOST_TEST(p.max_seqlen == c.max_seqlen);
      BOOST_TEST(p.total == c.total_tokens);
      BOOST_TEST(oracle::values(p.row, content, 0) == c.packed);
      BOOST_TEST_REQUIRE(p.shards.size() == c.shards.size());
      for (std::size_t rank = 0; rank < c.shards.size(); ++rank) {
        BOOST_TEST(oracle::values(p.shards[rank], content, 0) == c.shards[rank]);
      }
    }
  }
}
