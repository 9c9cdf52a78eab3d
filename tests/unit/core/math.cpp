#define BOOST_TEST_MODULE math
#include "seqpack/core/math.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>

using namespace seqpack;

static_assert(min_of(2, 3) == 2 && min_of(3, 2) == 2 && min_of(-1, 1) == -1);
static_assert(max_of(2, 3) == 3 && max_of(3, 2) == 3 && max_of(-1, 1) == 1);
static_assert(divide(7, 2) == 3 && seqpack::remainder(7, 2) == 1);
static_assert(round_up(0, 8) == 0 && round_up(1, 8) == 8 && round_up(8, 8) == 8);
static_assert(is_power_of_two(1) && is_power_of_two(64) && is_power_of_two(offset_t{1} << 48));
static_assert(!is_power_of_two(0) && !is_power_of_two(-4) && !is_power_of_two(6));

namespace {

/// By counting, without a division.
offset_t counted_up(offset_t value, offset_t multiple) {
  offset_t result = 0;
  while (result < value) result += multiple;
  return result;
}

// Around the width of the 32-bit path, where either operand may need 64 bits.
constexpr offset_t edges[] = {1,
                              2,
                              3,
                              1000,
                              (offset_t{1} << 31) - 1,
                              offset_t{1} << 31,
                              (offset_t{1} << 32) - 1,
                              offset_t{1} << 32,
                              (offset_t{1} << 32) + 1,
                              (offset_t{1} << 48) - 1,
                              offset_t{1} << 48,
                              (offset_t{1} << 62) + 12345};

}  // namespace

BOOST_AUTO_TEST_CASE(small_numbers_by_counting) {
  for (offset_t multiple = 1; multiple <= 33; ++multiple) {
    for (offset_t value = 0; value <= 100; ++value) {
      const offset_t rounded = counted_up(value, multiple);
      BOOST_TEST(round_up(value, multiple) == rounded);
      const offset_t quotient = rounded == value ? rounded / multiple : rounded / multiple - 1;
      BOOST_TEST(divide(value, multiple) == quotient);
      BOOST_TEST(seqpack::remainder(value, multiple) == value - quotient * multiple);
    }
  }
}

BOOST_AUTO_TEST_CASE(division_at_the_edges_of_32_bits) {
  for (const offset_t a : edges) {
    BOOST_TEST(divide(0, a) == 0);
    for (const offset_t b : edges) {
      BOOST_TEST(divide(a, b) == a / b);
      BOOST_TEST(seqpack::remainder(a, b) == a % b);
    }
  }
}

BOOST_AUTO_TEST_CASE(rounding_large_numbers) {
  const offset_t large = offset_t{1} << 48;
  BOOST_TEST(round_up(large, 1) == large);
  BOOST_TEST(round_up(large, 3) == large + 2);  // 2^48 = 1 modulo 3
  BOOST_TEST(round_up(large - 1, 16) == large);
  BOOST_TEST(round_up(1, large) == large);
  BOOST_TEST(round_up(large, large - 1) == 2 * (large - 1));
}

static_assert(fast_divisor{}.value() == 1 && fast_divisor{}.divide(7) == 7);
static_assert(fast_divisor{3}.divide(8) == 2 && round_up(7, fast_divisor{3}) == 9);

BOOST_AUTO_TEST_CASE(a_prepared_divisor_divides_small_numbers_exactly) {
  for (offset_t divisor = 1; divisor <= 65; ++divisor) {
    const fast_divisor prepared{divisor};
    BOOST_TEST(prepared.value() == divisor);
    for (offset_t value = 0; value <= 300; ++value) {
      BOOST_TEST(prepared.divide(value) == value / divisor);
      BOOST_TEST(round_up(value, prepared) == counted_up(value, divisor));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_prepared_divisor_divides_exactly_at_the_edges_of_32_bits) {
  for (const offset_t divisor : edges) {
    const fast_divisor prepared{divisor};
    BOOST_TEST(prepared.divide(0) == 0);
    for (const offset_t value : edges) {
      BOOST_TEST(prepared.divide(value) == value / divisor);
      // Where a rounded reciprocal would be off by one: around multiples.
      const offset_t multiple = value / divisor * divisor;
      BOOST_TEST(prepared.divide(multiple) == multiple / divisor);
      if (multiple > 0) BOOST_TEST(prepared.divide(multiple - 1) == (multiple - 1) / divisor);
      if (divisor <= max_tokens && value <= max_tokens) {
        BOOST_TEST(round_up(value, prepared) == round_up(value, divisor));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_prepared_divisor_divides_any_32_bit_numbers_exactly) {
  std::uint64_t state = 88172645463325252U;
  const auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  bool exact = true;
  for (int k = 0; k < 300000; ++k) {
    // Of all magnitudes.
    const auto value = static_cast<offset_t>(next() >> (32 + k % 32));
    const auto divisor = static_cast<offset_t>(next() >> (32 + k / 32 % 32)) + 1;
    const offset_t multiple = value / divisor * divisor;
    const fast_divisor prepared{divisor};
    exact = exact && prepared.divide(value) == value / divisor &&
            prepared.divide(multiple) == multiple / divisor;
  }
  BOOST_TEST(exact);
}

BOOST_AUTO_TEST_CASE(powers_of_two) {
  for (int bit = 0; bit < 62; ++bit) {
    const offset_t power = offset_t{1} << bit;
    BOOST_TEST(is_power_of_two(power));
    if (bit > 1) BOOST_TEST(!is_power_of_two(power - 1));
    if (bit > 0) BOOST_TEST(!is_power_of_two(power + 1));
  }
}
