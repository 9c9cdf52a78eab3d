// unpack and unpack_own against the definitions.
#define BOOST_TEST_MODULE unpack
#include "seqpack/move/unpack.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "support/buffers.hpp"
#include "support/layouts.hpp"
#include "support/reference.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using oracle::numbers;

template <class Layout, class Place>
numbers unpacked(const Layout& layout, Place at, const numbers& rows, offset_t width,
                 long long fill = 0) {
  poisoned_buffer<long long> out(layout.batch_size() * width);
  unpack(host, layout, at, field(rows, batch_view(out.data(), layout.batch_size(), width), fill));
  BOOST_TEST(out.guards_intact());
  return out.values();
}

/// Ids at the real tokens; in padding a value that must never come out.
numbers held_by(const oracle::tokens& tokens) {
  return oracle::values(tokens, oracle::id, -1);
}

const double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

BOOST_AUTO_TEST_CASE(reference_rows_and_shards) {
  const auto cases = golden::pack_cases();
  BOOST_TEST(cases.size() == 80u);
  for (const golden::pack_case& c : cases) {
    BOOST_TEST_CONTEXT(c.name) {
      const numbers table = reference_table(c, 0);
      with_reference_layout(c, [&](const auto& layout) {
        BOOST_TEST(unpacked(layout, full_row, c.packed, c.width) == table, per_element());
        BOOST_TEST(unpacked(layout, all_shards, gathered_shards(c), c.width) == table,
                   per_element());
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(random_layouts_from_all_places) {
  std::mt19937 random(2);
  for (int round = 0; round < 20; ++round) {
    const int batch = round % 7;
    const numbers lens = random_lengths(random, batch, 30);
    const numbers order = round % 2 == 0 ? numbers{} : random_order(random, batch);
    for_each_layout(lens, order, [&](const auto& layout, const auto& expected, const auto&) {
      for_each_place(expected, [&](auto place, const oracle::tokens& tokens) {
        const numbers rows = held_by(tokens);
        BOOST_TEST(
            unpacked(layout, place, rows, 31, -7) == oracle::unpack(tokens, rows, batch, 31, -7),
            per_element());
      });
    });
  }
}

BOOST_AUTO_TEST_CASE(sum_over_the_shards_is_the_full_unpack) {
  std::mt19937 random(3);
  for (int round = 0; round < 6; ++round) {
    const numbers lens = random_lengths(random, 5, 30);
    for_each_layout(lens, {}, [&](const auto& layout, const auto& expected, const auto&) {
      numbers sum(5 * 30, 0);
      for (std::size_t r = 0; r < expected.shards.size(); ++r) {
        const numbers part =
            unpacked(layout, shard{static_cast<offset_t>(r)}, held_by(expected.shards[r]), 30);
        for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += part[k];
      }
      BOOST_TEST(sum == unpacked(layout, full_row, held_by(expected.row), 30), per_element());
    });
  }
}

BOOST_AUTO_TEST_CASE(own_tokens_alone) {
  std::mt19937 random(4);
  for (int round = 0; round < 8; ++round) {
    const numbers lens = random_lengths(random, 5, 30);
    const numbers order = round % 2 == 0 ? numbers{} : random_order(random, 5);
    for_each_layout(lens, order, [&](const auto& layout, const auto& expected, const auto&) {
      for (std::size_t r = 0; r < expected.shards.size(); ++r) {
        const numbers rows = held_by(expected.shards[r]);
        // The poison is the fill: what the oracle does not write must keep it.
        poisoned_buffer<long long> out(5 * 30);
        const long long poison = out[0];
        unpack_own(host, layout, shard{static_cast<offset_t>(r)},
                   field(rows, batch_view(out.data(), 5, 30), 12345));
        BOOST_TEST(out.values() == oracle::unpack(expected.shards[r], rows, 5, 30, poison),
                   per_element());
        BOOST_TEST(out.guards_intact());
      }
    });
  }
}

BOOST_AUTO_TEST_CASE(own_tokens_of_all_ranks_make_the_full_unpack) {
  const numbers lens{5, 0, 13, 8};
  const oracle::packed expected = oracle::pack({.lens = lens, .each = 8, .cp = 4});
  const auto layout = make_layout(lens, padding{each_multiple_of<8>{}}, context_parallel<4>{});
  numbers out(4 * 13, -3);
  for (std::size_t r = 0; r < 4; ++r) {
    const numbers rows = held_by(expected.shards[r]);
    unpack_own(host, layout, shard{static_cast<offset_t>(r)},
               field(rows, batch_view(out.data(), 4, 13)));
  }
  BOOST_TEST(out == oracle::unpack(expected.row, held_by(expected.row), 4, 13, -3), per_element());
}

BOOST_AUTO_TEST_CASE(rows_that_the_order_leaves_out_are_filled) {
  const std::vector<offset_t> order{2};
  const auto layout = make_layout(numbers{4, 4, 3}, padding{each_multiple_of<4>{}},
                                  context_parallel<2>{}, {.order = order});
  const numbers expected{9, 9, 9, 9, 9, 9, 9, 9, 300, 301, 302, 9};
  BOOST_TEST(unpacked(layout, full_row, {300, 301, 302, -1}, 4, 9) == expected, per_element());
  BOOST_TEST(unpacked(layout, all_shards, {300, -1, 301, 302}, 4, 9) == expected, per_element());
  BOOST_TEST(unpacked(layout, shard{0}, {300, -1}, 4, 9) ==
                 (numbers{9, 9, 9, 9, 9, 9, 9, 9, 300, 9, 9, 9}),
             per_element());
}

BOOST_AUTO_TEST_CASE(order_of_nothing_fills_everything) {
  const std::vector<offset_t> nothing;
  const auto layout = make_layout(numbers{4, 4}, padding{fixed_total<8>{}, ghost_tail{}},
                                  context_parallel<2>{}, {.order = nothing});
  BOOST_TEST(unpacked(layout, full_row, numbers(8, -1), 4, 9) == numbers(8, 9), per_element());
  BOOST_TEST(unpacked(layout, all_shards, numbers(8, -1), 4, 9) == numbers(8, 9), per_element());
  BOOST_TEST(unpacked(layout, shard{1}, numbers(4, -1), 4, 9) == numbers(8, 9), per_element());
}

BOOST_AUTO_TEST_CASE(several_tensors_with_their_own_fills) {
  const auto layout = make_layout(numbers{2, 1}, padding{each_multiple_of<2>{}});
  const std::vector<float> hidden{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<std::int16_t> ids{10, 11, 20, -1};
  poisoned_buffer<float> wide(2 * 3 * 2);
  poisoned_buffer<std::int16_t> narrow(2 * 2);
  unpack(host, layout, full_row,
         field(row_view(hidden.data(), 4, 2), batch_view(wide.data(), 2, 3, 2),
               [](offset_t column) { return static_cast<float>(column) - 0.5F; }),
         field(ids, batch_view(narrow.data(), 2, 2), std::int16_t{-9}));
  BOOST_TEST(wide.values() ==
                 (std::vector<float>{1, 2, 3, 4, -0.5F, 0.5F, 5, 6, -0.5F, 0.5F, -0.5F, 0.5F}),
             per_element());
  BOOST_TEST(narrow.values() == (std::vector<std::int16_t>{10, 11, 20, -9}), per_element());
  BOOST_TEST(wide.guards_intact());
  BOOST_TEST(narrow.guards_intact());
}

BOOST_AUTO_TEST_CASE(padded_rows_of_the_source_are_never_read) {
  const numbers lens{3, 1};
  const auto layout = make_layout(
      lens, padding{each_multiple_of<4>{}, fixed_total<16>{}, ghost_tail{}}, context_parallel<2>{});
  const oracle::packed expected = oracle::pack(
      {.lens = lens, .each = 4, .fixed_total = 16, .tail_to = oracle::tail::ghost, .cp = 2});
  for_each_place(expected, [&](auto place, const oracle::tokens& tokens) {
    std::vector<double> rows;
    std::vector<double> wanted(2 * 5, 0.0);
    for (const auto& token : tokens) {
      const double value = static_cast<double>(oracle::id(token.row, token.position));
      rows.push_back(token.real ? value : not_a_number);
      if (token.real) wanted[static_cast<std::size_t>(token.row * 5 + token.position)] = value;
    }
    poisoned_buffer<double> out(2 * 5);
    unpack(host, layout, place, field(rows, batch_view(out.data(), 2, 5)));
    BOOST_TEST(out.values() == wanted, per_element());
  });
}

BOOST_AUTO_TEST_CASE(no_sequences) {
  const auto layout = make_layout(numbers{}, padding{fixed_total<8>{}, ghost_tail{}});
  BOOST_TEST(unpacked(layout, full_row, numbers(8, -1), 4).empty());
}

BOOST_AUTO_TEST_CASE(width_zero) {
  const auto layout = make_layout(numbers{0, 0}, padding{fixed_total<8>{}});
  BOOST_TEST(unpacked(layout, full_row, numbers(8, -1), 0).empty());
}

BOOST_AUTO_TEST_CASE(refused_sizes) {
  const auto layout =
      make_layout(numbers{4, 2}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const numbers rows(8, 5);
  const row_view source(rows.data(), 8);
  poisoned_buffer<long long> out(8);
  const batch_view target(out.data(), 2, 4);
  const auto refuse = [&](auto at, const auto& f, const auto& predicate) {
    BOOST_CHECK_EXCEPTION(unpack(host, layout, at, f), invalid_input, predicate);
    BOOST_TEST(out.untouched());
  };
  refuse(shard{2}, field(row_view(rows.data(), 4), target), refused("rank", "2", "0 to 1"));
  refuse(full_row, field(row_view(rows.data(), 7), target),
         refused("field 0's source rows", "7", "8"));
  refuse(shard{1}, field(source, target), refused("field 0's source rows", "8", "4"));
  refuse(all_shards, field(row_view(rows.data(), 4), target),
         refused("field 0's source rows", "4", "8"));
  refuse(full_row, field(row_view(rows.data(), 8, 2), target),
         refused("field 0's target payload", "1", "2"));
  refuse(full_row, field(source, batch_view(out.data(), 1, 4)),
         refused("field 0's target rows", "1", "2"));
  refuse(full_row, field(source, batch_view(out.data(), 2, 3)),
         refused("field 0's target width", "3", "4"));
  refuse(full_row, field(row_view<const long long>(nullptr, 8), target),
         refused("field 0's source", "null", "8"));
  BOOST_CHECK_EXCEPTION(unpack_own(host, layout, shard{2}, field(row_view(rows.data(), 4), target)),
                        invalid_input, refused("rank", "2", "0 to 1"));
  BOOST_CHECK_EXCEPTION(unpack_own(host, layout, shard{0}, field(source, target)), invalid_input,
                        refused("field 0's source rows", "8", "4"));
  BOOST_TEST(out.untouched());
}

BOOST_AUTO_TEST_CASE(second_field_is_named_and_the_first_not_written) {
  const auto layout = make_layout(numbers{4, 2});
  const numbers rows(6, 5);
  poisoned_buffer<long long> first(8);
  poisoned_buffer<long long> second(6);
  BOOST_CHECK_EXCEPTION(unpack(host, layout, full_row, field(rows, batch_view(first.data(), 2, 4)),
                               field(rows, batch_view(second.data(), 2, 3))),
                        invalid_input, refused("field 1's target width", "3", "4"));
  BOOST_TEST(first.untouched());
  BOOST_TEST(second.untouched());
}
