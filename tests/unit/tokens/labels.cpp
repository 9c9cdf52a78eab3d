// Next-token labels: the k-th next token of the same sequence, never another one's.
#define BOOST_TEST_MODULE labels
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "seqpack/tokens/per_token.hpp"
#include "support/buffers.hpp"
#include "support/layouts.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using oracle::numbers;

template <class Layout, class Place, class Tokens>
numbers labels_of(const Layout& layout, Place at, const Tokens& ids, label_options options) {
  poisoned_buffer<long long> out(layout.view().rows(at));
  per_token(host, layout, at, labels(ids, out.span(), options));
  BOOST_TEST(out.guards_intact());
  return out.values();
}

}  // namespace

BOOST_AUTO_TEST_CASE(random_layouts_and_shifts) {
  std::mt19937 random(21);
  for (int round = 0; round < 10; ++round) {
    const int batch = round % 6;
    const numbers lens = random_lengths(random, batch, 25);
    const numbers order = round % 2 == 0 ? numbers{} : random_order(random, batch);
    const numbers table = id_table(lens, 25);
    const batch_view ids(table.data(), batch, 25);
    for_each_layout(lens, order, [&](const auto& layout, const auto& expected, const auto&) {
      for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
        for (const oracle::number shift : {1, 2, 3, 7, 25}) {
          BOOST_TEST(labels_of(layout, at, ids, {.shift = shift, .ignore = -55}) ==
                         oracle::labels(tokens, expected, oracle::id, shift, -55),
                     per_element());
        }
      });
    });
  }
}

BOOST_AUTO_TEST_CASE(identical_for_every_context_parallel_size) {
  const numbers lens{13, 0, 24, 1, 7};
  const numbers table = id_table(lens, 24);
  const batch_view ids(table.data(), 5, 24);
  const padding<each_multiple_of<24>> pad;
  for (const offset_t shift : {1, 2, 5}) {
    const numbers whole = labels_of(make_layout(lens, pad), full_row, ids, {.shift = shift});
    for (const offset_t cp : {2, 3, 4, 6, 12}) {
      const auto layout = make_layout(lens, pad, context_parallel{cp});
      for (offset_t r = 0; r < cp; ++r) {
        std::vector<std::int64_t> rows(static_cast<std::size_t>(layout.shard_tokens()));
        per_token(host, layout, shard{r}, row_index(rows));
        const numbers part = labels_of(layout, shard{r}, ids, {.shift = shift});
        for (std::size_t k = 0; k < part.size(); ++k) {
          BOOST_TEST(part[k] == whole[static_cast<std::size_t>(rows[k])]);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(default_is_the_next_token_and_minus_100) {
  const numbers table{1, 2, 3, 4, 5, -1};
  const auto layout = make_layout(numbers{3, 2}, padding{each_multiple_of<4>{}});
  poisoned_buffer<std::int32_t> out(8);
  per_token(host, layout, full_row, labels(batch_view(table.data(), 2, 3), out.span()));
  BOOST_TEST(out.values() == (std::vector<std::int32_t>{2, 3, -100, -100, 5, -100, -100, -100}),
             per_element());
}

BOOST_AUTO_TEST_CASE(shift_far_beyond_any_length) {
  const numbers table{1, 2, 3};
  const auto layout = make_layout(numbers{3});
  const batch_view ids(table.data(), 1, 3);
  BOOST_TEST(labels_of(layout, full_row, ids, {.shift = 3}) == numbers(3, -100), per_element());
  BOOST_TEST(labels_of(layout, full_row, ids, {.shift = std::numeric_limits<offset_t>::max()}) ==
                 numbers(3, -100),
             per_element());
}

BOOST_AUTO_TEST_CASE(label_types_that_cannot_hold_the_ignored_one) {
  const std::vector<std::uint8_t> table{1, 2};
  const batch_view ids(table.data(), 1, 2);
  const auto layout = make_layout(numbers{2});
  poisoned_buffer<std::uint8_t> bytes(2);
  BOOST_CHECK_EXCEPTION(per_token(host, layout, full_row, labels(ids, bytes.span())), invalid_input,
                        refused("array 0's ignored label", "-100", "0 to 255"));
  poisoned_buffer<std::uint64_t> words(2);
  BOOST_CHECK_EXCEPTION(per_token(host, layout, full_row, labels(ids, words.span())), invalid_input,
                        refused("array 0's ignored label", "-100", "18446744073709551615"));
  poisoned_buffer<std::int8_t> small(2);
  BOOST_CHECK_EXCEPTION(
      per_token(host, layout, full_row, labels(ids, small.span(), {.ignore = -129})), invalid_input,
      refused("array 0's ignored label", "-129", "-128 to 127"));
  BOOST_TEST(bytes.untouched());
  BOOST_TEST(words.untouched());
  BOOST_TEST(small.untouched());

  // A type that can hold it, and an unsigned one with an ignored label that fits.
  per_token(host, layout, full_row, labels(ids, small.span()));
  BOOST_TEST(int{small[0]} == 2);
  BOOST_TEST(int{small[1]} == -100);
  per_token(host, layout, full_row, labels(ids, bytes.span(), {.ignore = 255}));
  BOOST_TEST(int{bytes[1]} == 255);
}

BOOST_AUTO_TEST_CASE(refused_options_and_tokens) {
  const auto layout = make_layout(numbers{2, 3});
  const numbers table(6, 5);
  poisoned_buffer<long long> out(5);
  const auto refuse = [&](const auto& ids, label_options options, const auto& predicate) {
    BOOST_CHECK_EXCEPTION(per_token(host, layout, full_row, labels(ids, out.span(), options)),
                          invalid_input, predicate);
    BOOST_TEST(out.untouched());
  };
  const batch_view ids(table.data(), 2, 3);
  refuse(ids, {.shift = 0}, refused("array 0's label shift", "0", "at least 1"));
  refuse(ids, {.shift = -1}, refused("array 0's label shift", "-1", "at least 1"));
  refuse(batch_view(table.data(), 1, 3), {}, refused("array 0's tokens rows", "1", "2"));
  refuse(batch_view(table.data(), 2, 2), {}, refused("array 0's tokens width", "2", "3"));
  refuse(batch_view(table.data(), 2, 3, 2), {}, refused("array 0's tokens payload", "2", "1"));
}

BOOST_AUTO_TEST_CASE(labels_of_left_padded_and_ragged_ids) {
  const numbers lens{2, 0, 4};
  const oracle::packed expected = oracle::pack({.lens = lens, .each = 4, .cp = 2});
  const auto layout = make_layout(lens, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const numbers left{-1, -1, -1, 100, 101, -1, -1, -1, -1, -1, -1, 300, 301, 302, 303};
  const std::vector<std::int32_t> starts{3, 5, 1};
  const numbers values{100, 101, 300, 301, 302, 303};
  const std::vector<std::int32_t> offsets{0, 2, 2, 6};
  for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
    const numbers wanted = oracle::labels(tokens, expected, oracle::id, 1, -100);
    BOOST_TEST(labels_of(layout, at, left_padded_view(batch_view(left.data(), 3, 5), starts.data()),
                         {}) == wanted,
               per_element());
    BOOST_TEST(
        labels_of(layout, at, ragged_view(row_view(values), offsets.data(), 3), {}) == wanted,
        per_element());
  });
}
