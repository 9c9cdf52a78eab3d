// unpack on the device, against the definitions and the host.
#include <cuda_fp16.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <numeric>
#include <random>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"
#include "support/oracle.hpp"

BOOST_AUTO_TEST_SUITE(move_unpack)

using namespace seqpack;
using testing::captured_call;
using testing::device_array;
using testing::needs_device;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr offset_t batch_rows = 6;
constexpr offset_t width = 9;
const std::vector<int> lengths{5, 0, 3, 8, 1, 9};

struct fixture {
  testing::test_stream stream;
  padding<each_multiple_of<4>, total_multiple_of<>> policy{each_multiple_of<4>{},
                                                           total_multiple_of<>{32}};
  context_parallel<> cp{2};
  oracle::packed expected =
      oracle::pack({.lens = {5, 0, 3, 8, 1, 9}, .each = 4, .total_multiple = 32, .cp = 2});
  device_layout<decltype(cp)> layout =
      to_device(stream.executor(), make_layout(lengths, policy, cp));
};

/// Numbers that name their position, so that a wrong one is seen.
std::vector<int> sources(std::size_t count) {
  std::vector<int> result(count);
  std::iota(result.begin(), result.end(), 1000);
  return result;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(from_every_place, fixture) {
  const auto check = [&](auto at, const oracle::tokens& place) {
    const auto held = sources(place.size());
    const device_array<int> source(held);
    const device_array<int> target(batch_rows * width);
    const captured_call call(stream, [&] {
      unpack(stream.executor(), layout, at,
             field(row_view<const int>(source.data(), static_cast<offset_t>(held.size())),
                   batch_view<int>(target.data(), batch_rows, width), -5));
    });
    BOOST_TEST(call.launches == 1);
    BOOST_TEST(call.memsets + call.others == 0);
    call.replay(stream);
    stream.wait();
    BOOST_TEST(oracle::to_numbers(target.values()) ==
                   oracle::unpack(place, oracle::to_numbers(held), batch_rows, width, -5),
               boost::test_tools::per_element());
    BOOST_TEST(target.guards_intact());
  };
  stream.wait();
  check(full_row, expected.row);
  check(all_shards, expected.all_shards);
  check(shard{0}, expected.shards[0]);
  check(shard{1}, expected.shards[1]);
}

BOOST_FIXTURE_TEST_CASE(own_tokens_alone, fixture) {
  std::vector<int> table(batch_rows * width, -9);
  device_array<int> target(table);
  for (const offset_t rank : {0, 1}) {
    const auto& place = expected.shards[static_cast<std::size_t>(rank)];
    const auto held = sources(place.size());
    const device_array<int> source(held);
    unpack_own(stream.executor(), layout, shard{rank},
               field(row_view<const int>(source.data(), static_cast<offset_t>(held.size())),
                     batch_view<int>(target.data(), batch_rows, width), -5));
    stream.wait();
    for (std::size_t k = 0; k < place.size(); ++k) {
      if (place[k].real) {
        table[static_cast<std::size_t>(place[k].row * width + place[k].position)] = held[k];
      }
    }
    BOOST_TEST(target.values() == table, boost::test_tools::per_element());
  }
}

BOOST_FIXTURE_TEST_CASE(wide_rows_into_a_strided_target, fixture) {
  constexpr offset_t payload = 5;
  constexpr offset_t token_stride = 7;
  constexpr offset_t batch_stride = width * token_stride + 3;
  const auto held = sources(expected.row.size() * payload);
  const device_array<int> source(held);
  const std::vector<int> poison(batch_rows * batch_stride, -9);
  const device_array<int> target(poison);
  unpack(
      stream.executor(), layout, full_row,
      field(row_view<const int>(source.data(), layout.total_tokens(), payload),
            batch_view<int>(target.data(), batch_rows, width, payload, batch_stride, token_stride),
            -5));
  stream.wait();
  auto table = poison;
  for (offset_t b = 0; b < batch_rows; ++b) {
    for (offset_t s = 0; s < width; ++s) {
      for (offset_t d = 0; d < payload; ++d) {
        table[static_cast<std::size_t>(b * batch_stride + s * token_stride + d)] = -5;
      }
    }
  }
  for (std::size_t t = 0; t < expected.row.size(); ++t) {
    if (!expected.row[t].real) continue;
    for (std::size_t d = 0; d < payload; ++d) {
      table[static_cast<std::size_t>(expected.row[t].row * batch_stride +
                                     expected.row[t].position * token_stride) +
            d] = held[t * payload + d];
    }
  }
  BOOST_TEST(target.values() == table, boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(ragged_and_left_padded, fixture) {
  // Ragged in, packed, ragged out: the values come back.
  std::vector<int> offsets{0};
  for (const int length : lengths) offsets.push_back(offsets.back() + length);
  const auto values = sources(static_cast<std::size_t>(offsets.back()));
  const device_array<int> values_in(values);
  const device_array<int> offsets_in(offsets);
  const device_array<int> packed(static_cast<std::size_t>(layout.total_tokens()));
  const row_view<int> row(packed.data(), layout.total_tokens());
  const row_view<int> ragged_row(values_in.data(), offsets.back());
  const device_array<int> values_out(values.size());
  pack(stream.executor(), layout, all_shards,
       field(ragged_view(ragged_row, offsets_in.data(), batch_rows), row, -1));
  unpack(stream.executor(), layout, all_shards,
         field(row, ragged_view(row_view<int>(values_out.data(), offsets.back()), offsets_in.data(),
                                batch_rows)));
  stream.wait();
  const auto at = [&](offset_t b, offset_t s) {
    return values[static_cast<std::size_t>(offsets[static_cast<std::size_t>(b)] + s)];
  };
  BOOST_TEST(oracle::to_numbers(packed.values()) == oracle::values(expected.all_shards, at, -1),
             boost::test_tools::per_element());
  BOOST_TEST(values_out.values() == values, boost::test_tools::per_element());
  BOOST_TEST(values_out.guards_intact());

  // The same row to a left-padded batch.
  std::vector<int> starts;
  for (const int length : lengths) starts.push_back(static_cast<int>(width) - length);
  const device_array<int> starts_in(starts);
  const device_array<int> target(batch_rows * width);
  unpack(stream.executor(), layout, all_shards,
         field(row,
               left_padded_view(batch_view<int>(target.data(), batch_rows, width),
                                static_cast<const int*>(starts_in.data())),
               -5));
  stream.wait();
  oracle::numbers table(batch_rows * width, -5);
  for (offset_t b = 0; b < batch_rows; ++b) {
    for (offset_t s = 0; s < lengths[static_cast<std::size_t>(b)]; ++s) {
      table[static_cast<std::size_t>(b * width + starts[static_cast<std::size_t>(b)] + s)] =
          at(b, s);
    }
  }
  BOOST_TEST(oracle::to_numbers(target.values()) == table, boost::test_tools::per_element());
}

namespace {

struct twelve_bytes {
  std::uint32_t a, b, c;
};

/// Packed and unpacked, the real tokens come back byte for byte, and the rest is the fill.
template <class T>
void check_round_trip(const char* name, offset_t payload) {
  const fixture f;
  std::mt19937 random(11);
  std::vector<T> table(static_cast<std::size_t>(batch_rows * width * payload));
  auto* const bytes = reinterpret_cast<unsigned char*>(table.data());
  for (std::size_t k = 0; k < table.size() * sizeof(T); ++k) {
    bytes[k] = static_cast<unsigned char>(random());
  }
  for (offset_t b = 0; b < batch_rows; ++b) {
    for (offset_t s = lengths[static_cast<std::size_t>(b)]; s < width; ++s) {
      for (offset_t d = 0; d < payload; ++d) {
        table[static_cast<std::size_t>((b * width + s) * payload + d)] = T{};
      }
    }
  }
  const device_array<T> in(table);
  const device_array<T> shards(static_cast<std::size_t>(f.layout.total_tokens() * payload));
  const device_array<T> out(table.size());
  const row_view<T> rows(shards.data(), f.layout.total_tokens(), payload);
  pack(f.stream.executor(), f.layout, all_shards,
       field(batch_view<const T>(in.data(), batch_rows, width, payload), rows));
  unpack(f.stream.executor(), f.layout, all_shards,
         field(rows, batch_view<T>(out.data(), batch_rows, width, payload)));
  f.stream.wait();
  const auto back = out.values();
  BOOST_TEST(std::memcmp(back.data(), table.data(), table.size() * sizeof(T)) == 0,
             name << ", payload " << payload);
  BOOST_TEST((shards.guards_intact() && out.guards_intact()));
}

}  // namespace

BOOST_AUTO_TEST_CASE(round_trips_of_element_types) {
  for (const offset_t payload : {1, 5, 16}) {
    check_round_trip<std::uint8_t>("uint8", payload);
    check_round_trip<__half>("half", payload);
    check_round_trip<float>("float", payload);
    check_round_trip<double>("double", payload);
    check_round_trip<twelve_bytes>("12 bytes", payload);
  }
}

BOOST_AUTO_TEST_SUITE_END()
