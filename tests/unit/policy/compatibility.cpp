#define BOOST_TEST_MODULE compatibility
#include "seqpack/policy/compatibility.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refused_as;

// What does not fit statically does not compile: tests/compile_fail. Here is what does.

static_assert(policies_fit<no_padding, no_context_parallel>());
static_assert(policies_fit<no_padding, context_parallel<4>>());
static_assert(policies_fit<padding<each_multiple_of<16>>, context_parallel<4>>());
static_assert(policies_fit<padding<each_multiple_of<12>>, context_parallel<4, contiguous>>());
static_assert(policies_fit<padding<each_multiple_of<1>>, context_parallel<4>>());
static_assert(policies_fit<padding<each_multiple_of<12>>, no_context_parallel>());
static_assert(policies_fit<padding<each_multiple_of<12>>, context_parallel<>>());
static_assert(policies_fit<padding<each_multiple_of<>>, context_parallel<4>>());
static_assert(policies_fit<padding<fixed_total<64>, total_multiple_of<32>>, context_parallel<4>>());
static_assert(policies_fit<padding<fixed_total<12>>, context_parallel<4, striped>>());
static_assert(policies_fit<padding<fixed_total<12>>, context_parallel<>>());
static_assert(policies_fit<padding<fixed_total<12>, total_multiple_of<>>, no_context_parallel>());
static_assert(policies_fit<padding<fixed_total<>>, context_parallel<4>>());
// The total multiple alone need not fit: the tail is checked with the lengths.
static_assert(policies_fit<padding<total_multiple_of<3>>, context_parallel<4>>());

static_assert(detail::divisors_of<context_parallel<4>>().each == 8);
static_assert(detail::divisors_of<context_parallel<4, contiguous>>().each == 4);
static_assert(detail::divisors_of<context_parallel<4, striped>>().total == 4);
static_assert(detail::divisors_of<context_parallel<1>>().each == 1);
static_assert(detail::divisors_of<context_parallel<>>().each == dynamic);

namespace {

template <class P, class C>
std::string verdict(const P& p, const C& c) {
  try {
    require_policies_fit(p, c);
  } catch (const invalid_input& error) {
    return error.what();
  }
  return "fits";
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_must_be_a_multiple_of_the_divisor) {
  const std::string eight = ": it must be a multiple of 8, what the sharding divides by";
  BOOST_TEST(verdict(padding{each_multiple_of<>{12}}, context_parallel<4>{}) ==
             "each_multiple_of is 12" + eight);
  BOOST_TEST(verdict(padding{each_multiple_of<12>{}}, context_parallel{4}) ==
             "each_multiple_of is 12" + eight);
  BOOST_TEST(verdict(padding{each_multiple_of<>{12}}, context_parallel{4}) ==
             "each_multiple_of is 12" + eight);
  BOOST_TEST(verdict(padding{each_multiple_of<>{2}}, context_parallel{4}) ==
             "each_multiple_of is 2" + eight);
  BOOST_TEST(verdict(padding{each_multiple_of<>{16}}, context_parallel{4}) == "fits");
  BOOST_TEST(verdict(padding{each_multiple_of<>{12}}, context_parallel{4, contiguous{}}) == "fits");
  BOOST_TEST(verdict(padding{each_multiple_of<>{6}}, context_parallel{4, striped{}}) ==
             "each_multiple_of is 6: it must be a multiple of 4, what the sharding divides by");
}

BOOST_AUTO_TEST_CASE(case_24_a_common_multiple_is_needed) {
  BOOST_TEST(verdict(padding{each_multiple_of<>{32}}, context_parallel{3}) ==
             "each_multiple_of is 32: it must be a multiple of 6, what the sharding divides by");
  BOOST_TEST(verdict(padding{each_multiple_of<>{48}}, context_parallel{3}) == "fits");
}

BOOST_AUTO_TEST_CASE(an_each_of_one_fits_any_sharding) {
  BOOST_TEST(verdict(padding{each_multiple_of<>{1}}, context_parallel{7}) == "fits");
  BOOST_TEST(verdict(no_padding{}, context_parallel{7, striped{}}) == "fits");
}

BOOST_AUTO_TEST_CASE(a_fixed_total_must_be_a_multiple_of_both) {
  BOOST_TEST(verdict(padding{fixed_total<>{12}}, context_parallel{4}) ==
             "fixed_total is 12: it must be a multiple of 8, what the sharding divides by");
  BOOST_TEST(verdict(padding{fixed_total<12>{}}, context_parallel{4}) ==
             "fixed_total is 12: it must be a multiple of 8, what the sharding divides by");
  BOOST_TEST(verdict(padding{fixed_total<>{48}, total_multiple_of<>{32}}, context_parallel{4}) ==
             "fixed_total is 48: it must be a multiple of 32, the total multiple");
  BOOST_TEST(verdict(padding{fixed_total<>{64}, total_multiple_of<>{32}}, context_parallel{4}) ==
             "fits");
  BOOST_TEST(verdict(padding{fixed_total<>{64}, ghost_tail{}}, context_parallel{4}) == "fits");
}

BOOST_AUTO_TEST_CASE(case_26_a_total_that_the_blocks_do_not_divide) {
  const total_multiple_of<> block{32 * 4};
  BOOST_TEST(verdict(padding{block, fixed_total<>{31936}}, no_context_parallel{}) ==
             "fixed_total is 31936: it must be a multiple of 128, the total multiple");
  BOOST_TEST(verdict(padding{block, fixed_total<>{32000}}, no_context_parallel{}) == "fits");
}

namespace {

/// A sharding with a state and without a default: its divisor is not known from its type.
struct coarse {
  offset_t grain;
  constexpr explicit coarse(offset_t g) : grain(g) {}
  constexpr offset_t divisor(offset_t cp) const { return cp * grain; }
  constexpr shard_position to_shard(offset_t token, offset_t length, offset_t cp) const {
    return contiguous::to_shard(token, length, cp);
  }
  constexpr offset_t to_token(shard_position p, offset_t length, offset_t cp) const {
    return contiguous::to_token(p, length, cp);
  }
  constexpr offset_t run(shard_position p, offset_t length, offset_t cp) const {
    return contiguous::run(p, length, cp);
  }
};
static_assert(sharding<coarse>);

}  // namespace

BOOST_AUTO_TEST_CASE(a_sharding_with_a_state_is_asked_at_run_time) {
  const context_parallel<2, coarse> cp{coarse{3}};
  require_policies_fit(padding{each_multiple_of<6>{}}, cp);
  BOOST_CHECK_EXCEPTION(
      require_policies_fit(padding{each_multiple_of<4>{}}, cp), invalid_input,
      refused_as(
          "each_multiple_of is 4: it must be a multiple of 6, what the sharding divides by"));
}
