// rearrange against the definitions.
#define BOOST_TEST_MODULE rearrange
#include "seqpack/move/rearrange.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "support/as_device.hpp"
#include "support/buffers.hpp"
#include "support/elements.hpp"
#include "support/layouts.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using oracle::number;
using oracle::numbers;

/// Every token of the row has a value of its own, padding included.
number value_of(const oracle::token& token) {
  return 1000 * (token.slot + 1) + token.position;
}
numbers held_by(const oracle::tokens& place) {
  numbers values;
  for (const auto& token : place) values.push_back(value_of(token));
  return values;
}

template <class F>
void for_each_whole_place(const oracle::packed& expected, F&& f) {
  f(full_row, expected.row);
  f(all_shards, expected.all_shards);
}

/// Asks for the rows in pieces, as threads do.
struct in_pieces {
  offset_t size;
};

}  // namespace

template <>
struct seqpack::executor_traits<in_pieces> : seqpack::host_executor_traits {
  template <class Op>
  static void run(in_pieces pieces, const Op& op) {
    for (offset_t first = 0; first < op.rows(); first += pieces.size) {
      op.process(first, std::min(first + pieces.size, op.rows()));
    }
  }
};

namespace {

template <class E, class Layout, class From, class To>
numbers rearranged(const E& where, const Layout& layout, From from, To to, const numbers& rows,
                   std::size_t target_rows) {
  poisoned_buffer<number> out(static_cast<offset_t>(target_rows));
  rearrange(where, layout, from, to, field(rows, out.span()));
  BOOST_TEST(out.guards_intact());
  return out.values();
}

template <class L, class From, class To>
concept rearranges =
    requires(const L& layout, From from, To to, const numbers& rows, numbers& out) {
      rearrange(host, layout, from, to, field(rows, out));
    };
using plain_layout = packed_layout<context_parallel<2>>;
static_assert(rearranges<plain_layout, full_row_t, all_shards_t>);
static_assert(rearranges<plain_layout, all_shards_t, shard>);
static_assert(!rearranges<plain_layout, shard, full_row_t>, "a shard does not hold all tokens");
static_assert(!rearranges<plain_layout, shard, shard>);
static_assert(whole_place<full_row_t> && whole_place<all_shards_t> && !whole_place<shard> &&
              !whole_place<int>);

}  // namespace

BOOST_AUTO_TEST_CASE(random_layouts_between_all_places) {
  std::mt19937 random(2);
  int padding_rows = 0;
  for (int round = 0; round < 20; ++round) {
    const int batch = round % 7;
    const numbers lens = random_lengths(random, batch, 30);
    const numbers order = round % 2 == 0 ? numbers{} : random_order(random, batch);
    for_each_layout(lens, order, [&](const auto& layout, const auto& expected, const auto&) {
      for_each_whole_place(expected, [&](auto from, const oracle::tokens& sources) {
        for_each_place(expected, [&](auto to, const oracle::tokens& targets) {
          const numbers rows = held_by(sources);
          const numbers wanted = held_by(targets);
          const auto check = [&](const auto& where) {
            BOOST_TEST(rearranged(where, layout, from, to, rows, targets.size()) == wanted,
                       per_element());
          };
          check(host);
          check(as_device{});
          check(in_pieces{1 + round});
          for (const auto& token : targets) padding_rows += token.real ? 0 : 1;
        });
      });
    });
  }
  BOOST_TEST(padding_rows > 1000);
}

BOOST_AUTO_TEST_CASE(written_out) {
  // Chunks of 2 tokens per sequence: rank 0 has the first and the last of four.
  const auto layout =
      make_layout(numbers{7, 3}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const numbers row{0, 1, 2, 3, 4, 5, 6, 7, 20, 21, 22, 23};
  const numbers shards{0, 1, 6, 7, 20, 23, 2, 3, 4, 5, 21, 22};
  BOOST_TEST(rearranged(host, layout, full_row, all_shards, row, 12) == shards, per_element());
  BOOST_TEST(rearranged(host, layout, all_shards, full_row, shards, 12) == row, per_element());
  BOOST_TEST(rearranged(host, layout, full_row, shard{1}, row, 6) == (numbers{2, 3, 4, 5, 21, 22}),
             per_element());
  BOOST_TEST(
      rearranged(host, layout, all_shards, shard{0}, shards, 6) == (numbers{0, 1, 6, 7, 20, 23}),
      per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(elements_and_payloads, Type, all_elements) {
  using T = typename Type::type;
  const numbers lens{5, 0, 9};
  const oracle::packed expected = oracle::pack({.lens = lens, .each = 6, .cp = 3});
  const auto layout = make_layout(lens, padding{each_multiple_of<6>{}}, context_parallel<3>{});
  for (const offset_t payload : {1, 3, 16}) {
    const auto fill_place = [&](const oracle::tokens& place, T* out) {
      for (const number value : held_by(place)) {
        for (offset_t d = 0; d < payload; ++d) *out++ = make_element<T>(value * 17 + d);
      }
    };
    const offset_t total = layout.total_tokens();
    poisoned_buffer<T> source(total * payload);
    poisoned_buffer<T> wanted(total * payload);
    fill_place(expected.row, source.data());
    fill_place(expected.all_shards, wanted.data());
    const auto check = [&](const auto& where) {
      poisoned_buffer<T> out(total * payload);
      rearrange(
          where, layout, full_row, all_shards,
          field(row_view(source.data(), total, payload), row_view(out.data(), total, payload)));
      BOOST_TEST((out == wanted));
    };
    check(host);
    check(as_device{});
  }
}

BOOST_AUTO_TEST_CASE(several_fields_with_their_own_types) {
  const auto layout = make_layout(numbers{4}, no_padding{}, context_parallel<2>{});
  const std::vector<float> wide{0, 1, 10, 11, 20, 21, 30, 31};
  const std::vector<std::int8_t> narrow{0, 1, 2, 3};
  poisoned_buffer<float> wide_out(8);
  poisoned_buffer<std::int8_t> narrow_out(4);
  rearrange(host, layout, full_row, all_shards,
            field(row_view(wide.data(), 4, 2), row_view(wide_out.data(), 4, 2)),
            field(narrow, narrow_out.span()));
  BOOST_TEST(wide_out.values() == (std::vector<float>{0, 1, 30, 31, 10, 11, 20, 21}),
             per_element());
  BOOST_TEST(narrow_out.values() == (std::vector<std::int8_t>{0, 3, 1, 2}), per_element());
}

BOOST_AUTO_TEST_CASE(nothing_at_all) {
  const auto layout = make_layout(numbers{});
  rearrange(host, layout, full_row, all_shards,
            field(row_view<const float>(nullptr, 0), row_view<float>(nullptr, 0)));
  const auto some = make_layout(numbers{4});
  rearrange(host, some, full_row, all_shards,
            field(row_view<const float>(nullptr, 4, 0), row_view<float>(nullptr, 4, 0)));
}

BOOST_AUTO_TEST_CASE(refused_sizes) {
  const auto layout =
      make_layout(numbers{4, 2}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const numbers rows(16, 5);
  poisoned_buffer<number> out(16);
  const auto refuse = [&](auto from, auto to, offset_t source_rows, offset_t target_rows,
                          const std::string& text) {
    BOOST_CHECK_EXCEPTION(
        rearrange(host, layout, from, to,
                  field(row_view(rows.data(), source_rows), row_view(out.data(), target_rows))),
        invalid_input, [&](const invalid_input& e) {
          BOOST_TEST(e.what() == text);
          return true;
        });
    BOOST_TEST(out.untouched());
  };
  refuse(full_row, shard{2}, 8, 4,
         "rank is 2: it must be from 0 to 1, the last context-parallel rank");
  refuse(full_row, shard{-1}, 8, 4,
         "rank is -1: it must be from 0 to 1, the last context-parallel rank");
  const std::string row = "the tokens of the layout in this place";
  refuse(full_row, all_shards, 7, 8, "field 0's source rows is 7: it must be 8, " + row);
  refuse(all_shards, full_row, 4, 8, "field 0's source rows is 4: it must be 8, " + row);
  refuse(full_row, all_shards, 8, 9, "field 0's target rows is 9: it must be 8, " + row);
  refuse(full_row, shard{1}, 8, 8, "field 0's target rows is 8: it must be 4, " + row);
}

BOOST_AUTO_TEST_CASE(refused_payloads_and_null) {
  const auto layout = make_layout(numbers{4}, no_padding{}, context_parallel<2>{});
  const numbers rows(16, 5);
  poisoned_buffer<number> out(16);
  const auto refuse = [&](auto source, auto target, const std::string& text) {
    // The second field is named, and the first not written.
    poisoned_buffer<number> first(4);
    BOOST_CHECK_EXCEPTION(
        rearrange(host, layout, full_row, all_shards, field(row_view(rows.data(), 4), first.span()),
                  field(source, target)),
        invalid_input, [&](const invalid_input& e) {
          BOOST_TEST(e.what() == text);
          return true;
        });
    BOOST_TEST(out.untouched());
    BOOST_TEST(first.untouched());
  };
  refuse(row_view(rows.data(), 4, 2), row_view(out.data(), 4, 3),
         "field 1's target payload is 3: it must be 2, the payload of its source");
  refuse(row_view<const number>(nullptr, 4, 2), row_view(out.data(), 4, 2),
         "field 1's source is null: it must point to 8 elements");
  refuse(row_view(rows.data(), 4, 2), row_view<number>(nullptr, 4, 2),
         "field 1's target is null: it must point to 8 elements");
}

BOOST_AUTO_TEST_CASE(refused_layout_without_arrays) {
  const layout_view<no_context_parallel> view{.sequences = 1, .segments = 1, .total = 4};
  numbers rows(4, 1);
  poisoned_buffer<number> out(4);
  BOOST_CHECK_EXCEPTION(
      rearrange(host, view, full_row, all_shards, field(rows, out.span())), invalid_input,
      refused("the layout's cu_seqlens", "null", "a layout of tokens needs its arrays"));
  BOOST_TEST(out.untouched());
}

BOOST_AUTO_TEST_CASE(refused_aliases) {
  const auto layout = make_layout(numbers{4}, no_padding{}, context_parallel<2>{});
  poisoned_buffer<number> memory(32);
  const auto row = [&](offset_t first) { return row_view(memory.data() + first, 4); };
  const auto refuse = [&](const std::string& text, const auto&... f) {
    BOOST_CHECK_EXCEPTION(rearrange(host, layout, full_row, all_shards, f...), invalid_input,
                          [&](const invalid_input& e) {
                            BOOST_TEST(e.what() == text);
                            return true;
                          });
    BOOST_TEST(memory.untouched());
  };
  const std::string must = ": outputs must not alias";
  for (offset_t first = 5; first <= 11; ++first) {
    refuse("field 0's target is in the memory of field 0's source" + must,
           field(row(8), row(first)));
  }
  refuse("field 0's target is in the memory of field 1's source" + must, field(row(0), row(19)),
         field(row(16), row(24)));
  refuse("field 1's target is in the memory of field 0's target" + must, field(row(0), row(8)),
         field(row(4), row(11)));

  auto* const bounds = const_cast<std::int32_t*>(layout.cu_seqlens_padded().data());
  const std::vector<std::int32_t> source{1, 2, 3, 4};
  BOOST_CHECK_EXCEPTION(
      rearrange(host, layout, full_row, all_shards, field(source, row_view(bounds - 2, 4))),
      invalid_input,
      refused("field 0's target", "in the memory of the layout's cu_seqlens_padded",
              "outputs must not alias"));
}
