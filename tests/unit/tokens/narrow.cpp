// Values that a target cannot hold exactly are refused, before anything is written.
#define BOOST_TEST_MODULE narrow
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "seqpack/layout/adopt.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/move/field.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/tokens/per_token.hpp"
#include "support/buffers.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using numbers = std::vector<std::int64_t>;

template <class Label, class Id>
void labels_are_refused(const std::vector<Id>& ids, label_options options,
                        const std::string& text) {
  const auto width = static_cast<offset_t>(ids.size());
  const auto layout =
      make_layout(std::vector{width}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const batch_view table(ids.data(), 1, width);
  const auto refuse = [&](auto at) {
    poisoned_buffer<Label> out(layout.view().rows(at));
    BOOST_CHECK_EXCEPTION(per_token(host, layout, at, labels(table, out.span(), options)),
                          invalid_input, refused_as(text));
    BOOST_TEST(out.untouched());
  };
  refuse(full_row);
  refuse(all_shards);
  // In the shard that does not hold the label too, so that all ranks refuse it.
  refuse(shard{0});
  refuse(shard{1});
}

}  // namespace

BOOST_AUTO_TEST_CASE(labels_in_a_narrower_integer) {
  const std::string holds = "the label type holds -32768 to 32767";
  labels_are_refused<std::int16_t>(numbers{1, 70000, 3}, {},
                                   "array 0's tokens[0][1] is 70000: " + holds);
  labels_are_refused<std::int16_t>(numbers{1, 2, 65436}, {},
                                   "array 0's tokens[0][2] is 65436: " + holds);
  labels_are_refused<std::int16_t>(std::vector<std::uint64_t>{1, ~std::uint64_t{0}}, {},
                                   "array 0's tokens[0][1] is 18446744073709551615: " + holds);
  labels_are_refused<std::uint8_t>(numbers{1, -1}, {.ignore = 255},
                                   "array 0's tokens[0][1] is -1: the label type holds 0 to 255");
  labels_are_refused<std::int64_t>(
      std::vector<std::uint64_t>{1, std::uint64_t{1} << 63}, {},
      "array 0's tokens[0][1] is 9223372036854775808: the label type holds "
      "-9223372036854775808 to 9223372036854775807");
}

BOOST_AUTO_TEST_CASE(labels_in_a_floating_type) {
  const std::string holds = "the label type holds all whole numbers from -16777216 to 16777216";
  labels_are_refused<float>(numbers{1, 16777217}, {},
                            "array 0's tokens[0][1] is 16777217: " + holds);
  labels_are_refused<float>(numbers{1, 2}, {.ignore = 16777217},
                            "array 0's ignored label is 16777217: " + holds);
}

BOOST_AUTO_TEST_CASE(labels_of_a_known_vocabulary) {
  const std::string no_id = ": it must be no id of the vocabulary, 0 to 3";
  labels_are_refused<std::int64_t>(numbers{1, 2}, {.ignore = 3, .vocabulary = 4},
                                   "array 0's ignored label is 3" + no_id);
  labels_are_refused<std::int64_t>(numbers{1, 2}, {.ignore = 0, .vocabulary = 4},
                                   "array 0's ignored label is 0" + no_id);
  const std::string range = ": a label must be from 0 to 3";
  labels_are_refused<std::int64_t>(numbers{1, 4}, {.vocabulary = 4},
                                   "array 0's tokens[0][1] is 4" + range);
  labels_are_refused<std::int64_t>(numbers{1, -1}, {.vocabulary = 4},
                                   "array 0's tokens[0][1] is -1" + range);
  labels_are_refused<std::int64_t>(std::vector<std::uint64_t>{1, ~std::uint64_t{0}},
                                   {.vocabulary = 4},
                                   "array 0's tokens[0][1] is 18446744073709551615" + range);
  labels_are_refused<std::int64_t>(std::vector<float>{1, 1.5F}, {.vocabulary = 4},
                                   "array 0's tokens[0][1] is 1.500000" + range);
  labels_are_refused<std::int64_t>(
      numbers{1, 2}, {.vocabulary = 0},
      "array 0's vocabulary is 0: it must be from 1 to 281474976710656");
  // The largest id, and ignored labels beside the vocabulary.
  const auto layout = make_layout(std::vector{2});
  const numbers ids{9, 3};
  for (const offset_t ignore : {offset_t{-1}, offset_t{4}}) {
    numbers out(2);
    per_token(host, layout, full_row,
              labels(batch_view(ids.data(), 1, 2), out, {.ignore = ignore, .vocabulary = 4}));
    BOOST_TEST(out == (numbers{3, ignore}), per_element());
  }
}

BOOST_AUTO_TEST_CASE(ids_that_become_no_label_need_not_fit) {
  // Token 0 is nobody's next token, and what stands in padding is no token.
  const std::vector<std::int64_t> ids{70000, 2, 3, 70000};
  const auto layout = make_layout(std::vector{3});
  poisoned_buffer<std::int16_t> out(3);
  per_token(host, layout, full_row, labels(batch_view(ids.data(), 1, 4), out.span()));
  BOOST_TEST(out.values() == (std::vector<std::int16_t>{2, 3, -100}), per_element());
  // With a shift of 2 only the last of them is a label.
  const std::vector<std::int64_t> shifted{70000, 70000, 3, 0};
  per_token(host, layout, full_row,
            labels(batch_view(shifted.data(), 1, 4), out.span(), {.shift = 2}));
  BOOST_TEST(out.values() == (std::vector<std::int16_t>{3, -100, -100}), per_element());
}

BOOST_AUTO_TEST_CASE(types_that_count_too_little) {
  const auto layout = make_layout(std::vector{3000});
  poisoned_buffer<_Float16> halves(3000);
  BOOST_CHECK_EXCEPTION(
      per_token(host, layout, full_row, position_ids(halves.span())), invalid_input,
      refused_as(
          "array 0's largest position id is 2999: the element type of the array does not count "
          "that far"));
  BOOST_TEST(halves.untouched());
}

BOOST_AUTO_TEST_CASE(constant_fills_in_integers) {
  const std::vector<std::int32_t> ids{7};
  std::vector<std::int32_t> row(2, 777);
  const auto refuse = [&](auto fill, const std::string& value) {
    BOOST_CHECK_EXCEPTION(
        field(batch_view(ids.data(), 1, 1), row, fill), invalid_input,
        refused_as("fill is " + value +
                   ": the element type holds the whole numbers from -2147483648 to 2147483647"));
  };
  refuse(3.7, "3.700000");
  refuse(-0.5F, "-0.500000");
  refuse(std::numeric_limits<double>::quiet_NaN(), "nan");
  refuse(std::numeric_limits<float>::infinity(), "inf");
  refuse(1e30, std::to_string(1e30));
  refuse(std::int64_t{1} << 31, "2147483648");
  BOOST_TEST(field(batch_view(ids.data(), 1, 1), row, -3.0).fill == -3);
}

BOOST_AUTO_TEST_CASE(constant_fills_in_floating_types) {
  const std::vector<float> values{7};
  std::vector<float> row(2);
  const batch_view table(values.data(), 1, 1);
  const std::string holds =
      ": the element type holds whole numbers exactly from -16777216 to 16777216, and no finite "
      "number above 340282346638528859811704183484516925440.000000";
  BOOST_CHECK_EXCEPTION(field(table, row, 16777217), invalid_input,
                        refused_as("fill is 16777217" + holds));
  BOOST_CHECK_EXCEPTION(field(table, row, 1e300), invalid_input,
                        refused_as("fill is " + std::to_string(1e300) + holds));
  BOOST_TEST(field(table, row, 0.1).fill == 0.1F);
  BOOST_TEST(field(table, row, std::numeric_limits<double>::infinity()).fill ==
             std::numeric_limits<float>::infinity());
}

BOOST_AUTO_TEST_CASE(fills_by_a_function_of_the_column) {
  const auto layout = make_layout(std::vector{1}, padding{each_multiple_of<2>{}});
  const std::vector<std::int8_t> source(200, 5);
  const auto column = [](offset_t c) { return c; };
  poisoned_buffer<std::int8_t> row(400);
  BOOST_CHECK_EXCEPTION(
      pack(host, layout, full_row,
           field(batch_view(source.data(), 1, 1, 200), row_view(row.data(), 2, 200), column)),
      invalid_input,
      refused_as(
          "field 0's fill of column 128 is 128: the element type holds the whole numbers from "
          "-128 to 127"));
  BOOST_TEST(row.untouched());
  poisoned_buffer<std::int8_t> batch(400);
  BOOST_CHECK_EXCEPTION(
      unpack(host, layout, full_row,
             field(row_view(row.data(), 2, 200), batch_view(batch.data(), 1, 2, 200),
                   [](offset_t c) { return static_cast<double>(c) / 2; })),
      invalid_input,
      refused_as(
          "field 0's fill of column 1 is 0.500000: the element type holds the whole numbers from "
          "-128 to 127"));
  BOOST_TEST(batch.untouched());
  // The largest that fits: columns 0 to 127.
  pack(host, layout, full_row,
       field(batch_view(source.data(), 1, 1, 128), row_view(row.data(), 2, 128), column));
  BOOST_TEST(int{row[255]} == 127);
}

BOOST_AUTO_TEST_CASE(batch_indices_above_the_range) {
  const auto layout = make_layout(std::vector{1, 1, 1, 1});
  poisoned_buffer<std::int32_t> out(4);
  const auto refuse = [&](offset_t width, const std::string& text) {
    BOOST_CHECK_EXCEPTION(per_token(host, layout, full_row, batch_index(out.span(), width)),
                          invalid_input, refused_as(text));
    BOOST_TEST(out.untouched());
  };
  refuse(offset_t{1} << 62, "width is 4611686018427387904: it must be from 0 to 281474976710656");
  refuse(offset_t{1} << 48,
         "array 0's batch size * width is 4 * 281474976710656: it must be at most 281474976710656");
  refuse(offset_t{1} << 46,
         "array 0's largest batch position is 281474976710655: the element type of the array holds "
         "at most 2147483647");
}

BOOST_AUTO_TEST_CASE(batches_that_the_index_type_does_not_count) {
  const std::vector<offset_t> order{offset_t{1} << 31};
  const auto refuse = [&](offset_t batch, const std::string& text) {
    BOOST_CHECK_EXCEPTION(from_cu_seqlens<std::int32_t>(std::vector{0, 1}, 1, no_context_parallel{},
                                                        {.order = order, .batch = batch}),
                          invalid_input, refused_as(text));
  };
  const std::string limit = ": it must be from 0 to 2147483647";
  refuse((offset_t{1} << 31) + 1, "batch is 2147483649" + limit);
  refuse(offset_t{1} << 62, "batch is 4611686018427387904" + limit);
  refuse(std::numeric_limits<offset_t>::min(), "batch is -9223372036854775808" + limit);
  refuse(1, "order[0] is 2147483648: it must be a sequence of the batch, from 0 to 0");
}

BOOST_AUTO_TEST_CASE(labels_and_fills_in_half_precision) {
  const std::string holds = "the label type does not hold it exactly";
  labels_are_refused<_Float16>(numbers{1, 2049}, {}, "array 0's tokens[0][1] is 2049: " + holds);
  labels_are_refused<_Float16>(std::vector<std::uint64_t>{1, ~std::uint64_t{0}}, {},
                               "array 0's tokens[0][1] is 18446744073709551615: " + holds);
  labels_are_refused<_Float16>(numbers{1, 2}, {.ignore = -2049},
                               "array 0's ignored label is -2049: " + holds);
  const std::vector<_Float16> values{7};
  std::vector<_Float16> row(2);
  const batch_view table(values.data(), 1, 1);
  const std::string refused = ": the element type does not hold it";
  BOOST_CHECK_EXCEPTION(field(table, row, 70000), invalid_input,
                        refused_as("fill is 70000" + refused));
  BOOST_CHECK_EXCEPTION(field(table, row, 2049), invalid_input,
                        refused_as("fill is 2049" + refused));
  BOOST_CHECK_EXCEPTION(field(table, row, 70000.0), invalid_input,
                        refused_as("fill is 70000.000000" + refused));
  BOOST_TEST(static_cast<float>(field(table, row, 2048).fill) == 2048.0F);
  BOOST_TEST(static_cast<float>(field(table, row, 0.1).fill) ==
             static_cast<float>(static_cast<_Float16>(0.1F)));
  const auto layout = make_layout(std::vector{1}, padding{each_multiple_of<2>{}});
  BOOST_CHECK_EXCEPTION(
      pack(host, layout, full_row, field(table, row, [](offset_t) { return 2049; })), invalid_input,
      refused_as("field 0's fill of column 0 is 2049" + refused));
}
