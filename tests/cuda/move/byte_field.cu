// Fields of a run-time element type on the device, against the host, which has its own tests against
// the definitions.
#include <boost/test/unit_test.hpp>

#include <random>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"

BOOST_AUTO_TEST_SUITE(move_byte_field)

using namespace seqpack;
using testing::captured_call;
using testing::device_array;
using testing::needs_device;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

using bytes = std::vector<std::byte>;

bytes random_bytes(std::mt19937& random, offset_t count) {
  bytes result(static_cast<std::size_t>(count));
  for (std::byte& b : result) b = static_cast<std::byte>(random());
  return result;
}

constexpr offset_t batch = 8;
constexpr offset_t width = 8;

auto some_layout() {
  return make_layout(std::vector{5, 0, 3, 8, 1, 7, 8, 2}, padding{each_multiple_of<4>{}},
                     context_parallel<2>{});
}

/// Memory `offset` bytes behind a 16-byte boundary on both sides.
void check(offset_t size, offset_t payload, std::size_t offset) {
  const testing::test_stream stream;
  std::mt19937 random(static_cast<unsigned>(size * 100 + payload));
  const auto layout = some_layout();
  const auto on_device = to_device(stream.executor(), layout);
  const offset_t rows = layout.total_tokens();
  const bytes fill = size % 8 == 4 ? bytes{} : random_bytes(random, size);
  const bytes input = random_bytes(random, batch * width * size * payload);
  const device_array<std::byte> device_input(input, offset);
  bytes row(static_cast<std::size_t>(rows * size * payload));
  const device_array<std::byte> device_row(row.size(), offset);
  bytes back(input.size());
  const device_array<std::byte> device_back(back.size(), offset);

  const auto pack_field = [&](const std::byte* from, std::byte* to) {
    return byte_field(byte_batch(from, size, batch, width, payload),
                      byte_rows(to, size, rows, payload), size, fill);
  };
  const auto unpack_field = [&](const std::byte* from, std::byte* to) {
    return byte_field(byte_rows(from, size, rows, payload),
                      byte_batch(to, size, batch, width, payload), size, fill);
  };
  pack(host, layout, all_shards, pack_field(input.data(), row.data()));
  unpack(host, layout, all_shards, unpack_field(row.data(), back.data()));
  pack(stream.executor(), on_device, all_shards,
       pack_field(device_input.data(), device_row.data()));
  unpack(stream.executor(), on_device, all_shards,
         unpack_field(device_row.data(), device_back.data()));
  stream.wait();
  BOOST_TEST((device_row.values() == row), size << " bytes, payload " << payload << ", " << offset);
  BOOST_TEST((device_back.values() == back),
             size << " bytes, payload " << payload << ", " << offset);
  BOOST_TEST((device_row.guards_intact() && device_back.guards_intact()));
}

}  // namespace

BOOST_AUTO_TEST_CASE(elements_of_all_sizes_at_all_addresses) {
  for (const offset_t size : {1, 2, 3, 4, 8, 12, 16, 24}) {
    for (const offset_t payload : {1, 7, 64}) {
      for (const std::size_t offset : {0, 4, 5}) check(size, payload, offset);
    }
  }
}

BOOST_AUTO_TEST_CASE(beside_a_field_of_a_type_in_one_launch) {
  const testing::test_stream stream;
  const auto layout = some_layout();
  const auto on_device = to_device(stream.executor(), layout);
  const offset_t rows = layout.total_tokens();
  std::vector<int> ids(static_cast<std::size_t>(batch * width));
  std::vector<double> weights(ids.size());
  for (std::size_t k = 0; k < ids.size(); ++k) {
    ids[k] = static_cast<int>(k);
    weights[k] = 0.5 * static_cast<double>(k);
  }
  const double pad = -1;
  const device_array<int> device_ids(ids);
  const device_array<double> device_weights(weights);
  const device_array<int> packed_ids(static_cast<std::size_t>(rows));
  const device_array<double> packed_weights(static_cast<std::size_t>(rows));
  const captured_call call(stream, [&] {
    pack(stream.executor(), on_device, full_row,
         field(batch_view<const int>(device_ids.data(), batch, width),
               row_view<int>(packed_ids.data(), rows), -7),
         byte_field(byte_batch(device_weights.data(), 8, batch, width),
                    byte_rows(packed_weights.data(), 8, rows), 8,
                    std::as_bytes(std::span(&pad, 1))));
  });
  BOOST_TEST(call.launches == 1);
  BOOST_TEST(call.memsets + call.others == 0);
  call.replay(stream);
  stream.wait();
  const auto found_ids = packed_ids.values();
  const auto found_weights = packed_weights.values();
  for (std::size_t k = 0; k < found_ids.size(); ++k) {
    BOOST_TEST(found_weights[k] == (found_ids[k] == -7 ? -1 : 0.5 * found_ids[k]));
  }
  BOOST_TEST(found_ids[4] == 4);
  BOOST_TEST(found_ids[5] == -7);
  BOOST_TEST((packed_ids.guards_intact() && packed_weights.guards_intact()));
}

BOOST_AUTO_TEST_SUITE_END()
