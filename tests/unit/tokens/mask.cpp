// Lengths and start columns from an attention mask.
#define BOOST_TEST_MODULE mask
#include "seqpack/tokens/mask.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "seqpack/move/pack.hpp"
#include "support/buffers.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using numbers = std::vector<std::int64_t>;

}  // namespace

BOOST_AUTO_TEST_CASE(left_right_and_both) {
  const std::vector<std::uint8_t> mask{1, 1, 0, 0,   // right-padded
                                       0, 0, 1, 1,   // left-padded
                                       0, 1, 1, 0,   // both
                                       1, 1, 1, 1,   // full
                                       0, 0, 0, 0,   // empty
                                       0, 0, 0, 1};  // one token, at the end
  poisoned_buffer<std::int64_t> lengths(6);
  poisoned_buffer<std::int32_t> starts(6);
  lengths_from_mask(host, batch_view(mask.data(), 6, 4), lengths.span(), starts.span());
  BOOST_TEST(lengths.values() == (numbers{2, 2, 2, 4, 0, 1}), per_element());
  BOOST_TEST(starts.values() == (std::vector<std::int32_t>{0, 2, 1, 0, 0, 3}), per_element());
  BOOST_TEST(lengths.guards_intact());
  BOOST_TEST(starts.guards_intact());
}

BOOST_AUTO_TEST_CASE(mask_types_and_strides) {
  const bool flags[] = {false, true, true, false};
  numbers lengths(1);
  numbers starts(1);
  lengths_from_mask(host, batch_view(flags, 1, 4), lengths, starts);
  BOOST_TEST(lengths[0] == 2);
  BOOST_TEST(starts[0] == 1);

  const std::vector<float> transposed{0, 1, 1, 1, 1, 0};  // [3, 2], read as [2, 3]
  numbers two(2);
  numbers two_starts(2);
  lengths_from_mask(host, batch_view(transposed.data(), 2, 3, 1, 1, 2), two, two_starts);
  BOOST_TEST(two == (numbers{2, 2}), per_element());
  BOOST_TEST(two_starts == (numbers{1, 0}), per_element());
}

BOOST_AUTO_TEST_CASE(left_padded_batch_packs_by_its_mask) {
  const std::vector<std::uint8_t> mask{0, 1, 1, 0, 0, 1};
  const numbers ids{-1, 100, 101, -1, -1, 200};
  numbers lengths(2);
  numbers starts(2);
  lengths_from_mask(host, batch_view(mask.data(), 2, 3), lengths, starts);
  const auto layout = make_layout(lengths, padding{each_multiple_of<2>{}});
  numbers row(4, 777);
  pack(host, layout, full_row,
       field(left_padded_view(batch_view(ids.data(), 2, 3), starts.data()), row));
  BOOST_TEST(row == (numbers{100, 101, 200, 0}), per_element());
}

BOOST_AUTO_TEST_CASE(gaps_are_refused) {
  const std::vector<std::uint8_t> mask{1, 1, 0, 1, 0, 1};
  poisoned_buffer<std::int64_t> lengths(2);
  poisoned_buffer<std::int64_t> starts(2);
  BOOST_CHECK_EXCEPTION(
      lengths_from_mask(host, batch_view(mask.data(), 2, 3), lengths.span(), starts.span()),
      invalid_input, refused_as("mask row 1 is with gaps: its real tokens must be contiguous"));
  // The strong guarantee: on the host the mask is visible before anything is written.
  BOOST_TEST(lengths.untouched());
  BOOST_TEST(starts.untouched());
}

BOOST_AUTO_TEST_CASE(entries_other_than_0_and_1_are_refused) {
  const auto refuse = [](const auto& mask, offset_t width, const std::string& text) {
    poisoned_buffer<std::int64_t> lengths(2);
    poisoned_buffer<std::int64_t> starts(2);
    BOOST_CHECK_EXCEPTION(
        lengths_from_mask(host, batch_view(mask.data(), 2, width), lengths.span(), starts.span()),
        invalid_input, refused_as(text));
    BOOST_TEST(lengths.untouched());
    BOOST_TEST(starts.untouched());
  };
  const std::string hint =
      ": a mask holds 0 and 1; ids that tell documents of a row apart are segment ids";
  refuse(std::vector<std::int64_t>{1, 1, 1, 0, 0, 0, 1, 1, 2, 2, 2, 0}, 6,
         "mask[1][2] is 2" + hint);
  refuse(std::vector<std::int8_t>{1, 0, -1, 1}, 2, "mask[1][0] is -1" + hint);
  refuse(std::vector<std::uint64_t>{1, 0, ~std::uint64_t{0}, 1}, 2,
         "mask[1][0] is 18446744073709551615" + hint);
  refuse(std::vector<float>{1, 0, 1, 0.5F}, 2, "mask[1][1] is 0.500000" + hint);
  refuse(std::vector<double>{1, 0, 1, std::numeric_limits<double>::quiet_NaN()}, 2,
         "mask[1][1] is nan" + hint);
  // Before a gap is looked for.
  refuse(std::vector<int>{1, 0, 1, 0, 0, 3, 0, 1}, 4,
         "mask row 0 is with gaps: "
         "its real tokens must be contiguous");
}

BOOST_AUTO_TEST_CASE(no_rows_and_no_columns) {
  numbers none;
  lengths_from_mask(host, batch_view<const std::uint8_t>(nullptr, 0, 4), none, none);
  poisoned_buffer<std::int64_t> lengths(2);
  poisoned_buffer<std::int64_t> starts(2);
  lengths_from_mask(host, batch_view<const std::uint8_t>(nullptr, 2, 0), lengths.span(),
                    starts.span());
  BOOST_TEST(lengths.values() == (numbers{0, 0}), per_element());
  BOOST_TEST(starts.values() == (numbers{0, 0}), per_element());
}

BOOST_AUTO_TEST_CASE(refused_sizes) {
  const std::vector<std::uint8_t> mask(8, 1);
  poisoned_buffer<std::int64_t> lengths(3);
  poisoned_buffer<std::int64_t> starts(3);
  const auto refuse = [&](const auto& view, std::size_t length_size, std::size_t start_size,
                          const auto& predicate) {
    BOOST_CHECK_EXCEPTION(lengths_from_mask(host, view, lengths.span().first(length_size),
                                            starts.span().first(start_size)),
                          invalid_input, predicate);
    BOOST_TEST(lengths.untouched());
    BOOST_TEST(starts.untouched());
  };
  refuse(batch_view(mask.data(), 2, 4), 3, 2,
         refused_as("lengths is 3: it must be 2, the rows of the mask"));
  refuse(batch_view(mask.data(), 2, 4), 2, 1,
         refused_as("starts is 1: it must be 2, the rows of the mask"));
  refuse(batch_view(mask.data(), 2, 2, 2), 2, 2,
         refused_as("mask payload is 2: it must be 1, one entry per token"));
}

BOOST_AUTO_TEST_CASE(length_types_that_cannot_hold_the_width_are_refused) {
  const std::vector<std::uint8_t> mask(300, 1);
  poisoned_buffer<std::int8_t> lengths(1);
  poisoned_buffer<std::int64_t> starts(1);
  BOOST_CHECK_EXCEPTION(
      lengths_from_mask(host, batch_view(mask.data(), 1, 300), lengths.span(), starts.span()),
      invalid_input,
      refused_as("largest length is 300: the element type of the array holds at most 127"));
  BOOST_TEST(lengths.untouched());
  BOOST_TEST(starts.untouched());
}

BOOST_AUTO_TEST_CASE(outputs_in_the_memory_of_the_mask_or_of_each_other_are_refused) {
  numbers mask(4, 1);
  numbers other(1, 777);
  const batch_view view(mask.data(), 1, 4);
  BOOST_CHECK_EXCEPTION(lengths_from_mask(host, view, row_view(mask.data(), 1), other),
                        invalid_input,
                        refused_as("lengths is in the memory of mask: outputs must not alias"));
  BOOST_CHECK_EXCEPTION(lengths_from_mask(host, view, other, row_view(mask.data(), 1)),
                        invalid_input,
                        refused_as("starts is in the memory of mask: outputs must not alias"));
  BOOST_CHECK_EXCEPTION(lengths_from_mask(host, view, other, other), invalid_input,
                        refused_as("starts is in the memory of lengths: outputs must not alias"));
  BOOST_TEST(mask == numbers(4, 1), per_element());
  BOOST_TEST(other == numbers(1, 777), per_element());
}
