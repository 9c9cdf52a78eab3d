// Sizes that no memory has, strides that wrap, addresses that no element has: refused where a view or
// an option is made, with the caller's own number.
#define BOOST_TEST_MODULE hostile_sizes
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "seqpack/core/view.hpp"
#include "seqpack/layout/adopt.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/rearrange.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/tokens/counts.hpp"
#include "seqpack/tokens/mask.hpp"
#include "seqpack/tokens/per_token.hpp"
#include "support/buffers.hpp"
#include "support/refused.hpp"
#include "support/strided_span.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;

constexpr offset_t huge = offset_t{1} << 62;
constexpr offset_t largest = std::numeric_limits<offset_t>::max();
constexpr offset_t smallest = std::numeric_limits<offset_t>::min();
constexpr const char* at_most_48 = ": a size must be at most 281474976710656";

template <class Make>
void refuse(const Make& make, const std::string& text) {
  BOOST_CHECK_EXCEPTION(make(), invalid_input, refused_as(text));
}

}  // namespace

BOOST_AUTO_TEST_CASE(rows_and_payloads) {
  using view = row_view<std::int32_t>;
  refuse([] { return view(nullptr, huge); },
         "rows is 4611686018427387904" + std::string(at_most_48));
  refuse([] { return view(nullptr, 4, huge); },
         "payload is 4611686018427387904" + std::string(at_most_48));
  refuse([] { return view(nullptr, max_tokens + 1); },
         "rows is 281474976710657" + std::string(at_most_48));
  refuse([] { return view(nullptr, smallest); },
         "rows is -9223372036854775808: a size must be at least 0");
  refuse([] { return view(nullptr, max_tokens, 65); },
         "rows * payload is 281474976710656 * 65: a view spans at most 18014398509481984 "
         "elements, 2^56 bytes");
  BOOST_TEST(view(nullptr, max_tokens, 64).touched().last == std::uintptr_t{1} << 56);
  BOOST_TEST(view(nullptr, 0, max_tokens).touched().last == 0U);
}

BOOST_AUTO_TEST_CASE(batches_widths_and_strides) {
  using view = batch_view<std::int64_t>;
  const std::string most = std::string(at_most_48);
  refuse([] { return view(nullptr, huge, 2); }, "batch is 4611686018427387904" + most);
  refuse([] { return view(nullptr, 2, huge); }, "width is 4611686018427387904" + most);
  refuse([] { return view(nullptr, 2, 2, huge); }, "payload is 4611686018427387904" + most);
  refuse([] { return view(nullptr, 1, max_tokens, max_tokens); },
         "width * payload is 281474976710656 * 281474976710656: a view spans at most "
         "9007199254740992 elements, 2^56 bytes");
  refuse([] { return view(nullptr, max_tokens, 2, 1, 0, 0); },
         "batch * width is 281474976710656 * 2: a view has at most 281474976710656 positions");
  const std::string range = ": it must be from -9007199254740992 to 9007199254740992";
  refuse([] { return view(nullptr, 2, 2, 1, huge, 1); },
         "batch stride is 4611686018427387904" + range);
  refuse([] { return view(nullptr, 2, 2, 1, smallest, 1); },
         "batch stride is -9223372036854775808" + range);
  refuse([] { return view(nullptr, 2, 2, 1, 2, smallest); },
         "token stride is -9223372036854775808" + range);
  refuse([] { return view(nullptr, 3, 2, 1, 9007199254740992, 1); },
         "batch stride is 9007199254740992: 3 steps must reach at most 9007199254740992 elements");
  BOOST_TEST(view(nullptr, 1, 2, 1, -9007199254740992, 1).touched().last == 16U);
}

BOOST_AUTO_TEST_CASE(views_of_other_libraries) {
  std::array<int, 4> values{};
  refuse([&] { return row_view(strided_span<int, 2>{values.data(), {2, huge}, {huge, 1}}); },
         "payload is 4611686018427387904" + std::string(at_most_48));
  refuse(
      [&] {
        return batch_view(strided_span<int, 4>{
            values.data(), {1, 1, max_tokens, max_tokens}, {1, 1, max_tokens, 1}});
      },
      "payload is 281474976710656 * 281474976710656" + std::string(at_most_48));
}

BOOST_AUTO_TEST_CASE(ragged_offsets_that_would_wrap) {
  const auto layout = make_layout(std::vector{0, 0});
  std::array<std::int64_t, 1> values{};
  poisoned_buffer<std::int64_t> out(0);
  const auto check = [&](auto first, auto second, auto third, const std::string& text) {
    using offset = decltype(first);
    const std::array<offset, 3> offsets{first, second, third};
    refuse(
        [&] {
          pack(host, layout, full_row,
               field(ragged_view(row_view(values), offsets.data(), 2), out.span()));
        },
        text);
  };
  check(std::int64_t{1}, smallest, std::int64_t{1},
        "field 0's source row 0 end is -9223372036854775808: it must be at least 1, where the row "
        "begins");
  check(smallest, largest, largest,
        "field 0's source row 0 begin is -9223372036854775808: it must be at least 0");
  check(std::int64_t{0}, largest, largest,
        "field 0's source row 0 end is 9223372036854775807: it must be at most 1, the rows of the "
        "values");
  check(std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0},
        "field 0's source row 0 end is 18446744073709551615: it must be at most 1, the rows of the "
        "values");
}

BOOST_AUTO_TEST_CASE(start_columns_that_would_wrap) {
  const auto layout = make_layout(std::vector{1});
  std::array<std::int64_t, 2> values{};
  poisoned_buffer<std::int64_t> out(1);
  const auto check = [&](auto start, const std::string& text) {
    refuse(
        [&] {
          pack(host, layout, full_row,
               field(left_padded_view(batch_view(values.data(), 1, 2), &start), out.span()));
        },
        text);
    BOOST_TEST(out.untouched());
  };
  check(smallest,
        "field 0's source row 0 start column is -9223372036854775808: it must be at least 0");
  check(largest,
        "field 0's source row 0 start column is 9223372036854775807: it must be at most 2, the "
        "columns of the row");
  check(~std::uint64_t{0},
        "field 0's source row 0 start column is 18446744073709551615: it must be at most 2, the "
        "columns of the row");
}

BOOST_AUTO_TEST_CASE(dropped_tokens_add_up_to_all_of_them) {
  const auto layout = make_layout(std::vector{1, 2});
  const auto none = layout.view().without_last(largest).without_last(largest);
  BOOST_TEST(none.length(0) == 0);
  BOOST_TEST(none.length(1) == 0);
  BOOST_TEST(none.max_length() == 0);
  refuse([&] { return layout.view().without_last(smallest); },
         "count is -9223372036854775808: it must be at least 0");
}

BOOST_AUTO_TEST_CASE(parts_of_a_layout) {
  const auto layout = make_layout(std::vector{1, 2});
  refuse([&] { return layout_part(layout, 1, largest); },
         "number of slots is 9223372036854775807: it must be from 0 to 1, those of the layout from "
         "slot 1 on");
  refuse([&] { return layout_part(layout, largest, 1); },
         "first slot is 9223372036854775807: it must be from 0 to 2");
  refuse([&] { return layout_part(layout, smallest, largest); },
         "first slot is -9223372036854775808: it must be from 0 to 2");
}

BOOST_AUTO_TEST_CASE(options_of_adopted_bounds) {
  const std::vector<int> cu{0, 1, 1};
  const auto adopt = [&](const adopt_options& options) {
    return [&cu, options] { return from_cu_seqlens(cu, 1, no_context_parallel{}, options); };
  };
  const std::string range = ": it must be from 0 to 2147483647";
  refuse(adopt({.sequences = largest, .ghost = true}),
         "number of sequences is 9223372036854775807" + range);
  refuse(adopt({.sequences = smallest}), "number of sequences is -9223372036854775808" + range);
  refuse(adopt({.max_seqlen = -2}), "max_seqlen is -2" + range);
  refuse(adopt({.width = largest}),
         "width is 9223372036854775807: it must be from 0 to 281474976710656");
  refuse(adopt({.tail = 0}),
         "tail is 0: it goes with position ids and segment ids: bounds say where their tail is");
  refuse(adopt({.position_start = 2}), "position_start is 2: it goes with position ids");
  refuse(adopt({.padding_id = -1}), "padding_id is -1: it goes with segment ids");
  refuse(adopt({.padding_id = std::nullopt}), "padding_id is none: it goes with segment ids");
}

BOOST_AUTO_TEST_CASE(numbers_of_bounds_and_position_ids_are_the_callers_own) {
  const auto most = std::numeric_limits<std::uint64_t>::max();
  refuse([&] { return from_position_ids(std::vector<std::uint64_t>{0, most}); },
         "position_ids[1] is 18446744073709551615: it must be 0 or 1, one more than the last");
  refuse([&] { return from_position_ids(std::vector<std::uint64_t>{most}); },
         "position_ids[0] is 18446744073709551615: the first must be 0");
  refuse([&] { return from_cu_seqlens(std::vector<std::uint64_t>{most, most}, 1); },
         "cu_seqlens[0] is 18446744073709551615: the first entry must be 0");
  refuse([&] { return from_position_ids(std::vector<std::int64_t>{0, largest}); },
         "position_ids[1] is 9223372036854775807: it must be 0 or 1, one more than the last");
}

BOOST_AUTO_TEST_CASE(batches_that_are_not_packed) {
  refuse([] { return unpacked_layout(std::vector{1}, huge); },
         "width is 4611686018427387904: it must be from 0 to 281474976710656");
  refuse([] { return unpacked_layout(std::vector{1}, smallest); },
         "width is -9223372036854775808: it must be from 0 to 281474976710656");
  refuse([] { return unpacked_layout(std::vector<std::uint64_t>{~std::uint64_t{0}}, 4); },
         "lengths[0] is 18446744073709551615: a length must be at most 4, the width of the batch");
  refuse([] { return unpacked_layout(std::vector{1, 1, 1}, offset_t{1} << 30); },
         "sum of the padded lengths is 3221225472: it must be at most 2147483647, the range of the "
         "type of cu_seqlens");
  refuse(
      [] { return unpacked_layout<std::int64_t>(std::vector<int>(70'000, 0), max_tokens); },
      "sum of the padded lengths is 2305843009213693952: it must be at most 281474976710656, the "
      "range of the type of cu_seqlens");
}

BOOST_AUTO_TEST_CASE(nothing_moves_where_a_token_has_no_elements) {
  const auto layout = make_layout(std::vector{2, 1});
  const batch_view<const std::int64_t> source(nullptr, 2, 2, 0, 7, 3);
  const row_view<std::int64_t> row(nullptr, 3, 0);
  pack(host, layout, full_row, field(source, row));
  unpack(host, layout, full_row, field(row, batch_view<std::int64_t>(nullptr, 2, 2, 0, 7, 3)));
  rearrange(host, layout, full_row, all_shards, field(row, row_view<std::int64_t>(nullptr, 3, 0)));
  BOOST_TEST((source.touched().first == source.touched().last));
}

BOOST_AUTO_TEST_CASE(addresses_that_no_element_has) {
  const auto layout = make_layout(std::vector{1, 1});
  poisoned_buffer<std::int64_t> memory(16);
  char* const bytes = reinterpret_cast<char*>(memory.data());
  auto* const odd = reinterpret_cast<std::int64_t*>(bytes + 4);
  const std::vector<std::int64_t> ids{1, 2};
  const batch_view table(ids.data(), 2, 1);
  const auto check = [&](const auto& call, const std::string& name) {
    BOOST_CHECK_EXCEPTION(call(), invalid_input, [&](const invalid_input& e) {
      BOOST_TEST(e.entry() == name);
      BOOST_TEST(e.value() == "misaligned by 4");
      BOOST_TEST(e.requirement() ==
                 "its address must be a multiple of 8, the alignment of its elements");
      return true;
    });
    BOOST_TEST(memory.untouched());
  };
  check([&] { pack(host, layout, full_row, field(table, row_view(odd, 2))); }, "field 0's target");
  check([&] { pack(host, layout, full_row, field(batch_view(odd, 2, 1), memory.span().first(2))); },
        "field 0's source");
  check([&] { unpack(host, layout, full_row, field(ids, batch_view(odd, 2, 1))); },
        "field 0's target");
  check(
      [&] {
        unpack(host, layout, full_row, field(row_view(odd, 2), batch_view(memory.data(), 2, 1)));
      },
      "field 0's source");
  check([&] { per_token(host, layout, full_row, position_ids(row_view(odd, 2))); },
        "array 0's elements");
  check(
      [&] {
        per_token(host, layout, full_row, labels(batch_view(odd, 2, 1), memory.span().first(2)));
      },
      "array 0's tokens");
  check([&] { real_tokens_per_sequence(host, layout, shard{0}, row_view(odd, 2)); }, "counts");
  check(
      [&] {
        pack(host, layout, full_row, field(left_padded_view(table, odd), memory.span().first(2)));
      },
      "field 0's source bounds");
  const std::vector<std::uint8_t> mask{1, 1};
  check(
      [&] {
        lengths_from_mask(host, batch_view(mask.data(), 2, 1), row_view(odd, 2),
                          memory.span().first(2));
      },
      "lengths");
  const auto in_storage = [&](std::span<std::int64_t> cu, std::span<std::int64_t> padded) {
    build_layout<std::int64_t>(std::vector{1, 1}, no_padding{}, no_context_parallel{},
                               {cu, padded});
  };
  check([&] { in_storage(std::span(odd, 3), memory.span().subspan(8, 3)); },
        "the storage's cu_seqlens");
  check([&] { in_storage(memory.span().subspan(8, 3), std::span(odd, 3)); },
        "the storage's cu_seqlens_padded");
  // A byte has any address.
  std::vector<std::uint8_t> small{1, 2, 0, 0, 0};
  pack(host, layout, full_row,
       field(batch_view(small.data(), 2, 1), row_view(small.data() + 3, 2)));
  BOOST_TEST(small == (std::vector<std::uint8_t>{1, 2, 0, 1, 2}), per_element());
}
