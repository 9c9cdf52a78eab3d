// Sequences that no row has room for.
#define BOOST_TEST_MODULE plan_too_long
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "seqpack/plan/plan_rows.hpp"
#include "seqpack/plan/require_plan.hpp"
#include "seqpack/policy/any_padding.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refusal;

namespace {

using numbers = std::vector<offset_t>;
using pieces = std::vector<sequence_piece>;
const no_context_parallel alone;

pieces pieces_of(const numbers& lengths, offset_t capacity, too_long option,
                 const any_padding& padding = {}, offset_t tuple = 1) {
  const row_plan plan =
      plan_rows(lengths, capacity, padding, alone, {.tuple = tuple, .too_long = option});
  require_plan(plan, lengths, capacity, padding, alone, {.tuple = tuple});
  return {plan.pieces().begin(), plan.pieces().end()};
}

std::string refused(const numbers& lengths, offset_t capacity, const plan_options& options,
                    const any_padding& padding = {}) {
  return refusal([&] { plan_rows(lengths, capacity, padding, alone, options); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(entries_number_sequences_unless_they_may_be_cut) {
  BOOST_TEST(pieces_of({3, 10}, 10, too_long::refuse).empty());
  BOOST_TEST((pieces_of({3, 10}, 10, too_long::truncate) == pieces{{0, 0, 3}, {1, 0, 10}}));
  BOOST_TEST((pieces_of({3, 10}, 10, too_long::split) == pieces{{0, 0, 3}, {1, 0, 10}}));
}

BOOST_AUTO_TEST_CASE(the_first_tokens_stay) {
  BOOST_TEST((pieces_of({11, 3, 25}, 10, too_long::truncate) ==
              pieces{{0, 0, 10}, {1, 0, 3}, {2, 0, 10}}));
  // Padded to multiples of 4, a row of 10 has room for 8.
  BOOST_TEST((pieces_of({11, 9, 7}, 10, too_long::truncate, padding{each_multiple_of<4>{}}) ==
              pieces{{0, 0, 8}, {1, 0, 8}, {2, 0, 7}}));
}

BOOST_AUTO_TEST_CASE(the_longest_of_a_tuple_are_cut_to_one_length) {
  BOOST_TEST((pieces_of({9, 2, 1, 1}, 10, too_long::truncate, {}, 2) ==
              pieces{{0, 0, 8}, {1, 0, 2}, {2, 0, 1}, {3, 0, 1}}));
  BOOST_TEST((pieces_of({9, 7, 1}, 10, too_long::truncate, {}, 3) ==
              pieces{{0, 0, 4}, {1, 0, 4}, {2, 0, 1}}));
  BOOST_TEST((pieces_of({9, 9, 9}, 10, too_long::truncate, {}, 3) ==
              pieces{{0, 0, 3}, {1, 0, 3}, {2, 0, 3}}));
}

BOOST_AUTO_TEST_CASE(pieces_are_full_rows_and_then_the_rest) {
  BOOST_TEST((pieces_of({25, 0, 10, 30}, 10, too_long::split) == pieces{{0, 0, 10},
                                                                        {0, 10, 10},
                                                                        {0, 20, 5},
                                                                        {1, 0, 0},
                                                                        {2, 0, 10},
                                                                        {3, 0, 10},
                                                                        {3, 10, 10},
                                                                        {3, 20, 10}}));
  BOOST_TEST((pieces_of({25}, 10, too_long::split, padding{each_multiple_of<4>{}}) ==
              pieces{{0, 0, 8}, {0, 8, 8}, {0, 16, 8}, {0, 24, 1}}));
  BOOST_TEST((pieces_of({7}, dynamic, too_long::split, padding{fixed_total<3>{}}) ==
              pieces{{0, 0, 3}, {0, 3, 3}, {0, 6, 1}}));
}

BOOST_AUTO_TEST_CASE(entries_of_rows_number_pieces) {
  const row_plan plan = plan_rows(numbers{25, 4}, 10, no_padding{}, alone,
                                  {.method = plan_method::in_order, .too_long = too_long::split});
  BOOST_TEST(plan.rows() == 3);
  BOOST_TEST(plan.row(2).size() == 2u);  // the last 5 tokens of the first, and the second
  BOOST_TEST(plan.row(2)[0] == 2);
  BOOST_TEST(plan.row(2)[1] == 3);
  BOOST_TEST((plan.pieces()[3] == sequence_piece{1, 0, 4}));
}

BOOST_AUTO_TEST_CASE(the_sharding_divides_full_pieces) {
  const context_parallel<2> four;  // zigzag divides by 4
  const auto cut = [&](offset_t capacity, too_long option) {
    const row_plan plan =
        plan_rows(numbers{24}, capacity, no_padding{}, four, {.too_long = option});
    return plan.piece_lengths();
  };
  BOOST_TEST(cut(10, too_long::truncate) == (numbers{8}), boost::test_tools::per_element());
  BOOST_TEST(cut(10, too_long::split) == (numbers{8, 8, 8}), boost::test_tools::per_element());
  BOOST_TEST(cut(16, too_long::split) == (numbers{16, 8}), boost::test_tools::per_element());
  BOOST_TEST(refusal([&] {
               plan_rows(numbers{22}, 8, no_padding{}, four, {.too_long = too_long::split});
             }) ==
             "padded length of piece_lengths[2] is 6: it must be a multiple of 4, what the "
             "sharding divides by");
}

BOOST_AUTO_TEST_CASE(a_row_must_have_room_for_a_token) {
  const any_padding sixteen = padding{each_multiple_of<16>{}};
  const std::string wanted =
      "capacity is 10: it must be at least 16, the padded length of one token";
  BOOST_TEST(refused({0, 3}, 10, {.too_long = too_long::split}, sixteen) == wanted);
  BOOST_TEST(refused({0, 3}, 10, {.too_long = too_long::truncate}, sixteen) == wanted);
  BOOST_TEST(refused({0, 0}, 10, {.too_long = too_long::split}, sixteen) == "accepted");
  BOOST_TEST(
      refused({4, 3}, 1, {.tuple = 2, .too_long = too_long::truncate}) ==
      "capacity is 1: it must be at least 2, the padded length of one token of each sequence "
      "of a tuple");
}

BOOST_AUTO_TEST_CASE(too_many_pieces_are_refused_before_they_are_made) {
  BOOST_TEST(refused({5, max_tokens}, 1, {.too_long = too_long::split}) ==
             "number of pieces is 281474976710661: it must be at most 2147483645");
  BOOST_TEST((pieces_of({max_tokens}, max_tokens / 2, too_long::split) ==
              pieces{{0, 0, max_tokens / 2}, {0, max_tokens / 2, max_tokens / 2}}));
}

BOOST_AUTO_TEST_CASE(as_few_pieces_as_possible_and_no_token_lost) {
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    const auto number = [&](offset_t least, offset_t most) {
      return std::uniform_int_distribution<offset_t>(least, most)(random);
    };
    const offset_t each = number(1, 5);
    const offset_t capacity = each + number(0, 20);
    numbers lengths(static_cast<std::size_t>(number(0, 6)));
    for (offset_t& n : lengths) n = number(0, 100);
    const any_padding padding = seqpack::padding{each_multiple_of<>{each}};
    const plan_options options{.method = static_cast<plan_method>(i % 3),
                               .too_long = too_long::split};
    const row_plan plan = plan_rows(lengths, capacity, padding, alone, options);
    require_plan(plan, lengths, capacity, padding);
    const offset_t full = capacity / each * each;
    std::size_t p = 0;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      const offset_t count = std::max<offset_t>(1, (lengths[s] + full - 1) / full);
      offset_t first = 0;
      for (offset_t k = 0; k < count; ++k, ++p) {
        const sequence_piece& piece = plan.pieces()[p];
        BOOST_REQUIRE(piece.sequence == static_cast<offset_t>(s));
        BOOST_REQUIRE(piece.first == first);
        BOOST_REQUIRE((piece.length == full || k + 1 == count));
        first += piece.length;
      }
      BOOST_REQUIRE(first == lengths[s]);
    }
    BOOST_REQUIRE(p == plan.pieces().size());
  }
}
