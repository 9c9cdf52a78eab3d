// pack on the device: the reference values, every element type and alignment, several fields at
// once.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <boost/test/unit_test.hpp>

#include <random>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"
#include "support/golden.hpp"

BOOST_AUTO_TEST_SUITE(move_pack)

using namespace seqpack;
using testing::captured_call;
using testing::device_array;
using testing::needs_device;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

struct twelve_bytes {
  std::uint32_t a, b, c;
};
struct three_bytes {
  std::uint8_t a, b, c;
};

struct column_number {
  SEQPACK_HD offset_t operator()(offset_t column) const { return column; }
};

/// Random bytes as elements: exact for any type.
template <class T>
std::vector<T> random_elements(std::mt19937& random, std::size_t count) {
  std::vector<T> result(count);
  auto* const bytes = reinterpret_cast<unsigned char*>(result.data());
  for (std::size_t k = 0; k < count * sizeof(T); ++k) {
    bytes[k] = static_cast<unsigned char>(random());
  }
  return result;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

const std::vector<int> some_lengths{5, 0, 3, 8, 1, 7, 8, 2};
constexpr offset_t width = 8;

/// The device against the host, which has its own tests against the definitions.
template <class T, class Pad>
void check_type(const char* name, offset_t payload, Pad pad, std::size_t offset) {
  const testing::test_stream stream;
  std::mt19937 random(static_cast<unsigned>(payload));
  const auto layout =
      make_layout(some_lengths, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const auto on_device = to_device(stream.executor(), layout);
  const offset_t batch = layout.batch_size();
  const auto input = random_elements<T>(random, static_cast<std::size_t>(batch * width * payload));
  const device_array<T> input_on_device(input, offset * sizeof(T));
  std::vector<T> expected(static_cast<std::size_t>(layout.total_tokens() * payload));
  const device_array<T> output(expected.size(), offset * sizeof(T));
  pack(host, layout, all_shards,
       field(batch_view<const T>(input.data(), batch, width, payload),
             row_view<T>(expected.data(), layout.total_tokens(), payload), pad));
  pack(stream.executor(), on_device, all_shards,
       field(batch_view<const T>(input_on_device.data(), batch, width, payload),
             row_view<T>(output.data(), layout.total_tokens(), payload), pad));
  stream.wait();
  BOOST_TEST(same(output.values(), expected), name << ", payload " << payload << ", " << offset);
  BOOST_TEST(output.guards_intact());
}

template <class T, class Pad>
void check_widths(const char* name, Pad pad) {
  for (const offset_t payload : {1, 3, 8, 33, 64}) {
    for (const std::size_t offset : {0, 1}) check_type<T>(name, payload, pad, offset);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_reference_values_come_out) {
  const testing::test_stream stream;
  const auto cases = golden::pack_cases();
  BOOST_TEST(cases.size() == 80U);
  for (const auto& c : cases) {
    const auto batch = static_cast<offset_t>(c.seq_lengths.size());
    std::vector<std::int64_t> ids(static_cast<std::size_t>(batch * c.width), -1);
    for (offset_t b = 0; b < batch; ++b) {
      for (offset_t s = 0; s < c.seq_lengths[static_cast<std::size_t>(b)]; ++s) {
        ids[static_cast<std::size_t>(b * c.width + s)] = 1000 * (b + 1) + s;
      }
    }
    const device_array<std::int64_t> ids_on_device(ids);
    const batch_view<const std::int64_t> batch_of_ids(ids_on_device.data(), batch, c.width);
    const device_array<std::int64_t> row(c.packed.size());
    const device_array<std::int64_t> all(c.packed.size());
    const auto check = [&](const auto& policy) {
      const auto layout = to_device(
          stream.executor(), make_layout(c.seq_lengths, policy, context_parallel{c.cp_size}));
      const offset_t tokens = layout.total_tokens();
      pack(stream.executor(), layout, full_row,
           field(batch_of_ids, row_view<std::int64_t>(row.data(), tokens)));
      pack(stream.executor(), layout, all_shards,
           field(batch_of_ids, row_view<std::int64_t>(all.data(), tokens)));
      stream.wait();
      const auto packed = row.values();
      BOOST_TEST(golden::numbers(packed.begin(), packed.end()) == c.packed, c.name);
      golden::numbers expected;
      for (const auto& s : c.shards) expected.insert(expected.end(), s.begin(), s.end());
      const auto shards = all.values();
      BOOST_TEST(golden::numbers(shards.begin(), shards.end()) == expected, c.name);
      for (offset_t rank = 0; rank < c.cp_size; ++rank) {
        const auto& one = c.shards[static_cast<std::size_t>(rank)];
        const device_array<std::int64_t> mine(one.size());
        pack(stream.executor(), layout, shard{rank},
             field(batch_of_ids, row_view<std::int64_t>(mine.data(), layout.shard_tokens())));
        stream.wait();
        const auto values = mine.values();
        BOOST_TEST(golden::numbers(values.begin(), values.end()) == one, c.name);
        BOOST_TEST(mine.guards_intact());
      }
    };
    with_padding(
        {.each = c.pad_each, .total_multiple = c.pad_total_multiple, .fixed_total = c.pad_total_to},
        check);
    BOOST_TEST(row.guards_intact());
    BOOST_TEST(all.guards_intact());
  }
}

BOOST_AUTO_TEST_CASE(integers) {
  check_widths<std::int8_t>("int8", std::int8_t{-3});
  check_widths<std::int32_t>("int32", -3);
  check_widths<std::int64_t>("int64", -3);
}

BOOST_AUTO_TEST_CASE(floating_point) {
  check_widths<__nv_bfloat16>("bfloat16", __float2bfloat16(0.5F));
  check_widths<__nv_fp8_e4m3>("fp8", __nv_fp8_e4m3(1.5F));
  check_widths<double>("double", 0.25);
}

BOOST_AUTO_TEST_CASE(structs) {
  check_widths<twelve_bytes>("12 bytes", twelve_bytes{1, 2, 3});
  check_widths<three_bytes>("3 bytes", three_bytes{1, 2, 3});
}

BOOST_AUTO_TEST_CASE(a_function_of_the_column_pads) {
  check_widths<std::int16_t>("routes", column_number{});
}

BOOST_AUTO_TEST_CASE(several_fields_in_one_launch) {
  const testing::test_stream stream;
  std::mt19937 random(9);
  const auto layout = make_layout(
      some_lengths, padding{each_multiple_of<>{4}, total_multiple_of<>{16}, ghost_tail{}},
      context_parallel<dynamic, striped>{2});
  const auto on_device = to_device(stream.executor(), layout);
  const offset_t batch = layout.batch_size();
  const offset_t tokens = layout.shard_tokens();
  const auto ids = random_elements<std::int64_t>(random, static_cast<std::size_t>(batch * width));
  const auto hidden = random_elements<float>(random, static_cast<std::size_t>(batch * width * 12));
  const auto routes =
      random_elements<std::int16_t>(random, static_cast<std::size_t>(batch * width * 3));
  const device_array<std::int64_t> ids_in(ids);
  const device_array<float> hidden_in(hidden);
  const device_array<std::int16_t> routes_in(routes);
  const auto size = static_cast<std::size_t>(tokens);
  std::vector<std::int64_t> ids_expected(size);
  std::vector<float> hidden_expected(size * 12);
  std::vector<std::int16_t> routes_expected(size * 3);
  const device_array<std::int64_t> ids_out(size);
  const device_array<float> hidden_out(size * 12);
  const device_array<std::int16_t> routes_out(size * 3);
  pack(host, layout, shard{1}, field(batch_view(ids.data(), batch, width), ids_expected, -1),
       field(batch_view(hidden.data(), batch, width, 12),
             row_view(hidden_expected.data(), tokens, 12), 0.5F),
       field(batch_view(routes.data(), batch, width, 3),
             row_view(routes_expected.data(), tokens, 3), column_number{}));
  stream.wait();
  const captured_call call(stream, [&] {
    pack(stream.executor(), on_device, shard{1},
         field(batch_view(ids_in.data(), batch, width), row_view(ids_out.data(), tokens), -1),
         field(batch_view(hidden_in.data(), batch, width, 12),
               row_view(hidden_out.data(), tokens, 12), 0.5F),
         field(batch_view(routes_in.data(), batch, width, 3),
               row_view(routes_out.data(), tokens, 3), column_number{}));
  });
  BOOST_TEST(call.launches == 1);
  BOOST_TEST(call.memsets + call.others == 0);
  call.replay(stream);
  stream.wait();
  BOOST_TEST(same(ids_out.values(), ids_expected));
  BOOST_TEST(same(hidden_out.values(), hidden_expected));
  BOOST_TEST(same(routes_out.values(), routes_expected));
  BOOST_TEST((ids_out.guards_intact() && hidden_out.guards_intact() && routes_out.guards_intact()));
}

BOOST_AUTO_TEST_CASE(nothing_to_do_launches_nothing) {
  const testing::test_stream stream;
  const auto layout = to_device(
      stream.executor(),
      make_layout(std::vector{0, 0}, padding{each_multiple_of<4>{}}, context_parallel<2>{}));
  stream.wait();
  const device_array<int> input(std::vector<int>(16));
  const captured_call call(stream, [&] {
    pack(stream.executor(), layout, all_shards,
         field(batch_view<int>(input.data(), 2, 8), row_view<int>(nullptr, 0)));
  });
  BOOST_TEST(call.launches == 0);
}

BOOST_AUTO_TEST_CASE(thrust_policies_are_streams_too) {
  const testing::test_stream stream;
  const auto layout = to_device(stream.executor(), make_layout(some_lengths));
  stream.wait();
  std::vector<int> ids(some_lengths.size() * width);
  for (std::size_t k = 0; k < ids.size(); ++k) ids[k] = static_cast<int>(k);
  const device_array<int> input(ids);
  const device_array<int> first(static_cast<std::size_t>(layout.total_tokens()));
  const device_array<int> second(static_cast<std::size_t>(layout.total_tokens()));
  const batch_view<int> batch(input.data(), layout.batch_size(), width);
  pack(thrust::cuda::par.on(stream), layout, full_row,
       field(batch, row_view<int>(first.data(), layout.total_tokens())));
  pack(thrust::cuda::par_nosync.on(stream), layout, full_row,
       field(batch, row_view<int>(second.data(), layout.total_tokens())));
  stream.wait();
  std::vector<int> expected;
  for (std::size_t b = 0; b < some_lengths.size(); ++b) {
    for (int s = 0; s < some_lengths[b]; ++s) {
      expected.push_back(static_cast<int>(b) * static_cast<int>(width) + s);
    }
  }
  BOOST_TEST(first.values() == expected, boost::test_tools::per_element());
  BOOST_TEST(second.values() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
