// Sizes above 2^31, and many sequences.
#define BOOST_TEST_MODULE large
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/tokens/per_token.hpp"
#include "support/as_device.hpp"
#include "support/refused.hpp"
#include "support/sparse_memory.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

// Sanitizers slow whole passes over gigabytes down too much; the parts below run there too.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

boost::test_tools::assertion_result unsanitized(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(!sanitized);
  result.message() << "whole passes over gigabytes are skipped under sanitizers";
  return result;
}

constexpr offset_t tokens = 65537;
constexpr offset_t payload = 32768;
constexpr offset_t elements = tokens * payload;
static_assert(elements == 2147516416);

/// Marks that tell a wrapped offset: the first token, both sides of 2^31, and the last token.
const offset_t marks[] = {0, payload - 1, 2147483647, 2147483648, elements - 1};

template <class T>
void set_marks(const sparse_memory<T>& memory) {
  T value = 1;
  for (const offset_t mark : marks) memory[mark] = value++;
}

template <class T>
void check_marks(const sparse_memory<T>& memory) {
  int value = 1;
  for (const offset_t mark : marks) BOOST_TEST(int{memory[mark]} == value++);
}

/// Runs the tile that writes a byte of a dense target, which begins at a multiple of 16.
template <class Op>
void run_tile_of(const Op& op, offset_t byte) {
  const detail::tile_shape& shape = op.moves.move.shape;
  const offset_t row = byte / shape.row_bytes();
  const offset_t within = byte % shape.row_bytes();
  const offset_t skew = row * shape.row_bytes() % 16;
  const offset_t unit =
      shape.blocks() ? (skew + within) / 16 : within / offset_t{shape.units().bytes()};
  for (offset_t tile = 0; tile < op.tiles(); ++tile) {
    const detail::tile_span span = shape.span(tile);
    if (row < span.first_row || row >= span.first_row + span.rows) continue;
    if (unit < span.first_unit || unit >= span.first_unit + span.width) continue;
    return run_tiles(op, tile, tile + 1);
  }
  BOOST_FAIL("no tile writes byte " << byte);
}

}  // namespace

BOOST_AUTO_TEST_CASE(pack_and_unpack_more_than_two_to_the_31_elements,
                     *boost::unit_test::precondition(unsanitized)) {
  const auto layout = make_layout(std::vector{tokens});
  const sparse_memory<std::int8_t> source(elements);
  const sparse_memory<std::int8_t> target(elements);
  set_marks(source);
  pack(host, layout, full_row,
       field(batch_view(source.data(), 1, tokens, payload),
             row_view(target.data(), tokens, payload)));
  check_marks(target);
  for (const offset_t mark : marks) target[mark] = 99;
  unpack(host, layout, full_row,
         field(row_view<const std::int8_t>(source.data(), tokens, payload),
               batch_view(target.data(), 1, tokens, payload)));
  check_marks(target);
}

BOOST_AUTO_TEST_CASE(the_last_rows_and_tiles_of_more_than_two_to_the_31_elements) {
  const auto layout = make_layout(std::vector{tokens});
  const sparse_memory<std::int8_t> source(elements);
  set_marks(source);
  const sparse_memory<std::int8_t> target(elements);
  const auto move =
      detail::packing::make_operation(layout.view(), full_row,
                                      field(batch_view(source.data(), 1, tokens, payload),
                                            row_view(target.data(), tokens, payload)));
  for (const offset_t mark : marks) {
    target[mark] = 99;
    run_tile_of(move, mark);
  }
  check_marks(target);
  for (const offset_t mark : marks) {
    target[mark] = 99;
    move.process(mark / payload, mark / payload + 1);
  }
  check_marks(target);
}

BOOST_AUTO_TEST_CASE(rows_at_odd_addresses_above_two_to_the_31) {
  constexpr offset_t width = 32769;
  const auto layout = make_layout(std::vector{tokens});
  const sparse_memory<std::int8_t> source(tokens * width);
  const sparse_memory<std::int8_t> target(tokens * width);
  const auto move = detail::packing::make_operation(
      layout.view(), full_row,
      field(batch_view(source.data(), 1, tokens, width), row_view(target.data(), tokens, width)));
  const offset_t last = tokens * width - 1;
  source[last] = 42;
  source[2147483648] = 43;
  run_tile_of(move, last);
  run_tile_of(move, 2147483648);
  BOOST_TEST(int{target[last]} == 42);
  BOOST_TEST(int{target[2147483648]} == 43);
}

BOOST_AUTO_TEST_CASE(packed_tokens_times_elements_above_two_to_the_31) {
  constexpr offset_t count = 190485;
  constexpr offset_t width = 11300;
  static_assert(count * width > 2147483648);
  const auto layout = make_layout(std::vector{count - 5, offset_t{5}});
  const sparse_memory<std::int8_t> source(2 * (count - 5) * width);
  source[count * width - 1] = 42;  // the last real element of sequence 1
  const sparse_memory<std::int8_t> row(count * width);
  const auto move = detail::packing::make_operation(
      layout.view(), full_row,
      field(batch_view(source.data(), 2, count - 5, width), row_view(row.data(), count, width)));
  move.process(count - 10, count);
  BOOST_TEST(int{row[count * width - 1]} == 42);
  BOOST_TEST(int{row[count * width - 2]} == 0);
}

BOOST_AUTO_TEST_CASE(total_above_the_range_of_32_bits) {
  constexpr offset_t half = offset_t{1} << 30;
  const std::vector<offset_t> lengths{half, half, half};
  BOOST_CHECK_EXCEPTION(make_layout(lengths), invalid_input,
                        refused_as("sum of the padded lengths is 3221225472: it must be at most "
                                   "2147483647, the range of the type of cu_seqlens"));
  const auto layout = make_layout<std::int64_t>(lengths);
  BOOST_TEST(layout.total_tokens() == 3 * half);
  const sparse_memory<std::int8_t> source(3 * half);
  source[3 * half - 1] = 7;
  const sparse_memory<std::int8_t> row(3 * half);
  const auto move = detail::packing::make_operation(
      layout.view(), full_row,
      field(batch_view(source.data(), 3, half), row_view(row.data(), 3 * half)));
  move.process(3 * half - 1, 3 * half);
  BOOST_TEST(int{row[3 * half - 1]} == 7);
  row[3 * half - 1] = 0;
  run_tile_of(move, 3 * half - 1);
  BOOST_TEST(int{row[3 * half - 1]} == 7);
}

namespace {

/// Packs, labels and unpacks `count` sequences of length 0 to 3, each padded to 4 and cut in two,
/// and compares with loops over the definition.
void check_many(offset_t count) {
  constexpr offset_t width = 3;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> table;
  for (offset_t b = 0; b < count; ++b) {
    lengths.push_back(static_cast<std::int32_t>((b * 7 + b / 5) % 4));
    for (offset_t s = 0; s < width; ++s) table.push_back(s < lengths.back() ? width * b + s : -1);
  }
  const auto layout = make_layout(lengths, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  std::vector<std::int64_t> rows(static_cast<std::size_t>(layout.total_tokens()), 777);
  std::vector<std::int64_t> next(rows.size(), 777);
  std::vector<std::int32_t> owners(rows.size(), 777);
  const batch_view ids(table.data(), count, width);
  pack(host, layout, all_shards, field(ids, rows, std::int64_t{-2}));
  per_token(host, layout, all_shards, labels(ids, next), sequence_index(owners));

  // A sequence of 1 to 3 tokens has four slots: rank 0 holds 0 and 3, rank 1 holds 1 and 2.
  std::vector<std::int64_t> wanted_rows;
  std::vector<std::int64_t> wanted_next;
  std::vector<std::int32_t> wanted_owners;
  for (const offset_t rank : {0, 1}) {
    for (offset_t b = 0; b < count; ++b) {
      const offset_t length = lengths[static_cast<std::size_t>(b)];
      if (length == 0) continue;
      for (const offset_t s : {rank, 3 - rank}) {
        wanted_rows.push_back(s < length ? width * b + s : -2);
        wanted_next.push_back(s + 1 < length ? width * b + s + 1 : -100);
        wanted_owners.push_back(static_cast<std::int32_t>(b));
      }
    }
  }
  BOOST_TEST((rows == wanted_rows));
  BOOST_TEST((next == wanted_next));
  BOOST_TEST((owners == wanted_owners));

  std::vector<std::int64_t> back(table.size(), 777);
  unpack(host, layout, all_shards, field(rows, batch_view(back.data(), count, width), -1));
  BOOST_TEST((back == table));
}

}  // namespace

BOOST_AUTO_TEST_CASE(sequences_above_two_to_the_16) {
  check_many(65536);
}

BOOST_AUTO_TEST_CASE(a_million_sequences) {
  check_many(1000000);
}
