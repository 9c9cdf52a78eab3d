#define BOOST_TEST_MODULE view
#include "seqpack/core/view.hpp"
#include "support/refused.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

using namespace seqpack;
using seqpack::testing::refusal;

namespace {

/// The least that has the members of std::mdspan.
template <class T, std::size_t Rank>
struct strided {
  using element_type = T;

  T* data;
  std::array<offset_t, Rank> sizes;
  std::array<offset_t, Rank> strides;

  static constexpr std::size_t rank() { return Rank; }
  constexpr offset_t extent(std::size_t r) const { return sizes[r]; }
  constexpr offset_t stride(std::size_t r) const { return strides[r]; }
  constexpr T* data_handle() const { return data; }
};

struct pair_of_bytes {
  std::uint8_t first, second;
};

template <class View>
void check_footprint(const View& view, const void* first, const void* last) {
  BOOST_TEST(reinterpret_cast<const void*>(view.touched().first) == first);
  BOOST_TEST(reinterpret_cast<const void*>(view.touched().last) == last);
}

/// locate and first_position number the columns of all rows in order.
template <token_table Table>
void check_positions(const Table& table) {
  offset_t position = 0;
  for (offset_t b = 0; b < table.batch(); ++b) {
    BOOST_TEST(table.first_position(b) == position);
    for (offset_t column = 0; column < table.columns(b); ++column, ++position) {
      BOOST_TEST(table.locate(position).row == b);
      BOOST_TEST(table.locate(position).column == column);
    }
  }
  BOOST_TEST(table.positions() == position);
}

}  // namespace

static_assert(element<int> && element<bool> && element<double> && element<pair_of_bytes>);
static_assert(!element<std::string> && !element<int&> && !element<void>);

static_assert(mdspan_like<strided<float, 2>>);
static_assert(!mdspan_like<std::vector<float>> && !mdspan_like<int>);

static_assert(token_table<batch_view<int>> && token_table<batch_view<const int>>);
static_assert(token_table<left_padded_view<float, std::int64_t>>);
static_assert(token_table<ragged_view<const pair_of_bytes, std::int32_t>>);
static_assert(!token_table<row_view<int>> && !token_table<std::vector<int>> && !token_table<int>);

static_assert(std::is_trivially_copyable_v<row_view<int>>);
static_assert(std::is_convertible_v<row_view<int>, row_view<const int>>);
static_assert(!std::is_convertible_v<row_view<const int>, row_view<int>>);
static_assert(std::is_convertible_v<batch_view<int>, batch_view<const int>>);
static_assert(!std::is_convertible_v<batch_view<const int>, batch_view<int>>);

// A view of a temporary would dangle; a view of a borrowed range does not.
static_assert(!std::is_constructible_v<row_view<int>, std::vector<int>>);
static_assert(std::is_constructible_v<row_view<int>, std::span<int>>);
static_assert(!std::is_constructible_v<row_view<float>, std::vector<int>&>);

static_assert(detail::bounds_in_memory<ragged_view<int, int>> &&
              !detail::bounds_in_memory<batch_view<int>>);
static_assert(detail::bounds_in_memory<left_padded_view<int, int>>);
static_assert(detail::is_ragged<ragged_view<int, int>> && !detail::is_ragged<batch_view<int>>);

BOOST_AUTO_TEST_CASE(footprints_overlap_where_they_share_a_byte) {
  const auto range = [](unsigned first, unsigned last) {
    return footprint{0x1000U + first, 0x1000U + last};
  };
  BOOST_TEST(range(0, 4).overlaps(range(3, 5)));
  BOOST_TEST(range(3, 5).overlaps(range(0, 4)));
  BOOST_TEST(range(0, 8).overlaps(range(2, 3)));
  BOOST_TEST(range(2, 3).overlaps(range(0, 8)));
  BOOST_TEST(!range(0, 4).overlaps(range(4, 8)));
  BOOST_TEST(!range(4, 8).overlaps(range(0, 4)));
  BOOST_TEST(!range(2, 2).overlaps(range(0, 8)));
  BOOST_TEST(!range(0, 8).overlaps(range(2, 2)));
}

BOOST_AUTO_TEST_CASE(row_view_of_ranges) {
  std::vector<int> values{1, 2, 3};
  const row_view row(values);
  static_assert(std::same_as<decltype(row), const row_view<int>>);
  BOOST_TEST(row.rows == 3);
  BOOST_TEST(row.payload == 1);
  BOOST_TEST(row.at(2) == values.data() + 2);

  const std::vector<int>& read_only = values;
  static_assert(std::same_as<decltype(row_view(read_only)), row_view<const int>>);
  std::array<std::int16_t, 2> array{};
  BOOST_TEST(row_view(array).rows == 2);
  BOOST_TEST(row_view(std::span(values).first(1)).rows == 1);
  std::vector<int> nothing;
  BOOST_TEST(row_view(nothing).rows == 0);
}

BOOST_AUTO_TEST_CASE(row_view_that_only_reads) {
  std::vector<int> writable{1, 2, 3};
  const row_view<const int> rows = writable;
  BOOST_TEST(rows.data == writable.data());
  BOOST_TEST(rows.rows == 3);
  static_assert(!std::convertible_to<const std::vector<int>&, row_view<int>>);
  static_assert(!std::convertible_to<std::vector<int>, row_view<const int>>);
}

BOOST_AUTO_TEST_CASE(row_view_with_a_payload) {
  std::vector<double> values(12);
  const row_view row(values.data(), 4, 3);
  BOOST_TEST(row.at(2) == values.data() + 6);
  check_footprint(row, values.data(), values.data() + 12);
  const row_view<const double> read_only = row;
  BOOST_TEST(read_only.at(1) == values.data() + 3);
  BOOST_TEST(read_only.payload == 3);
}

BOOST_AUTO_TEST_CASE(row_view_of_an_mdspan) {
  std::vector<float> values(24);
  const row_view flat(strided<float, 1>{values.data(), {24}, {1}});
  BOOST_TEST(flat.rows == 24);
  BOOST_TEST(flat.payload == 1);
  const row_view nested(strided<float, 3>{values.data(), {4, 2, 3}, {6, 3, 1}});
  BOOST_TEST(nested.rows == 4);
  BOOST_TEST(nested.payload == 6);
  // The strides of dimensions of size 1 address nothing.
  const row_view single(strided<float, 3>{values.data(), {1, 1, 6}, {99, 77, 1}});
  BOOST_TEST(single.payload == 6);
}

BOOST_AUTO_TEST_CASE(row_view_refuses_what_is_not_contiguous) {
  std::vector<float> values(24);
  BOOST_TEST(refusal([&] { row_view(strided<float, 2>{values.data(), {4, 3}, {6, 1}}); }) ==
             "stride of dimension 0 is 6: packed rows must be contiguous, so it must be 3");
  BOOST_TEST(refusal([&] { row_view(strided<float, 2>{values.data(), {4, 3}, {6, 2}}); }) ==
             "stride of dimension 1 is 2: the payload of a token must be contiguous, so it must "
             "be 1");
  BOOST_TEST(refusal([&] { row_view(values.data(), -1); }) ==
             "rows is -1: a size must be at least 0");
  BOOST_TEST(refusal([&] { row_view(values.data(), 1, -2); }) ==
             "payload is -2: a size must be at least 0");
}

BOOST_AUTO_TEST_CASE(dense_batch_view) {
  std::vector<int> values(24);
  const batch_view batch(values.data(), 3, 4, 2);
  BOOST_TEST(batch.batch() == 3);
  BOOST_TEST(batch.width() == 4);
  BOOST_TEST(batch.payload() == 2);
  BOOST_TEST(batch.at(2, 3) == values.data() + 22);
  BOOST_TEST(batch.lead(1) == 0);
  check_footprint(batch, values.data(), values.data() + 24);
  check_positions(batch);
}

BOOST_AUTO_TEST_CASE(case_63_strided_batch_views) {
  std::vector<int> values(24);
  // The transpose of a dense [4, 3].
  const batch_view transposed(values.data(), 3, 4, 1, 1, 3);
  BOOST_TEST(transposed.at(2, 3) == values.data() + 11);
  check_footprint(transposed, values.data(), values.data() + 12);
  // Every second column of a dense [3, 8].
  const batch_view thinned(values.data(), 3, 4, 1, 8, 2);
  BOOST_TEST(thinned.at(1, 2) == values.data() + 12);
  check_footprint(thinned, values.data(), values.data() + 23);
  check_positions(thinned);
}

BOOST_AUTO_TEST_CASE(reversed_batch_view) {
  std::vector<int> values(12);
  const batch_view reversed(values.data() + 11, 3, 4, 1, -4, -1);
  BOOST_TEST(reversed.at(2, 3) == values.data());
  check_footprint(reversed, values.data(), values.data() + 12);
}

BOOST_AUTO_TEST_CASE(an_empty_batch_touches_nothing) {
  int value = 0;
  const footprint whole = row_view(&value, 1).touched();
  BOOST_TEST(!batch_view(&value, 0, 4).touched().overlaps(whole));
  BOOST_TEST(!batch_view(&value, 4, 0).touched().overlaps(whole));
  BOOST_TEST(!batch_view(&value, 4, 4, 0).touched().overlaps(whole));
  BOOST_TEST(batch_view(&value, 1, 1).touched().overlaps(whole));
}

BOOST_AUTO_TEST_CASE(batch_view_of_an_mdspan) {
  std::vector<float> values(48);
  const batch_view plain(strided<float, 2>{values.data(), {3, 4}, {8, 2}});
  BOOST_TEST(plain.at(1, 1) == values.data() + 10);
  BOOST_TEST(plain.payload() == 1);
  const batch_view nested(strided<float, 4>{values.data(), {2, 4, 2, 3}, {6, 12, 3, 1}});
  BOOST_TEST(nested.at(1, 2) == values.data() + 30);
  BOOST_TEST(nested.payload() == 6);
  BOOST_TEST(
      refusal([&] { batch_view(strided<float, 3>{values.data(), {2, 4, 3}, {24, 6, 2}}); }) ==
      "stride of dimension 2 is 2: the payload of a token must be contiguous, so it must "
      "be 1");
}

BOOST_AUTO_TEST_CASE(batch_view_refuses_negative_sizes) {
  int* const none = nullptr;
  BOOST_TEST(refusal([&] { batch_view(none, -1, 4); }) == "batch is -1: a size must be at least 0");
  BOOST_TEST(refusal([&] { batch_view(none, 1, -4); }) == "width is -4: a size must be at least 0");
  BOOST_TEST(refusal([&] { batch_view(none, 1, 4, -2); }) ==
             "payload is -2: a size must be at least 0");
}

BOOST_AUTO_TEST_CASE(left_padded_view_adds_a_start_column) {
  std::vector<int> values(8);
  const std::array<std::int64_t, 2> starts{1, 3};
  const left_padded_view view(batch_view(values.data(), 2, 4), starts.data());
  BOOST_TEST(view.lead(0) == 1);
  BOOST_TEST(view.lead(1) == 3);
  BOOST_TEST(view.columns(1) == 4);
  BOOST_TEST(view.at(1, view.lead(1)) == values.data() + 7);
  check_positions(view);
  check_footprint(view, values.data(), values.data() + 8);
}

BOOST_AUTO_TEST_CASE(ragged_view_with_empty_rows) {
  std::vector<int> values(10);
  const std::array offsets{0, 0, 3, 3, 5, 5};
  const ragged_view view(row_view(values.data(), 5, 2), offsets.data(), 5);
  BOOST_TEST(view.batch() == 5);
  BOOST_TEST(view.payload() == 2);
  BOOST_TEST(view.columns(0) == 0);
  BOOST_TEST(view.columns(1) == 3);
  BOOST_TEST(view.at(3, 1) == values.data() + 8);
  BOOST_TEST(view.lead(3) == 0);
  check_positions(view);
  check_footprint(view, values.data(), values.data() + 10);
  BOOST_TEST(refusal([&] { ragged_view(row_view(values), offsets.data(), -1); }) ==
             "batch is -1: a size must be at least 0");
}

BOOST_AUTO_TEST_CASE(case_58_sizes_above_32_bits) {
  // Only addresses are computed: nothing is read.
  auto* const base = reinterpret_cast<std::uint8_t*>(std::uintptr_t{1} << 40);
  const batch_view batch(base, 9, 8192, 32768);
  BOOST_TEST(batch.at(8, 0) - base == 2147483648);
  BOOST_TEST(batch.at(8, 8191) + 32767 - base == 2415919103);
  BOOST_TEST(batch.touched().last - batch.touched().first == 2415919104);
  const row_view row(base, 65537, 32768);
  BOOST_TEST(row.at(65536) - base == 2147483648);
  BOOST_TEST(row.touched().last - row.touched().first == 2147516416);
  const batch_view tokens(base, offset_t{1} << 17, offset_t{1} << 17);
  BOOST_TEST(tokens.positions() == offset_t{1} << 34);
  BOOST_TEST(tokens.locate((offset_t{1} << 33) + 5).row == 65536);
  BOOST_TEST(tokens.locate((offset_t{1} << 33) + 5).column == 5);
}

BOOST_AUTO_TEST_CASE(the_lowest_address_bit_is_the_alignment) {
  const auto alignment = [](const auto& view) {
    const std::uint64_t bits = view.address_bits();
    return bits & (~bits + 1);
  };
  alignas(64) std::array<float, 64> values{};
  BOOST_TEST(alignment(row_view(values.data(), 4, 4)) == 16U);
  BOOST_TEST(alignment(row_view(values.data(), 4, 3)) == 4U);
  BOOST_TEST(alignment(row_view(values.data() + 1, 4, 4)) == 4U);
  BOOST_TEST(alignment(row_view(values.data() + 2, 4, 4)) == 8U);
  BOOST_TEST(alignment(batch_view(values.data(), 2, 2, 8)) == 32U);
  BOOST_TEST(alignment(batch_view(values.data(), 2, 2, 8, 18, 8)) == 8U);
  BOOST_TEST(alignment(batch_view(values.data(), 1, 2, 8, 18, 8)) == 32U);
  BOOST_TEST(alignment(batch_view(values.data(), 2, 2, 8, 32, 9)) == 4U);
}
