#define BOOST_TEST_MODULE extent
#include "seqpack/core/extent.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <type_traits>

using seqpack::dynamic;
using seqpack::extent;
using seqpack::max_tokens;
using seqpack::offset_t;

static_assert(extent<16>{}.value() == 16);
static_assert(extent<16>::static_value == 16);
static_assert(extent<max_tokens>{}.value() == max_tokens);
static_assert(std::is_empty_v<extent<16>>);

static_assert(extent<16>{}.round_up(17) == 32 && extent<12>{}.round_up(12) == 12);

static_assert(extent<>{16}.value() == 16);
static_assert(extent<>{16}.round_up(17) == 32 && extent<>{12}.round_up(12) == 12);
static_assert(extent<>::static_value == dynamic);
static_assert(extent<>{}.value() == 1);  // the number that asks for nothing
static_assert(std::is_trivially_copyable_v<extent<>> && std::is_trivially_copyable_v<extent<3>>);

// A number does not become a policy by itself.
static_assert(!std::is_convertible_v<offset_t, extent<>>);
static_assert(!std::is_constructible_v<extent<16>, offset_t>);

namespace {

std::string refusal(offset_t value) {
  try {
    const extent<> e(value, "number");
    return "accepted " + std::to_string(e.value());
  } catch (const seqpack::invalid_input& error) {
    return error.what();
  }
}

template <offset_t... Values>
void static_and_dynamic_agree() {
  const bool values = ((extent<Values>{}.value() == extent<>{Values}.value()) && ...);
  BOOST_TEST(values);
  for (offset_t x = 0; x <= 300; ++x) {
    const bool roundings = ((extent<Values>{}.round_up(x) == extent<>{Values}.round_up(x)) && ...);
    BOOST_TEST(roundings);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(static_and_dynamic_numbers_agree) {
  static_and_dynamic_agree<1, 2, 7, 128, max_tokens>();
}

BOOST_AUTO_TEST_CASE(the_limits_are_accepted) {
  BOOST_TEST(refusal(1) == "accepted 1");
  BOOST_TEST(refusal(offset_t{1} << 48) == "accepted 281474976710656");
}

BOOST_AUTO_TEST_CASE(numbers_outside_the_limits_are_refused) {
  BOOST_TEST(refusal(0) == "number is 0: it must be from 1 to 281474976710656");
  BOOST_TEST(refusal(-1) == "number is -1: it must be from 1 to 281474976710656");
  BOOST_TEST(refusal(max_tokens + 1) ==
             "number is 281474976710657: it must be from 1 to 281474976710656");
  BOOST_TEST(refusal(offset_t{1} << 62) ==
             "number is 4611686018427387904: it must be from 1 to 281474976710656");
}
