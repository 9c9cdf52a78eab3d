// Tiles on the device: fields of many tiles, tiles of more sequences than a window holds, rows of
// several tiles, rows at any address. Beside the host, whose own tests are against the definitions.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"

BOOST_AUTO_TEST_SUITE(move_tiles)

using namespace seqpack;
using testing::device_array;
using testing::needs_device;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

std::mt19937 random_source(41);

template <class T>
std::vector<T> random_elements(offset_t count) {
  std::vector<T> result(static_cast<std::size_t>(count));
  auto* const bytes = reinterpret_cast<unsigned char*>(result.data());
  for (std::size_t k = 0; k < result.size() * sizeof(T); ++k) {
    bytes[k] = static_cast<unsigned char>(random_source());
  }
  return result;
}

std::vector<std::int32_t> lengths_below(offset_t batch, unsigned limit, unsigned empty_of_ten) {
  std::vector<std::int32_t> lengths;
  for (offset_t b = 0; b < batch; ++b) {
    const bool empty = random_source() % 10 < empty_of_ten;
    lengths.push_back(empty ? 0 : static_cast<std::int32_t>(random_source() % limit));
  }
  return lengths;
}

template <class T>
void check_same(const device_array<T>& found, const std::vector<T>& expected) {
  const std::vector<T> values = found.values();
  BOOST_TEST(values.size() == expected.size());
  BOOST_TEST(std::memcmp(values.data(), expected.data(), expected.size() * sizeof(T)) == 0);
  BOOST_TEST(found.guards_intact());
}

using layout_type = packed_layout<context_parallel<2>>;

/// pack, unpack and rearrange of one field, each beside the host; offsets are bytes.
template <class T>
void check_moves(const layout_type& layout, offset_t width, offset_t payload,
                 std::size_t from_offset, std::size_t to_offset) {
  const testing::test_stream stream;
  const auto where = stream.executor();
  const auto placed = to_device(where, layout);
  const offset_t batch = layout.batch_size();
  const offset_t rows = layout.total_tokens();
  const auto source = random_elements<T>(batch * width * payload);
  const auto packed = random_elements<T>(rows * payload);
  const device_array<T> device_source(source, from_offset);
  const device_array<T> device_packed(packed, from_offset);
  const T fill = random_elements<T>(1).front();

  std::vector<T> expected(packed.size());
  const device_array<T> row(packed.size(), to_offset);
  const auto packed_field = [&](const T* from, T* to) {
    return field(batch_view<const T>(from, batch, width, payload), row_view<T>(to, rows, payload),
                 fill);
  };
  pack(host, layout, all_shards, packed_field(source.data(), expected.data()));
  pack(where, placed, all_shards, packed_field(device_source.data(), row.data()));
  stream.wait();
  check_same(row, expected);

  const auto moved_field = [&](const T* from, T* to) {
    return field(row_view<const T>(from, rows, payload), row_view<T>(to, rows, payload));
  };
  rearrange(host, layout, all_shards, full_row, moved_field(packed.data(), expected.data()));
  rearrange(where, placed, all_shards, full_row, moved_field(device_packed.data(), row.data()));
  stream.wait();
  check_same(row, expected);

  std::vector<T> batch_expected(source.size());
  const device_array<T> back(source.size(), to_offset);
  const auto unpacked_field = [&](const T* from, T* to) {
    return field(row_view<const T>(from, rows, payload), batch_view<T>(to, batch, width, payload),
                 fill);
  };
  unpack(host, layout, full_row, unpacked_field(packed.data(), batch_expected.data()));
  unpack(where, placed, full_row, unpacked_field(device_packed.data(), back.data()));
  stream.wait();
  check_same(back, batch_expected);
}

layout_type layout_of(const std::vector<std::int32_t>& lengths, offset_t each,
                      const layout_options& options = {}) {
  return make_layout(lengths, padding{each_multiple_of<>{each}, ghost_tail{}},
                     context_parallel<2>{}, options);
}

}  // namespace

BOOST_AUTO_TEST_CASE(ids_of_many_sequences) {
  // Tiles of 2048 rows: of more sequences than a window holds, of fewer, and mostly of empty ones.
  check_moves<std::int32_t>(layout_of(lengths_below(4000, 5, 2), 4), 4, 1, 0, 0);
  check_moves<std::int32_t>(layout_of(lengths_below(4000, 4, 9), 4), 3, 1, 4, 8);
  check_moves<std::int32_t>(layout_of(lengths_below(200, 100, 1), 4), 99, 1, 0, 0);
}

BOOST_AUTO_TEST_CASE(bytes) {
  for (const offset_t payload : {1, 3, 20, 64, 65, 200}) {
    for (const std::size_t from : {0, 1, 8, 13}) {
      for (const std::size_t to : {0, 2, 7}) {
        check_moves<std::uint8_t>(layout_of(lengths_below(40, 30, 1), 4), 29, payload, from, to);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_of_several_tiles) {
  // 16 * 4096 bytes fill a tile.
  for (const offset_t payload : {16384, 16400, 20001, 40000}) {
    check_moves<std::int32_t>(layout_of({3, 0, 5, 1}, 4), 5, payload, 0, 0);
    check_moves<std::int32_t>(layout_of({3, 0, 5, 1}, 4), 5, payload, 4, 12);
  }
  check_moves<std::uint8_t>(layout_of({3, 0, 5, 1}, 4), 5, 70001, 1, 0);
}

BOOST_AUTO_TEST_CASE(rows_of_an_order) {
  const auto lengths = lengths_below(700, 12, 2);
  std::vector<offset_t> order(600);
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = static_cast<offset_t>(k * 11 % 700);
  const auto layout = layout_of(lengths, 8, {.order = order});
  check_moves<std::int32_t>(layout, 11, 1, 0, 0);
  check_moves<std::uint8_t>(layout, 11, 40, 0, 0);
}

BOOST_AUTO_TEST_SUITE_END()
