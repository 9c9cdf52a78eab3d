#define BOOST_TEST_MODULE plan_plan_rows
#include "seqpack/plan/plan_rows.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "seqpack/plan/require_plan.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refusal;

namespace {

using rows = std::vector<std::vector<offset_t>>;
using numbers = std::vector<offset_t>;
const no_context_parallel alone;

constexpr rows rows_of(const row_plan& plan) {
  rows result;
  for (offset_t k = 0; k < plan.rows(); ++k) {
    result.emplace_back(plan.row(k).begin(), plan.row(k).end());
  }
  return result;
}

rows planned(const numbers& lengths, offset_t capacity, const plan_options& options = {},
             const any_padding& padding = {}) {
  return rows_of(plan_rows(lengths, capacity, padding, alone, options));
}

template <class P = no_padding, class C = no_context_parallel>
std::string refused(const numbers& lengths, offset_t capacity, const plan_options& options = {},
                    const P& padding = {}, const C& cp = {}) {
  return refusal([&] { plan_rows(lengths, capacity, padding, cp, options); });
}

struct powers_of_two {
  static constexpr offset_t static_each = 1;
  static constexpr offset_t static_total_multiple = 1;
  static constexpr offset_t static_fixed_total = 0;
  static constexpr bool has_total = false;
  static constexpr bool has_fixed_total = false;
  static constexpr tail tail_goes_to = tail::absorb;
  constexpr offset_t padded_length(offset_t n) const {
    offset_t power = n > 0;
    while (power < n) power *= 2;
    return power;
  }
  constexpr offset_t each() const { return 1; }
  constexpr offset_t total_multiple() const { return 1; }
  constexpr offset_t fixed_total() const { return 0; }
};

constexpr bool in_constant_expressions() {
  const int lengths[] = {44, 33, 29, 27, 24, 16, 13, 6, 6};
  const auto count = [&](const plan_options& options, offset_t capacity = 100) {
    return plan_rows(lengths, capacity, padding{each_multiple_of<2>{}}, no_context_parallel{},
                     options)
        .rows();
  };
  return count({}) == 3 && count({.method = plan_method::in_order}) == 3 &&
         count({.method = plan_method::balanced, .rows = 4}) == 4 &&
         count({.too_long = too_long::split}, 20) >= 10 &&
         count({.too_long = too_long::truncate}, 20) >= 7 && count({.tuple = 3}, 200) == 2;
}
static_assert(in_constant_expressions());

}  // namespace

BOOST_AUTO_TEST_CASE(first_fit_wins_where_it_takes_fewer_rows) {
  // Best fit alone: 44 33 16 6, 29 27 24 13 6 and then nothing; by hand it takes 3 rows.
  const numbers lengths{44, 33, 29, 27, 24, 16, 13, 6, 6};
  BOOST_TEST((planned(lengths, 100) == rows{{0, 1, 5, 7}, {2, 3, 4, 6, 8}}));
}

BOOST_AUTO_TEST_CASE(best_fit_wins_a_tie) {
  // 6 leaves 4 and 7 leaves 3: best fit puts 3 to the 7, first fit to the 6.
  BOOST_TEST((planned({6, 7, 3}, 10) == rows{{1, 2}, {0}}));
  BOOST_TEST((planned({6, 6, 3, 4, 1}, 10) == rows{{0, 2, 4}, {1, 3}}));
}

BOOST_AUTO_TEST_CASE(of_equal_sequences_the_lower_number_comes_first) {
  BOOST_TEST((planned({5, 5, 5, 5}, 10) == rows{{0, 1}, {2, 3}}));
  BOOST_TEST((planned({1, 5, 1, 5}, 6) == rows{{1, 2}, {3, 0}}));
}

BOOST_AUTO_TEST_CASE(in_order_a_row_holds_neighbours) {
  const plan_options in_order{.method = plan_method::in_order};
  BOOST_TEST((planned({4, 7, 3, 1, 9, 2}, 10, in_order) == rows{{0}, {1, 2}, {3, 4}, {5}}));
  BOOST_TEST((planned({0, 10, 0, 0, 1}, 10, in_order) == rows{{0, 1, 2, 3}, {4}}));
}

BOOST_AUTO_TEST_CASE(balanced_rows_cost_about_the_same) {
  const plan_options two{.method = plan_method::balanced, .rows = 2};
  // Differencing alone ends with 16 and 14.
  BOOST_TEST((planned({8, 7, 6, 5, 4}, 15, two) == rows{{0, 1}, {2, 3, 4}}));
  BOOST_TEST((planned({8, 7, 6, 5, 4}, max_tokens, two) == rows{{0, 1}, {2, 3, 4}}));
}

BOOST_AUTO_TEST_CASE(balanced_rows_are_in_the_order_of_their_sequences) {
  const plan_options three{.method = plan_method::balanced, .rows = 3};
  BOOST_TEST((planned({1, 9, 1, 9, 1, 7}, 10, three) == rows{{0, 2, 5}, {1, 4}, {3}}));
  BOOST_TEST((planned({3}, 10, three) == rows{{0}, {}, {}}));
  BOOST_TEST((planned({}, 10, three) == rows{{}, {}, {}}));
}

BOOST_AUTO_TEST_CASE(the_cost_is_what_is_balanced) {
  // By tokens 8 | 4 4; by n^2 the 8 costs 64, and one of 4 costs 16.
  const numbers lengths{8, 4, 4, 4, 4};
  const auto largest = [&](const sequence_cost& cost, offset_t capacity) {
    offset_t most = 0;
    for (const auto& row :
         planned(lengths, capacity, {.method = plan_method::balanced, .rows = 2, .cost = cost})) {
      offset_t sum = 0;
      for (const offset_t s : row) sum += cost(lengths[static_cast<std::size_t>(s)]);
      most = max_of(most, sum);
    }
    return most;
  };
  BOOST_TEST(largest({}, 100) == 12);
  BOOST_TEST(largest({0, 1}, 100) == 64);
  BOOST_TEST(largest({0, 1}, 12) == 64 + 16);  // the capacity comes before the balance
}

BOOST_AUTO_TEST_CASE(balanced_takes_as_many_rows_as_decreasing_unless_told) {
  BOOST_TEST(planned({9, 9, 9, 1, 1, 1}, 10, {.method = plan_method::balanced}).size() == 3u);
  BOOST_TEST(planned({}, 10, {.method = plan_method::balanced}).empty());
  BOOST_TEST(refused({9, 9, 9}, 10, {.method = plan_method::balanced, .rows = 2}) ==
             "rows is 2: it must be at least 3, the rows that plan_method::decreasing takes");
}

BOOST_AUTO_TEST_CASE(no_sequences_need_no_rows) {
  BOOST_TEST(planned({}, 10).empty());
  BOOST_TEST(planned({}, 10, {.method = plan_method::in_order}).empty());
  BOOST_TEST(planned({}, 10, {.too_long = too_long::split}).empty());
}

BOOST_AUTO_TEST_CASE(empty_sequences_take_no_tokens) {
  BOOST_TEST((planned({0, 10, 0}, 10) == rows{{1, 0, 2}}));
  BOOST_TEST((planned({0, 0}, 10) == rows{{0, 1}}));
  BOOST_TEST((planned({0, 10, 0}, 10, {.most_sequences = 2}) == rows{{1, 0}, {2}}));
}

BOOST_AUTO_TEST_CASE(a_sequence_may_fill_a_row) {
  BOOST_TEST((planned({10, 10, 1}, 10) == rows{{0}, {1}, {2}}));
  BOOST_TEST(
      refused({10, 11}, 10) ==
      "padded length of lengths[1] is 11: it must be at most 10, what a row of capacity 10 has "
      "room for");
}

BOOST_AUTO_TEST_CASE(lengths_are_padded_as_the_layout_pads_them) {
  const any_padding sixteen = padding{each_multiple_of<16>{}};
  BOOST_TEST((planned({1, 1, 1}, 32, {}, sixteen) == rows{{0, 1}, {2}}));
  BOOST_TEST(
      refused({33}, 40, {}, padding{each_multiple_of<16>{}}) ==
      "padded length of lengths[0] is 48: it must be at most 40, what a row of capacity 40 has "
      "room for");
}

BOOST_AUTO_TEST_CASE(a_total_multiple_counts) {
  // 90 and 9 are 99, which would become 112.
  const any_padding whole = padding{total_multiple_of<16>{}};
  BOOST_TEST((planned({90, 9}, 100, {}, whole) == rows{{0}, {1}}));
  BOOST_TEST((planned({90, 6}, 100, {}, whole) == rows{{0, 1}}));
  BOOST_TEST(
      refused({97}, 100, {}, padding{total_multiple_of<16>{}}) ==
      "padded length of lengths[0] is 97: it must be at most 96, what a row of capacity 100 has "
      "room for");
  BOOST_TEST(refused({1}, 8, {}, padding{total_multiple_of<16>{}}) ==
             "capacity is 8: it must be at least 16, the multiple of a row");
}

BOOST_AUTO_TEST_CASE(a_fixed_total_is_a_capacity) {
  const any_padding fixed = padding{fixed_total<10>{}};
  BOOST_TEST((planned({6, 7, 3}, dynamic, {}, fixed) == rows{{1, 2}, {0}}));
  BOOST_TEST((planned({6, 7, 3}, 50, {}, fixed) == rows{{1, 2}, {0}}));  // never above the total
  BOOST_TEST((planned({6, 7, 3}, 9, {}, fixed) == rows{{1}, {0, 2}}));   // and may be below
  BOOST_TEST(refused({1}, dynamic) ==
             "capacity is dynamic: it must be given where the padding has no fixed_total");
}

BOOST_AUTO_TEST_CASE(the_number_of_sequences_is_limited) {
  BOOST_TEST((planned({1, 1, 1, 1, 1}, 10, {.most_sequences = 2}) == rows{{0, 1}, {2, 3}, {4}}));
  BOOST_TEST((planned({1, 1, 1}, 10, {.method = plan_method::in_order, .most_sequences = 2}) ==
              rows{{0, 1}, {2}}));
  BOOST_TEST((planned({5, 1, 1, 1}, 10,
                      {.method = plan_method::balanced, .rows = 2, .most_sequences = 2}) ==
              rows{{0, 3}, {1, 2}}));
  BOOST_TEST(refused({1}, 10, {.most_sequences = 0}) ==
             "most_sequences is 0: it must be at least 1");
}

BOOST_AUTO_TEST_CASE(tuples_stay_together) {
  BOOST_TEST((planned({1, 2, 6, 3, 4, 4}, 11, {.tuple = 2}) == rows{{2, 3}, {4, 5, 0, 1}}));
  BOOST_TEST((planned({1, 2, 6, 3, 4, 4}, 100, {.most_sequences = 5, .tuple = 2}) ==
              rows{{2, 3, 4, 5}, {0, 1}}));
  BOOST_TEST(
      (planned({1, 2, 6, 3, 4, 4}, 100, {.method = plan_method::balanced, .rows = 2, .tuple = 2}) ==
       rows{{0, 1, 4, 5}, {2, 3}}));
  BOOST_TEST(refused({1, 2, 3}, 10, {.tuple = 2}) ==
             "number of sequences is 3: it must be a multiple of 2, the sequences of a tuple");
  BOOST_TEST(
      refused({1, 2, 6, 5}, 10, {.tuple = 2}) ==
      "padded lengths of lengths[2] to lengths[3], a tuple, is 11: it must be at most 10, what "
      "a row of capacity 10 has room for");
  BOOST_TEST(refused({1, 2}, 10, {.most_sequences = 1, .tuple = 2}) ==
             "most_sequences is 1: it must be at least 2, the sequences of a tuple");
  BOOST_TEST(refused({1, 2}, 10, {.tuple = 0}) ==
             "tuple is 0: it must be from 1 to 281474976710656");
}

BOOST_AUTO_TEST_CASE(options_that_say_nothing_are_refused) {
  BOOST_TEST(refused({1}, 10, {.rows = 2}) ==
             "rows is 2: only plan_method::balanced makes a given number of rows");
  BOOST_TEST(refused({1}, 10, {.method = plan_method::balanced, .rows = 0}) ==
             "rows is 0: it must be from 1 to 2147483645");
  BOOST_TEST(refused({1, 2}, 10, {.tuple = 2, .too_long = too_long::split}) ==
             "tuple is 2: it must be 1 with too_long::split, which takes a sequence apart");
}

BOOST_AUTO_TEST_CASE(any_range_of_integers_has_lengths) {
  const rows wanted{{1, 2}, {0}};
  BOOST_TEST((rows_of(plan_rows(std::array<std::int8_t, 3>{6, 7, 3}, 10)) == wanted));
  BOOST_TEST((rows_of(plan_rows(std::list<unsigned short>{6, 7, 3}, 10)) == wanted));
  BOOST_TEST((rows_of(plan_rows(std::vector<std::uint64_t>{6, 7, 3}, 10)) == wanted));
}

BOOST_AUTO_TEST_CASE(hostile_numbers_are_refused) {
  constexpr offset_t huge = offset_t{1} << 62;
  BOOST_TEST(refused({1, -1}, 10) == "lengths[1] is -1: a length must be at least 0");
  BOOST_TEST(refused({-huge}, 10) ==
             "lengths[0] is -4611686018427387904: a length must be at least 0");
  BOOST_TEST(
      refused({huge}, 10) ==
      "lengths[0] is 4611686018427387904: it must be at most 281474976710656, the range of the "
      "type of cu_seqlens");
  BOOST_TEST(
      refusal([] { plan_rows(std::array{~std::uint64_t{0}}, 10); }) ==
      "lengths[0] is 18446744073709551615: it must be at most 281474976710656, the range of the "
      "type of cu_seqlens");
  for (const offset_t capacity : {offset_t{0}, offset_t{-2}, huge}) {
    BOOST_TEST(refused({1}, capacity) == "capacity is " + std::to_string(capacity) +
                                             ": it must be from 1 to 281474976710656");
  }
  BOOST_TEST((planned({1, 0, 1}, 1) == rows{{0}, {2, 1}}));
}

BOOST_AUTO_TEST_CASE(sums_of_the_largest_lengths_do_not_wrap) {
  const numbers lengths(70'000, max_tokens);  // 2^64 tokens and more
  BOOST_TEST(plan_rows(lengths, max_tokens).rows() == 70'000);
  BOOST_TEST(
      refused(lengths, max_tokens, {.method = plan_method::balanced}) ==
      "sum of the costs is 2306124484190404608: it must be at most 2305843009213693952; smaller "
      "weights help");
  // All would share a row if only costs counted.
  const sequence_cost one = [](offset_t) { return offset_t{1}; };
  BOOST_TEST(plan_rows(lengths, max_tokens, no_padding{}, alone,
                       {.method = plan_method::balanced, .cost = one})
                 .rows() == 70'000);
  const any_padding large = padding{each_multiple_of<>{max_tokens}};
  BOOST_TEST(
      refusal([&] { plan_rows(std::array{1, 1}, max_tokens, large, alone, {.tuple = 2}); }) ==
      "padded lengths of lengths[0] to lengths[1], a tuple, is 562949953421312: it must be "
      "at most 281474976710656, what a row of capacity 281474976710656 has room for");
}

BOOST_AUTO_TEST_CASE(costs_are_whole_and_not_negative) {
  const plan_options balanced{
      .method = plan_method::balanced, .rows = 2, .cost = [](offset_t n) { return 3 - n; }};
  BOOST_TEST(refused({1, 4}, 10, balanced) ==
             "cost of lengths[1] is -1: it must be from 0 to 2305843009213693952");
  BOOST_TEST(
      refused({1, 4}, 10, {.method = plan_method::balanced, .rows = 2, .cost = {0, max_tokens}}) ==
      "accepted");
  BOOST_TEST(refused({1 << 20}, 1 << 20,
                     {.method = plan_method::balanced, .rows = 2, .cost = {0, max_tokens}}) ==
             "cost of lengths[0] is 9223372036854775807: it must be from 0 to 2305843009213693952");
}

BOOST_AUTO_TEST_CASE(policies_are_checked_as_make_layout_checks_them) {
  BOOST_TEST(refused({8}, 16, {}, padding{each_multiple_of<>{12}}, context_parallel<4>{}) ==
             "each_multiple_of is 12: it must be a multiple of 8, what the sharding divides by");
  BOOST_TEST(
      refused({8, 12}, 16, {}, no_padding{}, context_parallel<4>{}) ==
      "padded length of lengths[1] is 12: it must be a multiple of 8, what the sharding divides "
      "by");
  // The tail makes up for the last sequence of a row.
  BOOST_TEST(refused({8, 12}, 24, {}, padding{total_multiple_of<8>{}}, context_parallel<4>{}) !=
             "accepted");
  BOOST_TEST(refused({12, 8}, 24, {.method = plan_method::in_order},
                     padding{total_multiple_of<8>{}}, context_parallel<4>{}) != "accepted");
  BOOST_TEST(refused({8, 12}, 24, {.method = plan_method::in_order},
                     padding{total_multiple_of<8>{}}, context_parallel<4>{}) == "accepted");
  BOOST_TEST(
      refused({8}, 24, {}, padding{each_multiple_of<8>{}, total_multiple_of<12>{}, ghost_tail{}},
              context_parallel<4>{}) ==
      "padded length of the ghost sequence of row 0 is 4: it must be a multiple of 8, what the "
      "sharding divides by");
}

BOOST_AUTO_TEST_CASE(a_row_without_sequences_absorbs_no_tail) {
  const plan_options two{.method = plan_method::balanced, .rows = 2};
  BOOST_TEST(
      refused({3}, dynamic, two, padding{fixed_total<8>{}}) ==
      "number of sequences of row 1 is 0: it must be at least 1, so that one can absorb the tail "
      "of 8 tokens (or use ghost_tail)");
  BOOST_TEST(refused({3}, dynamic, two, padding{fixed_total<8>{}, ghost_tail{}}) == "accepted");
}

BOOST_AUTO_TEST_CASE(a_user_defined_padding_is_asked) {
  BOOST_TEST((rows_of(plan_rows(std::array{5, 3, 4}, 12, powers_of_two{})) == rows{{0, 1}, {2}}));
  const row_plan cut =
      plan_rows(std::array{20, 3}, 12, powers_of_two{}, alone, {.too_long = too_long::truncate});
  BOOST_TEST((cut.pieces()[0] == sequence_piece{0, 0, 8}));
}
