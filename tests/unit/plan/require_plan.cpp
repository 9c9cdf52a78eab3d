#define BOOST_TEST_MODULE plan_require_plan
#include "seqpack/plan/require_plan.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "seqpack/policy/any_padding.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refusal;

namespace {

using numbers = std::vector<offset_t>;
using rows = std::vector<numbers>;
const no_context_parallel alone;

row_plan plan_of(const rows& given, const std::vector<sequence_piece>& pieces = {}) {
  numbers sequences;
  numbers bounds{0};
  for (const numbers& row : given) {
    sequences.insert(sequences.end(), row.begin(), row.end());
    bounds.push_back(static_cast<offset_t>(sequences.size()));
  }
  return {sequences, bounds, pieces};
}

std::string refused(const rows& given, const numbers& lengths, offset_t capacity,
                    const plan_requirements& requirements = {}, const any_padding& padding = {}) {
  return refusal(
      [&] { require_plan(plan_of(given), lengths, capacity, padding, alone, requirements); });
}

std::string pieces_refused(const rows& given, const std::vector<sequence_piece>& pieces,
                           const numbers& lengths, const plan_requirements& requirements = {}) {
  return refusal([&] {
    require_plan(plan_of(given, pieces), lengths, 10, no_padding{}, alone, requirements);
  });
}

constexpr bool in_constant_expressions() {
  const row_plan plan(numbers{1, 0, 2}, numbers{0, 2, 3});
  require_plan(plan, std::array{3, 4, 5}, 7);
  return true;
}
static_assert(in_constant_expressions());

}  // namespace

BOOST_AUTO_TEST_CASE(a_plan_made_elsewhere_is_accepted) {
  BOOST_TEST(refused({{1, 0}, {2}}, {3, 4, 5}, 7) == "accepted");
  BOOST_TEST(refused({{1, 0}, {}, {2}}, {3, 4, 5}, 7) == "accepted");
  BOOST_TEST(refused({}, {}, 7) == "accepted");
  require_plan(row_plan(std::array<std::int8_t, 2>{1, 0}, std::array<unsigned, 2>{0, 2}),
               std::array{3, 4}, 7);
}

BOOST_AUTO_TEST_CASE(every_sequence_is_in_one_slot) {
  BOOST_TEST(refused({{1, 0}}, {3, 4, 5}, 7) == "sequence 2 is in no row: each must be in one row");
  BOOST_TEST(refused({{1, 0}}, {3, 4, 5}, 7, {.all = false}) == "accepted");
  BOOST_TEST(refused({{0, 1}, {2, 0}}, {3, 4, 5}, 20) ==
             "slot 1 of row 1 is 0: a sequence may be in one slot, and row 0 has it");
  BOOST_TEST(refused({{0, 0}}, {3}, 20) ==
             "slot 1 of row 0 is 0: a sequence may be in one slot, and row 0 has it");
  BOOST_TEST(refused({{0}, {3}}, {3, 4, 5}, 20) ==
             "slot 0 of row 1 is 3: it must be a sequence, from 0 to 2");
  BOOST_TEST(refused({{0}, {-1}}, {3, 4, 5}, 20) ==
             "slot 0 of row 1 is -1: it must be a sequence, from 0 to 2");
}

BOOST_AUTO_TEST_CASE(rows_hold_no_more_than_the_capacity) {
  BOOST_TEST(
      refused({{0}, {1, 2}}, {3, 4, 5}, 8) ==
      "padded lengths of row 1 together is 9: it must be at most 8, what a row of capacity 8 has "
      "room for");
  BOOST_TEST(
      refused({{0}, {1, 2}}, {3, 4, 5}, 11, {}, padding{each_multiple_of<4>{}}) ==
      "padded lengths of row 1 together is 12: it must be at most 11, what a row of capacity 11 "
      "has room for");
  BOOST_TEST(
      refused({{0}, {1, 2}}, {3, 4, 5}, 11, {}, padding{total_multiple_of<4>{}}) ==
      "padded lengths of row 1 together is 9: it must be at most 8, what a row of capacity 11 has "
      "room for");
  BOOST_TEST(
      refused({{0}, {1, 2}}, {3, 4, 5}, dynamic, {}, padding{fixed_total<8>{}}) ==
      "padded lengths of row 1 together is 9: it must be at most 8, what a row of capacity 8 has "
      "room for");
}

BOOST_AUTO_TEST_CASE(rows_hold_no_more_sequences_than_asked) {
  BOOST_TEST(refused({{0, 1}, {2}}, {3, 4, 5}, 8, {.most_sequences = 1}) ==
             "number of sequences of row 0 is 2: it must be at most 1");
  BOOST_TEST(refused({{0, 1}, {2}}, {3, 4, 5}, 8, {.most_sequences = 2}) == "accepted");
}

BOOST_AUTO_TEST_CASE(tuples_are_whole) {
  const numbers lengths{1, 1, 1, 1};
  BOOST_TEST(refused({{0, 1}, {3, 2}}, lengths, 8, {.tuple = 2}) == "accepted");
  BOOST_TEST(refused({{0, 2}, {1, 3}}, lengths, 8, {.tuple = 2}) ==
             "sequence 1 is in row 1: sequence 0 of its tuple is in row 0");
  BOOST_TEST(refused({{2, 3}}, lengths, 8, {.tuple = 2, .all = false}) == "accepted");
  BOOST_TEST(refused({{0, 2, 3}}, lengths, 8, {.tuple = 2, .all = false}) ==
             "sequence 1 is in no row: sequence 0 of its tuple is in row 0");
  BOOST_TEST(refused({{0, 1, 2}}, {1, 1, 1}, 8, {.tuple = 2}) ==
             "number of sequences is 3: it must be a multiple of 2, the sequences of a tuple");
  BOOST_TEST(refused({{0}}, {1}, 8, {.tuple = 0}) ==
             "tuple is 0: it must be from 1 to 281474976710656");
}

BOOST_AUTO_TEST_CASE(rows_are_those_of_layouts) {
  const auto with_sharding = [](const rows& given, const numbers& lengths) {
    return refusal(
        [&] { require_plan(plan_of(given), lengths, 100, no_padding{}, context_parallel<2>{}); });
  };
  BOOST_TEST(with_sharding({{0}, {1}}, {4, 8}) == "accepted");
  BOOST_TEST(
      with_sharding({{0}, {1}}, {4, 6}) ==
      "padded length of lengths[1] is 6: it must be a multiple of 4, what the sharding divides "
      "by");
  BOOST_TEST(
      refused({{0}, {}}, {4}, dynamic, {}, padding{fixed_total<8>{}}) ==
      "number of sequences of row 1 is 0: it must be at least 1, so that one can absorb the tail "
      "of 8 tokens (or use ghost_tail)");
  BOOST_TEST(refused({{0}, {}}, {4}, dynamic, {}, padding{fixed_total<8>{}, ghost_tail{}}) ==
             "accepted");
}

BOOST_AUTO_TEST_CASE(lengths_and_capacity_are_those_of_plan_rows) {
  BOOST_TEST(refused({{0}}, {-4}, 8) == "lengths[0] is -4: a length must be at least 0");
  BOOST_TEST(refused({{0}}, {4}, 0) == "capacity is 0: it must be from 1 to 281474976710656");
  const numbers large(40'000, max_tokens);
  numbers all(large.size());
  for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<offset_t>(k);
  BOOST_TEST(
      refused({all}, large, max_tokens).starts_with("padded lengths of row 0 together is 2305"));
}

BOOST_AUTO_TEST_CASE(pieces_follow_the_sequences_and_each_other) {
  const numbers lengths{8, 3};
  BOOST_TEST(pieces_refused({{0, 2}, {1}}, {{0, 0, 5}, {0, 5, 3}, {1, 0, 3}}, lengths) ==
             "accepted");
  // Truncated: what no piece has is at the end.
  BOOST_TEST(pieces_refused({{0, 1}}, {{0, 0, 5}, {1, 0, 3}}, lengths) == "accepted");
  BOOST_TEST(pieces_refused({{0, 1}}, {{0, 0, 5}, {1, 0, 3}}, lengths, {.tuple = 2}) == "accepted");
  BOOST_TEST(pieces_refused({{0}, {1}}, {{1, 0, 3}, {0, 0, 8}}, lengths) ==
             "sequence of piece 0 is 1: it must be 0, as pieces follow the sequences");
  BOOST_TEST(pieces_refused({{0}, {1}}, {{0, 1, 3}, {1, 0, 3}}, lengths) ==
             "first token of piece 0 is 1: it must be 0, the next of sequence 0");
  BOOST_TEST(pieces_refused({{0}, {1}}, {{0, 0, 3}, {0, 4, 3}}, lengths) ==
             "first token of piece 1 is 4: it must be 3, the next of sequence 0");
  BOOST_TEST(pieces_refused({{0}, {1}}, {{0, 0, 3}, {0, 3, 6}}, lengths) ==
             "end of piece 1 is 9: it must be at most 8, the length of sequence 0");
  BOOST_TEST(pieces_refused({{0}}, {{0, 0, 8}}, lengths) ==
             "sequences of the pieces is 1: they must be 2, as many as there are lengths");
  BOOST_TEST(pieces_refused({{0}}, {{0, 0, 8}, {1, 0, 3}, {2, 0, 1}}, lengths) ==
             "sequence of piece 2 is 2: there are 2 sequences");
  BOOST_TEST(pieces_refused({{0}}, {{0, 0, 0}, {0, 0, 8}, {1, 0, 3}}, lengths) ==
             "length of piece 0 is 0: an empty piece must be the only one of its sequence");
}

BOOST_AUTO_TEST_CASE(entries_of_rows_are_pieces) {
  const numbers lengths{8, 3};
  const std::vector<sequence_piece> pieces{{0, 0, 5}, {0, 5, 3}, {1, 0, 3}};
  BOOST_TEST(pieces_refused({{0}, {1}}, pieces, lengths) ==
             "piece 2 is in no row: each must be in one row");
  BOOST_TEST(pieces_refused({{0}, {3}}, pieces, lengths) ==
             "slot 0 of row 1 is 3: it must be a piece, from 0 to 2");
  BOOST_TEST(
      pieces_refused({{0, 1, 2}}, pieces, lengths) ==
      "padded lengths of row 0 together is 11: it must be at most 10, what a row of capacity 10 "
      "has room for");
}
