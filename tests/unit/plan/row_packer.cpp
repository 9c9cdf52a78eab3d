#define BOOST_TEST_MODULE plan_row_packer
#include "seqpack/plan/row_packer.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "seqpack/plan/plan_rows.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refusal;

namespace {

using numbers = std::vector<offset_t>;
using row = std::vector<sequence_piece>;
using rows = std::vector<row>;
const no_context_parallel alone;

row_packer<> packer_of(offset_t capacity, const row_packer_options& options) {
  return row_packer<>(capacity, no_padding{}, alone, options);
}

template <class Packer>
void take_all(Packer& packer, rows& to) {
  while (auto next = packer.take()) to.push_back(std::move(*next));
}

/// All rows of a stream.
template <class Packer>
rows packed(Packer packer, const numbers& lengths) {
  rows result;
  for (const offset_t length : lengths) packer.push(length);
  packer.finish();
  take_all(packer, result);
  return result;
}

rows packed(const numbers& lengths, offset_t capacity, const row_packer_options& options) {
  return packed(packer_of(capacity, options), lengths);
}

numbers stream(unsigned seed, std::size_t count, offset_t longest) {
  std::mt19937 random(seed);
  numbers lengths(count);
  for (offset_t& n : lengths) {
    n = std::uniform_int_distribution<offset_t>(0, longest)(random);
    if (seed % 2 == 0) n = n * n / longest;
  }
  return lengths;
}

constexpr bool in_constant_expressions() {
  row_packer packer(10, no_padding{}, no_context_parallel{}, {.look_ahead = 2});
  for (const offset_t n : {7, 4, 3, 6}) packer.push(n);
  row_packer other(10, no_padding{}, no_context_parallel{}, {.look_ahead = 2});
  other.load(packer.save());
  packer.finish();
  other.finish();
  return packer.ready() == 2 && packer.save() == other.save();
}
static_assert(in_constant_expressions());

}  // namespace

BOOST_AUTO_TEST_CASE(the_oldest_goes_with_the_longest_that_fit) {
  row_packer packer = packer_of(10, {.look_ahead = 3});
  packer.push(4);
  packer.push(2);
  packer.push(5);
  BOOST_TEST(packer.held() == 3);
  BOOST_TEST(!packer.take().has_value());
  packer.push(6);  // the third after the first
  BOOST_TEST(packer.held() == 2);
  BOOST_TEST(packer.ready() == 1);
  BOOST_TEST((*packer.take() == row{{0, 0, 4}, {3, 0, 6}}));
  BOOST_TEST(!packer.take().has_value());
  packer.finish();
  BOOST_TEST((*packer.take() == row{{1, 0, 2}, {2, 0, 5}}));
  BOOST_TEST(packer.held() == 0);
  BOOST_TEST(packer.ready() == 0);
}

BOOST_AUTO_TEST_CASE(numbers_of_the_caller_come_back) {
  row_packer packer = packer_of(10, {});
  packer.push(700, 4);
  packer.push(3);  // numbered by what was pushed before
  packer.push(offset_t{1} << 60, 1);
  packer.finish();
  BOOST_TEST((*packer.take() == row{{700, 0, 4}, {1, 0, 3}, {offset_t{1} << 60, 0, 1}}));
}

BOOST_AUTO_TEST_CASE(nothing_is_lost_and_nothing_waits_longer_than_the_look_ahead) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const offset_t look_ahead = seed % 5 == 0 ? 0 : 1 + seed % 17;
    const offset_t tokens = seed % 4 == 3 ? 90 : max_tokens;
    const offset_t most = seed % 3 == 2 ? 3 : max_tokens;
    const numbers lengths = stream(seed, 400, 50);
    row_packer packer = packer_of(
        60, {.look_ahead = look_ahead, .look_ahead_tokens = tokens, .most_sequences = most});
    std::vector<int> seen(lengths.size());
    rows all;
    offset_t oldest = 0;  // that is in no row
    for (std::size_t k = 0; k < lengths.size(); ++k) {
      packer.push(lengths[k]);
      for (std::size_t before = all.size(); take_all(packer, all), before < all.size(); ++before) {
        for (const sequence_piece& p : all[before]) ++seen[static_cast<std::size_t>(p.sequence)];
      }
      while (oldest <= static_cast<offset_t>(k) && seen[static_cast<std::size_t>(oldest)] > 0) {
        ++oldest;
      }
      BOOST_REQUIRE(packer.held() <= look_ahead);
      BOOST_REQUIRE(static_cast<offset_t>(k) - oldest < look_ahead);
      offset_t after = 0;
      for (std::size_t j = static_cast<std::size_t>(oldest) + 1; j <= k; ++j) after += lengths[j];
      BOOST_REQUIRE((oldest > static_cast<offset_t>(k) || after < tokens));
    }
    packer.finish();
    const std::size_t before = all.size();
    take_all(packer, all);
    for (std::size_t r = before; r < all.size(); ++r) {
      for (const sequence_piece& p : all[r]) ++seen[static_cast<std::size_t>(p.sequence)];
    }
    for (const int times : seen) BOOST_REQUIRE(times == 1);
    for (const row& r : all) {
      offset_t sum = 0;
      for (const sequence_piece& p : r) {
        BOOST_REQUIRE(p.first == 0);
        BOOST_REQUIRE(p.length == lengths[static_cast<std::size_t>(p.sequence)]);
        sum += p.length;
      }
      BOOST_REQUIRE(!r.empty());
      BOOST_REQUIRE(sum <= 60);
      BOOST_REQUIRE(static_cast<offset_t>(r.size()) <= most);
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_do_not_depend_on_when_they_are_taken) {
  const numbers lengths = stream(3, 300, 40);
  row_packer eager = packer_of(50, {.look_ahead = 20});
  rows taken;
  for (const offset_t length : lengths) {
    eager.push(length);
    take_all(eager, taken);
  }
  eager.finish();
  take_all(eager, taken);
  BOOST_TEST((taken == packed(lengths, 50, {.look_ahead = 20})));
}

BOOST_AUTO_TEST_CASE(a_long_look_ahead_fills_rows_as_a_plan_does) {
  const numbers lengths = stream(1, 5000, 900);
  const auto plan = static_cast<std::size_t>(plan_rows(lengths, 1000).rows());
  const std::size_t few = packed(lengths, 1000, {.look_ahead = 256}).size();
  BOOST_TEST(few >= plan);
  BOOST_TEST(few * 100 <= plan * 103);
  BOOST_TEST(packed(lengths, 1000, {.look_ahead = 0}).size() == lengths.size());
}

BOOST_AUTO_TEST_CASE(rows_are_padded_as_layouts_are) {
  const auto padding = seqpack::padding{each_multiple_of<8>{}, total_multiple_of<16>{}};
  const context_parallel<2> cp;
  const numbers lengths = stream(5, 300, 60);
  for (const row& r : packed(row_packer(100, padding, cp, {.look_ahead = 16}), lengths)) {
    const auto layout = make_layout(piece_lengths(r), padding, cp);
    BOOST_TEST(layout.total_tokens() <= 100);
  }
  const auto fixed = seqpack::padding{each_multiple_of<8>{}, fixed_total<96>{}, ghost_tail{}};
  for (const row& r : packed(row_packer(dynamic, fixed, cp, {.look_ahead = 16}), lengths)) {
    BOOST_TEST(make_layout(piece_lengths(r), fixed, cp).total_tokens() == 96);
  }
}

BOOST_AUTO_TEST_CASE(sequences_that_are_too_long) {
  row_packer refusing = packer_of(10, {.look_ahead = 1});
  refusing.push(4);
  BOOST_TEST(
      refusal([&] { refusing.push(11); }) ==
      "padded length of lengths[1] is 11: it must be at most 10, what a row of capacity 10 has "
      "room for");
  BOOST_TEST(refusing.held() == 1);
  refusing.push(5);  // is sequence 1
  refusing.finish();
  BOOST_TEST((*refusing.take() == row{{0, 0, 4}, {1, 0, 5}}));

  BOOST_TEST((packed({4, 25, 6}, 10, {.look_ahead = 9, .too_long = too_long::truncate}) ==
              rows{{{0, 0, 4}, {2, 0, 6}}, {{1, 0, 10}}}));
  BOOST_TEST((packed({4, 25, 6}, 10, {.look_ahead = 9, .too_long = too_long::split}) ==
              rows{{{0, 0, 4}, {2, 0, 6}}, {{1, 0, 10}}, {{1, 10, 10}}, {{1, 20, 5}}}));
  // Each piece counts.
  BOOST_TEST((packed({4, 25, 6}, 10, {.look_ahead = 1, .too_long = too_long::split}) ==
              rows{{{0, 0, 4}}, {{1, 0, 10}}, {{1, 10, 10}}, {{1, 20, 5}}, {{2, 0, 6}}}));
}

BOOST_AUTO_TEST_CASE(what_is_refused_leaves_the_packer_as_it_was) {
  row_packer packer(16, no_padding{}, context_parallel<2>{}, {.look_ahead = 3});
  packer.push(4);
  const numbers state = packer.save();
  BOOST_TEST(refusal([&] { packer.push(-1); }) == "lengths[1] is -1: a length must be at least 0");
  BOOST_TEST(
      refusal([&] { packer.push(offset_t{1} << 62); }) ==
      "lengths[1] is 4611686018427387904: it must be at most 281474976710656, the range of the "
      "type of cu_seqlens");
  BOOST_TEST(
      refusal([&] { packer.push(5); }) ==
      "padded length of lengths[1] is 5: it must be a multiple of 4, what the sharding divides "
      "by");
  BOOST_TEST(
      refusal([&] { packer.push(77, 18); }) ==
      "padded length of lengths[77] is 18: it must be at most 16, what a row of capacity 16 has "
      "room for");
  BOOST_TEST(refusal([&] { packer.push(-7, 4); }) ==
             "number of a sequence is -7: it must be at least 0");
  BOOST_TEST(packer.save() == state, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(arguments_are_checked) {
  BOOST_TEST(refusal([] { packer_of(0, {}); }) ==
             "capacity is 0: it must be from 1 to 281474976710656");
  BOOST_TEST(refusal([] { packer_of(8, {.look_ahead = -1}); }) ==
             "look_ahead is -1: it must be from 0 to 281474976710656");
  BOOST_TEST(refusal([] { packer_of(8, {.look_ahead_tokens = -1}); }) ==
             "look_ahead_tokens is -1: it must be from 0 to 281474976710656");
  BOOST_TEST(refusal([] { packer_of(8, {.most_sequences = 0}); }) ==
             "most_sequences is 0: it must be at least 1");
  BOOST_TEST(refusal([] {
               row_packer(64, padding{each_multiple_of<8>{}, total_multiple_of<12>{}},
                          context_parallel<4>{});
             }) ==
             "total_multiple_of is 12: it must be a multiple of 8, what the sharding divides by, "
             "or divide it");
  // Every row of the stream must be one that the ranks can share, whatever comes.
  const std::string shared = "it must be a multiple of 4, what the sharding divides a row by";
  BOOST_TEST(refusal([] { row_packer(64, no_padding{}, context_parallel<4, row_contiguous>{}); }) ==
             "total_multiple_of is 1: " + shared);
  BOOST_TEST(refusal([] {
               row_packer(64, padding{each_multiple_of<4>{}, total_multiple_of<6>{}},
                          context_parallel<4, row_contiguous>{});
             }) == "total_multiple_of is 6: " + shared);
  BOOST_TEST(
      refusal([] {
        row_packer(64, padding{each_multiple_of<8>{}}, context_parallel<4, row_contiguous>{});
        row_packer(64, padding{total_multiple_of<8>{}}, context_parallel<4, row_contiguous>{});
        row_packer(64, padding{fixed_total<64>{}}, context_parallel<4, row_contiguous>{});
      }) == "accepted");
}

BOOST_AUTO_TEST_CASE(a_saved_state_goes_on_with_the_same_rows) {
  for (const too_long option : {too_long::truncate, too_long::split}) {
    const numbers lengths = stream(7, 200, 90);
    const row_packer_options options{
        .look_ahead = 12, .look_ahead_tokens = 200, .most_sequences = 4, .too_long = option};
    const rows wanted = packed(lengths, 60, options);
    for (std::size_t stop = 0; stop <= lengths.size(); stop += 13) {
      row_packer first = packer_of(60, options);
      rows all;
      for (std::size_t k = 0; k < stop; ++k) first.push(lengths[k]);
      if (stop % 2 == 0) take_all(first, all);  // else the state has rows that were not taken
      row_packer second = packer_of(60, options);
      second.push(1);  // replaced
      second.load(first.save());
      BOOST_TEST(second.save() == first.save(), boost::test_tools::per_element());
      for (std::size_t k = stop; k < lengths.size(); ++k) second.push(lengths[k]);
      second.finish();
      take_all(second, all);
      BOOST_REQUIRE((all == wanted));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_state_that_was_changed_is_refused) {
  row_packer packer = packer_of(10, {.look_ahead = 3});
  for (const offset_t n : {4, 7, 3, 9, 2}) packer.push(n);
  const numbers state = packer.save();
  row_packer other = packer_of(10, {.look_ahead = 3});
  other.push(5);
  const numbers before = other.save();
  for (std::size_t k = 0; k < state.size(); ++k) {
    for (const offset_t change : {offset_t{1}, offset_t{-1}, offset_t{1} << 40}) {
      numbers changed = state;
      changed[k] ^= change;
      BOOST_REQUIRE(refusal([&] { other.load(changed); }) != "accepted");
    }
  }
  for (std::size_t size = 0; size < state.size(); ++size) {
    BOOST_REQUIRE(refusal([&] { other.load(std::span(state).first(size)); }) != "accepted");
  }
  numbers longer = state;
  longer.push_back(0);
  BOOST_TEST(refusal([&] { other.load(longer); }) != "accepted");
  BOOST_TEST(other.save() == before, boost::test_tools::per_element());
  other.load(state);
  BOOST_TEST(other.save() == state, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(errors_of_states_name_what_is_wrong) {
  row_packer packer = packer_of(10, {.look_ahead = 3});
  packer.push(4);
  numbers state = packer.save();
  const auto refused = [&](const numbers& changed) {
    return refusal([&] { packer.load(changed); });
  };
  BOOST_TEST(refused({}) == "size of the state is 0: it must be at least 3: it is cut off");
  numbers marked = state;
  marked[0] = 5;
  BOOST_TEST(refused(marked).starts_with("state[0] is 5: it must be "));
  numbers newer = state;
  newer[1] = 2;
  BOOST_TEST(refused(newer) == "state[1] is 2: it must be 1, the version");
  numbers cut = state;
  cut.pop_back();
  BOOST_TEST(
      refused(cut).find("it must be the hash of the others: the state is cut off or was changed") !=
      std::string::npos);

  const auto of_other = [&](const auto& other) { return refused(other.save()); };
  BOOST_TEST(of_other(packer_of(11, {.look_ahead = 3})) ==
             "capacity of the state is 11: it must be 10, that of the packer");
  BOOST_TEST(of_other(packer_of(10, {.look_ahead = 4})) ==
             "look_ahead of the state is 4: it must be 3, that of the packer");
  BOOST_TEST(of_other(packer_of(10, {.look_ahead = 3, .most_sequences = 9})) ==
             "most_sequences of the state is 9: it must be 281474976710656, that of the packer");
  BOOST_TEST(of_other(packer_of(10, {.look_ahead = 3, .too_long = too_long::split})) ==
             "too_long of the state is 2: it must be 0, that of the packer");
  BOOST_TEST(of_other(row_packer(10, padding{each_multiple_of<2>{}}, alone, {.look_ahead = 3})) ==
             "each_multiple_of of the state is 2: it must be 1, that of the packer");
  BOOST_TEST(of_other(row_packer(10, no_padding{}, context_parallel<2>{}, {.look_ahead = 3})) ==
             "divisor of the sharding of the state is 4: it must be 1, that of the packer");
}

BOOST_AUTO_TEST_CASE(a_forged_state_is_looked_at_too) {
  // Numbers of a good hash that no packer would write.
  row_packer packer = packer_of(10, {.look_ahead = 3});
  packer.push(4);
  packer.push(7);
  const numbers state = packer.save();
  constexpr std::size_t first = 2 + 12 + 2;  // mark and version, settings, next number and count
  const auto forged = [&](std::size_t k, offset_t value) {
    numbers changed = state;
    changed[k] = value;
    changed.back() = detail::hash_of(std::span(changed).first(changed.size() - 1));
    return refusal([&] { packer.load(changed); });
  };
  BOOST_TEST(forged(first, state[first]) == "accepted");
  BOOST_TEST(
      forged(first, -1).starts_with("number of a sequence of the state is -1: it must be from 0"));
  BOOST_TEST(
      forged(first + 1, -1).starts_with("first token of the state is -1: it must be from 0"));
  BOOST_TEST(forged(first + 2, 11) == "length of the state is 11: it must be from 0 to 10");
  BOOST_TEST(forged(first + 3, 0) ==
             "age of a held sequence of the state is 0: it must be from -3 to -1");
  BOOST_TEST(forged(first + 8, -2) ==
             "age of a held sequence of the state is -2: it must be from -1 to -1");
  BOOST_TEST(forged(first + 4, 5).starts_with("tokens after a held sequence of the state is 5: "));
  BOOST_TEST(
      forged(first - 1, 1000).starts_with("number of held sequences of the state is 1000: "));
  BOOST_TEST(forged(first - 1, 1) != "accepted");
  BOOST_TEST(forged(first - 2, -1).starts_with("next number of the state is -1: "));
}

BOOST_AUTO_TEST_CASE(rows_are_taken_in_the_order_in_which_they_were_made) {
  row_packer packer = packer_of(10, {.look_ahead = 0});
  offset_t pushed = 0;
  offset_t taken = 0;
  for (int i = 0; i < 300; ++i) {
    for (int k = i % 4; k >= 0; --k) packer.push(1 + pushed++ % 10);
    for (int k = i % 3; k > 0; --k) {
      const auto next = packer.take();
      if (next) BOOST_REQUIRE((*next == row{{taken, 0, 1 + taken % 10}}));
      taken += next.has_value();
    }
    BOOST_REQUIRE(packer.ready() == pushed - taken);
  }
}

BOOST_AUTO_TEST_CASE(a_new_stream_may_begin) {
  row_packer packer = packer_of(10, {});
  packer.push(4);
  packer.finish();
  packer.push(5);
  packer.finish();
  rows all;
  take_all(packer, all);
  BOOST_TEST((all == rows{{{0, 0, 4}}, {{1, 0, 5}}}));
}
