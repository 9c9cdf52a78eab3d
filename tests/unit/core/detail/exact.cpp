// Which numbers a type keeps.
#define BOOST_TEST_MODULE exact
#include "seqpack/core/detail/exact.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>

namespace {

using namespace seqpack;
using limits64 = std::numeric_limits<std::int64_t>;
constexpr auto largest_unsigned = ~std::uint64_t{0};

static_assert(detail::largest_whole<float> == 16'777'216 &&
              detail::smallest_whole<float> == -16'777'216);
static_assert(detail::largest_whole<double> == offset_t{1} << 53);
static_assert(detail::largest_whole<std::int8_t> == 127 &&
              detail::smallest_whole<std::int8_t> == -128);
static_assert(detail::largest_whole<std::uint32_t> == 4'294'967'295 &&
              detail::smallest_whole<std::uint32_t> == 0);
static_assert(detail::largest_whole<std::uint64_t> == limits64::max());
static_assert(detail::largest_whole<bool> == 1);

static_assert(detail::holds_all<std::int64_t, std::int64_t> &&
              detail::holds_all<std::int64_t, std::uint32_t>);
static_assert(!detail::holds_all<std::int64_t, std::uint64_t> &&
              !detail::holds_all<std::uint64_t, std::int8_t>);
static_assert(detail::holds_all<std::uint64_t, std::uint64_t> &&
              detail::holds_all<std::uint64_t, bool>);
static_assert(detail::holds_all<float, std::int16_t> && !detail::holds_all<float, std::int32_t>);
static_assert(detail::holds_all<double, std::int32_t> && !detail::holds_all<double, std::int64_t>);
static_assert(detail::holds_all<double, float> && !detail::holds_all<float, double> &&
              !detail::holds_all<int, float>);
static_assert(detail::holds_all<char, signed char> == std::is_signed_v<char>);

/// A half: 11 binary digits.
using half = _Float16;

}  // namespace

BOOST_AUTO_TEST_CASE(integers_in_integers) {
  BOOST_TEST(detail::holds_exactly<std::int8_t>(127));
  BOOST_TEST(!detail::holds_exactly<std::int8_t>(128));
  BOOST_TEST(detail::holds_exactly<std::int8_t>(-128));
  BOOST_TEST(!detail::holds_exactly<std::int8_t>(-129));
  BOOST_TEST(!detail::holds_exactly<std::int8_t>(std::uint16_t{65535}));
  BOOST_TEST(!detail::holds_exactly<std::uint8_t>(-1));
  BOOST_TEST(!detail::holds_exactly<std::uint64_t>(-1));
  BOOST_TEST(detail::holds_exactly<std::uint64_t>(limits64::max()));
  BOOST_TEST(!detail::holds_exactly<std::int64_t>(largest_unsigned));
  BOOST_TEST(detail::holds_exactly<std::int64_t>(largest_unsigned >> 1));
  BOOST_TEST(detail::holds_exactly<bool>(1));
  BOOST_TEST(!detail::holds_exactly<bool>(2));
}

BOOST_AUTO_TEST_CASE(floating_numbers_in_integers) {
  BOOST_TEST(detail::holds_exactly<std::int32_t>(-3.0));
  BOOST_TEST(detail::holds_exactly<std::int32_t>(-0.0));
  BOOST_TEST(!detail::holds_exactly<std::int32_t>(3.7));
  BOOST_TEST(!detail::holds_exactly<std::int32_t>(1e30));
  BOOST_TEST(!detail::holds_exactly<std::int32_t>(std::numeric_limits<double>::quiet_NaN()));
  BOOST_TEST(!detail::holds_exactly<std::int32_t>(std::numeric_limits<double>::infinity()));
  BOOST_TEST(detail::holds_exactly<std::int32_t>(2147483647.0));
  BOOST_TEST(!detail::holds_exactly<std::int32_t>(2147483648.0));
  BOOST_TEST(detail::holds_exactly<std::int32_t>(-2147483648.0));
  BOOST_TEST(!detail::holds_exactly<std::int64_t>(9223372036854775808.0F));
  BOOST_TEST(detail::holds_exactly<std::int64_t>(-9223372036854775808.0F));
  BOOST_TEST(detail::holds_exactly<std::uint8_t>(255.0F));
  BOOST_TEST(!detail::holds_exactly<std::uint8_t>(-1.0F));
}

BOOST_AUTO_TEST_CASE(integers_in_floating_numbers) {
  BOOST_TEST(detail::holds_exactly<float>(16'777'216));
  BOOST_TEST(!detail::holds_exactly<float>(16'777'217));
  BOOST_TEST(detail::holds_exactly<float>(16'777'218));
  BOOST_TEST(!detail::holds_exactly<float>(-16'777'217));
  BOOST_TEST(!detail::holds_exactly<float>(limits64::max()));
  BOOST_TEST(detail::holds_exactly<float>(limits64::min()));
  BOOST_TEST(!detail::holds_exactly<double>(largest_unsigned));
  BOOST_TEST(detail::holds_exactly<double>(std::uint64_t{1} << 63));
  BOOST_TEST(!detail::holds_exactly<double>((std::int64_t{1} << 53) + 1));
}

BOOST_AUTO_TEST_CASE(rounding_of_floating_numbers_is_no_loss_but_infinity_is) {
  BOOST_TEST(detail::holds_exactly<float>(0.1));
  BOOST_TEST(!detail::holds_exactly<float>(1e300));
  BOOST_TEST(!detail::holds_exactly<float>(-1e300));
  BOOST_TEST(detail::holds_exactly<float>(1e-300));
  BOOST_TEST(detail::holds_exactly<float>(std::numeric_limits<double>::infinity()));
  BOOST_TEST(detail::holds_exactly<float>(std::numeric_limits<double>::quiet_NaN()));
}

BOOST_AUTO_TEST_CASE(how_far_types_count) {
  BOOST_TEST(detail::counts_to<float>(16'777'216));
  BOOST_TEST(!detail::counts_to<float>(16'777'217));
  BOOST_TEST(!detail::counts_to<float>(16'777'218));
  BOOST_TEST(detail::counts_to<std::int8_t>(127));
  BOOST_TEST(!detail::counts_to<std::int8_t>(128));
  BOOST_TEST(detail::counts_to<half>(2048));
  BOOST_TEST(!detail::counts_to<half>(2049));
  BOOST_TEST(!detail::counts_to<half>(4096));
  BOOST_TEST(detail::counts_to<half>(0));
  BOOST_TEST(detail::holds_whole<half>(-100));
  BOOST_TEST(!detail::holds_whole<half>(-2049));
  struct opaque {
    explicit opaque(offset_t) {}
  };
  BOOST_TEST(detail::holds_whole<opaque>(12345));
}

BOOST_AUTO_TEST_CASE(ranges_as_text) {
  BOOST_TEST(detail::whole_range<std::int8_t>() == "-128 to 127");
  BOOST_TEST(detail::whole_range<std::uint64_t>() == "0 to 18446744073709551615");
  BOOST_TEST(detail::whole_range<float>() == "-16777216 to 16777216");
}
