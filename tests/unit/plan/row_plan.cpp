#define BOOST_TEST_MODULE plan_row_plan
#include "seqpack/plan/row_plan.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <list>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refusal;

namespace {

using numbers = std::vector<offset_t>;

std::string refused(const numbers& sequences, const numbers& bounds,
                    const std::vector<sequence_piece>& pieces = {}) {
  return refusal([&] { row_plan(sequences, bounds, pieces); });
}

constexpr bool in_constant_expressions() {
  const row_plan plan(numbers{2, 0, 1}, numbers{0, 2, 3});
  const row_plan none;
  return plan.rows() == 2 && plan.row(0).size() == 2 && plan.row(1)[0] == 1 && plan != none &&
         none.rows() == 0 && none.bounds().size() == 1;
}
static_assert(in_constant_expressions());

}  // namespace

BOOST_AUTO_TEST_CASE(a_row_is_the_order_of_a_layout) {
  const row_plan plan(numbers{2, 0, 1}, numbers{0, 2, 3});
  const std::array lengths{4, 5, 6};
  const auto first =
      make_layout(lengths, no_padding{}, no_context_parallel{}, {.order = plan.row(0)});
  BOOST_TEST(first.sequences() == 2);
  BOOST_TEST(first.total_tokens() == 10);
  BOOST_TEST(first.view().sequence_in(0) == 2);
  BOOST_TEST(first.view().sequence_in(1) == 0);
  const auto second =
      make_layout(lengths, no_padding{}, no_context_parallel{}, {.order = plan.row(1)});
  BOOST_TEST(second.total_tokens() == 5);
}

BOOST_AUTO_TEST_CASE(an_empty_row_is_an_order_of_no_slots) {
  const row_plan plan(numbers{0}, numbers{0, 0, 1});
  const auto layout =
      make_layout(std::array{7}, no_padding{}, no_context_parallel{}, {.order = plan.row(0)});
  BOOST_TEST(layout.sequences() == 0);
  BOOST_TEST(layout.total_tokens() == 0);
}

BOOST_AUTO_TEST_CASE(arrays_of_any_integers_are_adopted) {
  const row_plan wanted(numbers{2, 0, 1}, numbers{0, 2, 3});
  BOOST_TEST((row_plan(std::array<std::int8_t, 3>{2, 0, 1}, std::vector<std::uint64_t>{0, 2, 3}) ==
              wanted));
  BOOST_TEST((row_plan(std::list<int>{2, 0, 1}, std::array<unsigned short, 3>{0, 2, 3}) == wanted));
  BOOST_TEST((row_plan(wanted.sequences(), wanted.bounds()) == wanted));
  BOOST_TEST(refusal([] { row_plan(std::array{0, -3}, std::array{0, 2}); }) ==
             "sequences[1] is -3: it must be from 0 to 281474976710656");
  BOOST_TEST(refusal([] {
               row_plan(std::array{0}, std::array<std::uint64_t, 2>{0, ~std::uint64_t{0}});
             }) == "bounds[1] is 18446744073709551615: it must be from 0 to 281474976710656");
}

BOOST_AUTO_TEST_CASE(bounds_are_checked) {
  BOOST_TEST(refused({}, {}) == "size of bounds is 0: it must be at least 1, the rows plus 1");
  BOOST_TEST(refused({0, 1}, {1, 2}) == "bounds[0] is 1: the first entry must be 0");
  BOOST_TEST(refused({0, 1}, {0, 2, 1, 2}) ==
             "bounds[2] is 1: entries must not decrease, and the one before is 2");
  BOOST_TEST(refused({0, 1}, {0, 1}) ==
             "bounds[1] is 1: the last entry must be 2, the number of entries of all rows");
  BOOST_TEST(refused({0, 1}, {0, 3}) ==
             "bounds[1] is 3: the last entry must be 2, the number of entries of all rows");
  BOOST_TEST(refused({}, {0, 0, 0}) == "accepted");
}

BOOST_AUTO_TEST_CASE(pieces_are_numbers_of_tokens) {
  BOOST_TEST(refused({0}, {0, 1}, {{-1, 0, 1}}) ==
             "sequence of piece 0 is -1: it must be from 0 to 281474976710656");
  BOOST_TEST(refused({0}, {0, 1}, {{0, 0, 4}, {0, -4, 1}}) ==
             "first token of piece 1 is -4: it must be from 0 to 281474976710656");
  BOOST_TEST(refused({0}, {0, 1}, {{0, 0, offset_t{1} << 62}}) ==
             "length of piece 0 is 4611686018427387904: it must be from 0 to 281474976710656");
}

BOOST_AUTO_TEST_CASE(rows_that_do_not_exist_are_refused) {
  const row_plan plan(numbers{0}, numbers{0, 1});
  BOOST_TEST(refusal([&] { plan.row(1); }) == "row is 1: the plan has 1 rows, from 0 on");
  BOOST_TEST(refusal([&] { plan.row(-1); }) == "row is -1: the plan has 1 rows, from 0 on");
  BOOST_TEST(refusal([&] { row_plan().row(0); }) == "row is 0: the plan has 0 rows, from 0 on");
}

BOOST_AUTO_TEST_CASE(lengths_of_pieces_are_those_of_a_layout) {
  const row_plan plan(numbers{1, 0}, numbers{0, 1, 2}, {{0, 0, 8}, {0, 8, 3}});
  BOOST_TEST(plan.piece_lengths() == (numbers{8, 3}), boost::test_tools::per_element());
  const auto layout = make_layout(plan.piece_lengths(), no_padding{}, no_context_parallel{},
                                  {.order = plan.row(0)});
  BOOST_TEST(layout.total_tokens() == 3);
}

BOOST_AUTO_TEST_CASE(plans_that_differ_are_not_equal) {
  const row_plan plan(numbers{0, 1}, numbers{0, 1, 2}, {{0, 0, 8}, {0, 8, 3}});
  BOOST_TEST((plan == row_plan(numbers{0, 1}, numbers{0, 1, 2}, {{0, 0, 8}, {0, 8, 3}})));
  BOOST_TEST((plan != row_plan(numbers{1, 0}, numbers{0, 1, 2}, {{0, 0, 8}, {0, 8, 3}})));
  BOOST_TEST((plan != row_plan(numbers{0, 1}, numbers{0, 2}, {{0, 0, 8}, {0, 8, 3}})));
  BOOST_TEST((plan != row_plan(numbers{0, 1}, numbers{0, 1, 2}, {{0, 0, 8}, {0, 8, 2}})));
}

BOOST_AUTO_TEST_CASE(a_plan_that_was_moved_from_has_no_rows) {
  row_plan plan(numbers{0, 1}, numbers{0, 1, 2});
  const row_plan other = std::move(plan);
  BOOST_TEST(other.rows() == 2);
  BOOST_TEST(plan.rows() == 0);  // NOLINT(bugprone-use-after-move): what is looked at
}
