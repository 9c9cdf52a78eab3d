// Pack with pad 0 and unpack with fill 0 are exact transposes: <unpack x, y> == <x, pack y>.
#define BOOST_TEST_MODULE transpose
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <random>
#include <vector>

#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "support/layouts.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

template <class T>
std::vector<T> random_values(std::mt19937& random, std::size_t size) {
  // Integers small enough that every sum is exact in either type.
  std::uniform_int_distribution<int> value(-1000, 1000);
  std::vector<T> values(size);
  for (T& v : values) v = static_cast<T>(value(random));
  return values;
}

template <class T>
T dot(const std::vector<T>& a, const std::vector<T>& b) {
  T sum{};
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

template <class T, class Layout, class Place>
void check_identity(const Layout& layout, Place at, offset_t width, offset_t payload,
                    std::mt19937& random) {
  const offset_t batch = layout.batch_size();
  const offset_t rows = layout.view().rows(at);
  const auto x = random_values<T>(random, static_cast<std::size_t>(rows * payload));
  const auto y = random_values<T>(random, static_cast<std::size_t>(batch * width * payload));
  std::vector<T> unpacked(y.size(), T{77});
  std::vector<T> packed(x.size(), T{77});
  unpack(
      host, layout, at,
      field(row_view(x.data(), rows, payload), batch_view(unpacked.data(), batch, width, payload)));
  pack(host, layout, at,
       field(batch_view(y.data(), batch, width, payload), row_view(packed.data(), rows, payload)));
  BOOST_TEST(dot(unpacked, y) == dot(x, packed));
}

template <class T>
void check_random_layouts(unsigned seed) {
  std::mt19937 random(seed);
  for (int round = 0; round < 10; ++round) {
    const int batch = round % 6;
    const oracle::numbers lens = random_lengths(random, batch, 25);
    const oracle::numbers order = round % 2 == 0 ? oracle::numbers{} : random_order(random, batch);
    for_each_layout(lens, order, [&](const auto& layout, const auto& expected, const auto&) {
      for_each_place(expected, [&](auto at, const oracle::tokens&) {
        check_identity<T>(layout, at, 27, 1 + round % 3, random);
      });
    });
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(integers) {
  check_random_layouts<std::int64_t>(5);
}

BOOST_AUTO_TEST_CASE(doubles) {
  check_random_layouts<double>(6);
}

BOOST_AUTO_TEST_CASE(the_identity_tells_a_wrong_transpose) {
  // The inner products of the tests above are not 0: a pack that drops tokens would be seen.
  std::mt19937 random(7);
  const auto layout = make_layout(oracle::numbers{3, 2}, padding{each_multiple_of<4>{}});
  const auto y = random_values<std::int64_t>(random, 2 * 3);
  const auto x = random_values<std::int64_t>(random, 8);
  std::vector<std::int64_t> packed(8);
  pack(host, layout, full_row, field(batch_view(y.data(), 2, 3), packed));
  BOOST_TEST(dot(x, packed) == x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[4] * y[3] + x[5] * y[4]);
  BOOST_TEST(dot(x, packed) != 0);
}
