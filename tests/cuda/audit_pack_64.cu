// 64 tensors of eight types, of two widths and fills each, go in one launch.
#define BOOST_TEST_MODULE audit_pack_64
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "seqpack/move/pack.hpp"
#include "support/audit.cuh"

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr std::size_t count = 64;
constexpr offset_t width = changing_layout::longest;
constexpr auto name = "`pack`, 64 tensors";

using types = std::tuple<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                         std::uint32_t, float, double>;
template <std::size_t K>
using type_of = std::tuple_element_t<K % std::tuple_size_v<types>, types>;
constexpr offset_t payload_of(std::size_t k) {
  return 1 + static_cast<offset_t>(k % 3);
}

/// All tensors behind each other in one array of bytes, each aligned to 16 bytes.
constexpr std::size_t bytes_of_rows(offset_t rows) {
  return count * (static_cast<std::size_t>(rows) * 3 * 8 + 16);
}
template <class T>
T* tensor_in(const device_array<unsigned char>& all, std::size_t k) {
  const std::size_t each = all.size() / count / 16 * 16;
  return reinterpret_cast<T*>(all.data() + k * each);
}

struct tensors {
  changing_layout layout;
  device_array<unsigned char> from;
  device_array<unsigned char> to;

  tensors(int batch, offset_t cp)
      : layout(batch, cp), from(bytes_of_rows(batch * width)), to(bytes_of_rows(layout.total())) {
    set(0);
  }
  void set(int round) {
    layout.set(round);
    set_values(from, round, 251);
  }
  template <std::size_t K, class Place>
  auto field_of(Place at) const {
    using T = type_of<K>;
    const batch_view source(tensor_in<T>(from, K), layout.batch(), width, payload_of(K));
    const row_view target(tensor_in<T>(to, K), layout.view().rows(at), payload_of(K));
    if constexpr (K % 16 == 3) {
      return field(source, target, column_number{});
    } else {
      return field(source, target, static_cast<T>(K));
    }
  }
  template <class Place>
  void pack_all(const test_stream& stream, Place at) const {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      pack(stream.executor(), layout.view(), at, field_of<K>(at)...);
    }(std::make_index_sequence<count>());
  }
};

}  // namespace

// Large batches are captured and not run: what they come to is the business of other tests.
BOOST_AUTO_TEST_CASE(one_launch) {
  for (const int batch : audited_batches) {
    for (const offset_t cp : audited_ranks) {
      const test_stream stream;
      const tensors t(batch, cp);
      const captured_call call(
          stream, [&] { audited_call(name, stream, [&] { t.pack_all(stream, all_shards); }); });
      BOOST_TEST(call.launches == 1);
      BOOST_TEST(call.memsets + call.others == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(captured_and_replayed_with_other_lengths) {
  const test_stream stream;
  tensors t(5, 2);
  check_replay(
      name, stream, [&] { t.pack_all(stream, all_shards); }, [&](int round) { t.set(round); },
      t.to);
}

BOOST_AUTO_TEST_CASE(every_call_was_measured) {
  require_all_measured("cuda/audit_pack_64.cu");
}
