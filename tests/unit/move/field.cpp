// Fields: fills, the views that are taken, and what all of pack and unpack refuse.
#define BOOST_TEST_MODULE field
#include "seqpack/move/field.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/tokens/per_token.hpp"
#include "support/buffers.hpp"
#include "support/elements.hpp"
#include "support/refused.hpp"
#include "support/strided_span.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;

// Fills: values of the element type or functions of the column, nothing else.
struct column_function {
  float operator()(offset_t column) const { return static_cast<float>(column); }
};
struct not_copyable_bits {
  std::string text;
  float operator()(offset_t) const { return 0; }
};
static_assert(detail::filler<float, float>);
static_assert(detail::filler<int, float>);
static_assert(detail::filler<column_function, float>);
static_assert(detail::filler<float, _Float16>);
static_assert(!detail::filler<not_copyable_bits, float>);
static_assert(!detail::filler<std::string, float>);
static_assert(!detail::filler<const char*, float>);

// Token tables, and what is none.
static_assert(token_table<batch_view<const int>>);
static_assert(token_table<left_padded_view<int, std::int32_t>>);
static_assert(token_table<ragged_view<triple, std::int64_t>>);
static_assert(!token_table<row_view<int>>);
static_assert(!token_table<std::vector<int>>);
static_assert(!token_table<int>);

// A constant is stored as an element.
static_assert(std::is_same_v<
              decltype(field(batch_view<const std::int8_t>{}, row_view<std::int8_t>{}, 5).fill),
              std::int8_t>);

const auto one_and_a_pad = make_layout(std::vector{1}, padding{each_multiple_of<2>{}});

/// What one token of value 7 and one pad become.
template <class T, class To>
void check_target(To&& to, const T* data) {
  const std::vector<T> source(4, T{7});
  pack(host, one_and_a_pad, full_row, field(batch_view(source.data(), 1, 1), to, T{3}));
  BOOST_TEST(data[0] == T{7});
  BOOST_TEST(data[1] == T{3});
}

}  // namespace

BOOST_AUTO_TEST_CASE(contiguous_ranges_as_rows) {
  std::vector<int> vector(2);
  check_target(vector, vector.data());
  std::array<float, 2> array{};
  check_target(array, array.data());
  double plain[2] = {};
  check_target(plain, plain);
  std::vector<int> behind_a_span(2);
  check_target(std::span(behind_a_span), behind_a_span.data());
  check_target(row_view(behind_a_span), behind_a_span.data());
  std::vector<int> behind_an_mdspan(2);
  check_target(strided_span<int, 1>(behind_an_mdspan.data(), {2}, {1}), behind_an_mdspan.data());
}

BOOST_AUTO_TEST_CASE(constant_ranges_as_sources) {
  const std::vector<int> rows{7, 8};
  std::vector<int> out(1, 777);
  unpack(host, one_and_a_pad, full_row, field(rows, batch_view(out.data(), 1, 1)));
  BOOST_TEST(out[0] == 7);
}

BOOST_AUTO_TEST_CASE(default_fill_is_a_value_initialised_element) {
  const record source[] = {{1, 2, 3, 4}};
  poisoned_buffer<record> out(2);
  pack(host, one_and_a_pad, full_row, field(batch_view(source, 1, 1), out.span()));
  BOOST_TEST(same_bytes(out[0], source[0]));
  BOOST_TEST(same_bytes(out[1], record{}));
}

BOOST_AUTO_TEST_CASE(function_of_the_column) {
  const int source[] = {70, 71, 72};
  poisoned_buffer<int> out(6);
  const int offset = 100;
  pack(host, one_and_a_pad, full_row,
       field(batch_view(source, 1, 1, 3), row_view(out.data(), 2, 3),
             [offset](offset_t column) { return offset + static_cast<int>(column); }));
  BOOST_TEST(out.values() == (std::vector<int>{70, 71, 72, 100, 101, 102}), per_element());
}

BOOST_AUTO_TEST_CASE(function_of_the_column_in_an_unpack) {
  const std::vector<float> rows{5, 6, 7, 8};
  poisoned_buffer<float> out(6);
  unpack(host, one_and_a_pad, full_row,
         field(row_view(rows.data(), 2, 2), batch_view(out.data(), 1, 3, 2), column_function{}));
  BOOST_TEST(out.values() == (std::vector<float>{5, 6, 0, 1, 0, 1}), per_element());
}

BOOST_AUTO_TEST_CASE(empty_payload) {
  const int source[] = {7};
  poisoned_buffer<int> out(2);
  pack(host, one_and_a_pad, full_row,
       field(batch_view(source, 1, 1, 0), row_view(out.data(), 2, 0)));
  unpack(host, one_and_a_pad, full_row,
         field(row_view<const int>(nullptr, 2, 0), batch_view(out.data(), 1, 1, 0)));
  BOOST_TEST(out.untouched());
}

BOOST_AUTO_TEST_CASE(negative_sizes_are_refused) {
  int memory[1] = {};
  BOOST_CHECK_EXCEPTION(row_view(memory, -1), invalid_input, refused("rows", "-1", "0"));
  BOOST_CHECK_EXCEPTION(row_view(memory, 1, -2), invalid_input, refused("payload", "-2", "0"));
  BOOST_CHECK_EXCEPTION(batch_view(memory, -1, 1), invalid_input, refused("batch", "-1", "0"));
  BOOST_CHECK_EXCEPTION(batch_view(memory, 1, -3), invalid_input, refused("width", "-3", "0"));
  BOOST_CHECK_EXCEPTION(batch_view(memory, 1, 1, -4), invalid_input, refused("payload", "-4", "0"));
  const int offsets[] = {0};
  BOOST_CHECK_EXCEPTION(ragged_view(row_view(memory, 1), offsets, -1), invalid_input,
                        refused("batch", "-1", "0"));
}

BOOST_AUTO_TEST_CASE(null_is_legal_where_nothing_is_read_or_written) {
  const auto empty = make_layout(std::vector{0}, padding{each_multiple_of<2>{}});
  pack(host, empty, full_row,
       field(batch_view<const int>(nullptr, 1, 0), row_view<int>(nullptr, 0)));
  unpack(host, empty, full_row,
         field(row_view<const int>(nullptr, 0), batch_view<int>(nullptr, 1, 0)));
  per_token(host, empty, full_row, position_ids(row_view<int>(nullptr, 0)));
  BOOST_TEST(empty.total_tokens() == 0);
}

// Last, because a library that does not check these reads or writes at address 0.

BOOST_AUTO_TEST_CASE(null_source_of_a_pack) {
  poisoned_buffer<int> out(2);
  BOOST_CHECK_EXCEPTION(
      pack(host, one_and_a_pad, full_row, field(batch_view<const int>(nullptr, 1, 1), out.span())),
      invalid_input, refused_as("field 0's source is null: it must point to 1 elements"));
  BOOST_TEST(out.untouched());
}

BOOST_AUTO_TEST_CASE(null_target_of_an_unpack) {
  const std::vector<int> rows{7, 8};
  BOOST_CHECK_EXCEPTION(
      unpack(host, one_and_a_pad, full_row, field(rows, batch_view<int>(nullptr, 1, 1))),
      invalid_input, refused_as("field 0's target is null: it must point to 1 elements"));
}

BOOST_AUTO_TEST_CASE(null_tokens_of_labels) {
  const auto two = make_layout(std::vector{2});
  poisoned_buffer<int> out(2);
  BOOST_CHECK_EXCEPTION(
      per_token(host, two, full_row, labels(batch_view<const int>(nullptr, 1, 2), out.span())),
      invalid_input, refused_as("array 0's tokens is null: it must point to 2 elements"));
  BOOST_TEST(out.untouched());
}

BOOST_AUTO_TEST_CASE(null_bounds_of_a_view) {
  const int source[] = {7};
  poisoned_buffer<int> out(2);
  const std::int32_t* const nothing = nullptr;
  BOOST_CHECK_EXCEPTION(
      pack(host, one_and_a_pad, full_row,
           field(left_padded_view(batch_view(source, 1, 1), nothing), out.span())),
      invalid_input, refused_as("field 0's source bounds is null: it must point to 1 elements"));
  BOOST_CHECK_EXCEPTION(pack(host, one_and_a_pad, full_row,
                             field(ragged_view(row_view(source), nothing, 1), out.span())),
                        invalid_input,
                        refused_as("field 0's source bounds is null: it must point to 1 elements"));
  BOOST_TEST(out.untouched());
}

BOOST_AUTO_TEST_CASE(fills_that_the_element_type_cannot_hold) {
  const std::vector<std::int8_t> source{7};
  std::vector<std::int8_t> row(2);
  const batch_view batch(source.data(), 1, 1);
  BOOST_CHECK_EXCEPTION(field(batch, row, 300), invalid_input,
                        refused("fill", "300", "-128 to 127"));
  BOOST_CHECK_EXCEPTION(field(batch, row, ~std::uint64_t{0}), invalid_input,
                        refused("fill", "18446744073709551615", "127"));
  const std::vector<std::int64_t> negative{7};
  std::vector<std::int64_t> negative_row(2);
  BOOST_CHECK_EXCEPTION(
      field(batch_view(negative.data(), 1, 1), negative_row, ~std::uint64_t{0}), invalid_input,
      refused("fill", "18446744073709551615", "-9223372036854775808 to 9223372036854775807"));
  const std::vector<std::uint64_t> wide{7};
  std::vector<std::uint64_t> wide_row(2);
  BOOST_CHECK_EXCEPTION(field(batch_view(wide.data(), 1, 1), wide_row, -1), invalid_input,
                        refused("fill", "-1", "0 to 18446744073709551615"));
  pack(host, one_and_a_pad, full_row, field(batch_view(wide.data(), 1, 1), wide_row, ~0ULL));
  BOOST_TEST(wide_row[1] == ~std::uint64_t{0});
}
