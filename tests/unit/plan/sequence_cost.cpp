#define BOOST_TEST_MODULE plan_sequence_cost
#include "seqpack/plan/sequence_cost.hpp"

#include <boost/test/unit_test.hpp>
#include <concepts>
#include <limits>

#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refusal;

namespace {

constexpr offset_t cube(offset_t n) {
  return n * n * n;
}
struct scaled {
  offset_t factor;
  offset_t operator()(offset_t n) const { return factor * n; }
};

constexpr offset_t most = std::numeric_limits<offset_t>::max();
static_assert(sequence_cost{}(7) == 7);
static_assert(sequence_cost{3, 2}(5) == 3 * 5 + 2 * 25);
static_assert(sequence_cost{0, 0}(5) == 0);
static_assert(sequence_cost{cube}(5) == 125);
static_assert(sequence_cost{[](offset_t n) { return n / 2; }}(9) == 4);
static_assert(sequence_cost{}.is_tokens() && sequence_cost{1, 0}.is_tokens());
static_assert(!sequence_cost{1, 1}.is_tokens() && !sequence_cost{cube}.is_tokens());

// A lambda with captures is referred to: a temporary would not live long enough.
static_assert(std::constructible_from<sequence_cost, scaled&>);
static_assert(std::constructible_from<sequence_cost, const scaled&>);
static_assert(!std::constructible_from<sequence_cost, int>);

}  // namespace

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_the_largest_number) {
  BOOST_TEST(sequence_cost(0, 1)(offset_t{1} << 32) == most);
  BOOST_TEST(sequence_cost(offset_t{1} << 40, 0)(offset_t{1} << 40) == most);
  BOOST_TEST(sequence_cost(most, most)(2) == most);
  BOOST_TEST(sequence_cost(0, 1)((offset_t{1} << 31) - 1) ==
             ((offset_t{1} << 31) - 1) * ((offset_t{1} << 31) - 1));
  BOOST_TEST(sequence_cost(most, most)(0) == 0);
}

BOOST_AUTO_TEST_CASE(a_functor_is_referred_to) {
  scaled times{3};
  const sequence_cost cost = times;
  BOOST_TEST(cost(5) == 15);
  times.factor = 4;
  BOOST_TEST(cost(5) == 20);
  const offset_t offset = 10;
  const auto with_capture = [&](offset_t n) { return n + offset; };
  BOOST_TEST(sequence_cost(with_capture)(5) == 15);
}

BOOST_AUTO_TEST_CASE(weights_are_not_negative) {
  BOOST_TEST(refusal([] { sequence_cost(-1, 0); }) ==
             "cost per token is -1: it must be at least 0");
  BOOST_TEST(refusal([] { sequence_cost(0, -2); }) ==
             "cost per pair of tokens is -2: it must be at least 0");
}
