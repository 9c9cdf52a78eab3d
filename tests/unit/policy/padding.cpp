#define BOOST_TEST_MODULE padding
#include "seqpack/policy/padding.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <string>
#include <type_traits>

#include "seqpack/layout/layout.hpp"
#include "seqpack/policy/any_padding.hpp"
#include "support/oracle.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refusal;

namespace {

/// A user's own policy: a sequence is padded to the next power of two, at least `least`, so that
/// few different lengths occur.
struct power_of_two_padding {
  offset_t least = 1;  ///< a power of two

  static constexpr offset_t static_each = dynamic;
  static constexpr offset_t static_total_multiple = 1;
  static constexpr offset_t static_fixed_total = 0;
  static constexpr bool has_total = false;
  static constexpr bool has_fixed_total = false;
  static constexpr tail tail_goes_to = tail::absorb;

  constexpr offset_t each() const { return least; }
  constexpr offset_t total_multiple() const { return 1; }
  constexpr offset_t fixed_total() const { return 0; }
  constexpr offset_t padded_length(offset_t length) const {
    if (length == 0) return 0;
    offset_t power = least;
    while (power < length) power *= 2;
    return power;
  }
};

/// A user's own policy with a total: rows of one size, and a ghost for the rest.
struct slots_of_ten : power_of_two_padding {
  static constexpr offset_t static_each = 10;
  static constexpr offset_t static_total_multiple = 30;
  static constexpr bool has_total = true;
  static constexpr tail tail_goes_to = tail::ghost;

  constexpr offset_t each() const { return 10; }
  constexpr offset_t total_multiple() const { return 30; }
  constexpr offset_t padded_length(offset_t length) const { return (length + 9) / 10 * 10; }
};

struct without_total_multiple {
  static constexpr offset_t static_each = 1;
  constexpr offset_t each() const { return 1; }
};
struct with_an_int_length : power_of_two_padding {
  constexpr int padded_length(offset_t length) const { return static_cast<int>(length); }
};
struct not_trivially_copyable : power_of_two_padding {
  std::string name;
};

struct tail_of_a_kind {
  static constexpr padding_part part = padding_part::tail;
};

// Who satisfies the concepts, and who does not.
static_assert(padding_policy<no_padding>);
static_assert(padding_policy<padding<each_multiple_of<16>>>);
static_assert(padding_policy<padding<each_multiple_of<>, fixed_total<>, ghost_tail>>);
static_assert(padding_policy<power_of_two_padding> && padding_policy<slots_of_ten>);
static_assert(!padding_policy<int> && !padding_policy<each_multiple_of<16>>);
static_assert(!padding_policy<without_total_multiple>);
static_assert(!padding_policy<with_an_int_length>);
static_assert(!padding_policy<not_trivially_copyable>);
static_assert(padding_component<each_multiple_of<>> && padding_component<total_multiple_of<2>>);
static_assert(padding_component<fixed_total<7>> && padding_component<absorb_tail>);
static_assert(padding_component<ghost_tail>);
static_assert(!padding_component<extent<16>> && !padding_component<tail_of_a_kind>);
static_assert(!padding_component<no_padding> && !padding_component<offset_t>);

// What is static takes no room, and a number does not become a policy by itself.
static_assert(std::is_empty_v<padding<each_multiple_of<16>, total_multiple_of<64>, ghost_tail>>);
static_assert(!std::is_convertible_v<offset_t, each_multiple_of<>>);
static_assert(!std::is_constructible_v<each_multiple_of<16>, offset_t>);

/// What the concept asks for in words.
template <padding_policy P>
void conforms(const P& p) {
  BOOST_TEST(p.padded_length(0) == 0);
  BOOST_TEST(p.each() >= 1);
  BOOST_TEST(p.total_multiple() >= 1);
  offset_t before = 0;
  for (offset_t length = 0; length <= 300; ++length) {
    const offset_t padded = p.padded_length(length);
    BOOST_TEST(padded >= length);
    BOOST_TEST(padded >= before);
    BOOST_TEST(padded % p.each() == 0);
    before = padded;
  }

  const auto told_the_same = [](offset_t at_compile_time, offset_t now) {
    return at_compile_time == dynamic || at_compile_time == now;
  };
  BOOST_TEST(told_the_same(P::static_each, p.each()));
  BOOST_TEST(told_the_same(P::static_total_multiple, p.total_multiple()));
  if (p.has_fixed_total) {
    BOOST_TEST(p.has_total);
    BOOST_TEST(p.fixed_total() >= 1);
    BOOST_TEST(told_the_same(P::static_fixed_total, p.fixed_total()));
  }
  BOOST_TEST(has_ghost(p) == (p.has_total && p.tail_goes_to == tail::ghost));
}

/// The total of any content is the fixed one, or the next multiple.
template <padding_policy P>
void totals_conform(const P& p) {
  for (offset_t content = 0; content <= 300; ++content) {
    const offset_t total = total_for(p, content);
    BOOST_TEST(total == (p.has_fixed_total ? p.fixed_total()
                                           : oracle::next_multiple(content, p.total_multiple())));
  }
}

/// A layout over a policy has the bounds that the policy's answers sum to.
template <padding_policy P>
void layouts_conform(const P& p) {
  const std::array lens{5, 0, 17, 1};
  const auto layout = make_layout(lens, p);
  oracle::numbers expected{0};
  for (const int length : lens) expected.push_back(expected.back() + p.padded_length(length));
  const offset_t total = total_for(p, expected.back());
  if (has_ghost(p)) expected.push_back(total);
  expected.back() = total;
  BOOST_TEST(layout.cu_seqlens_padded() == expected, boost::test_tools::per_element());
}

template <padding_policy P>
void suite(const P& p) {
  conforms(p);
  totals_conform(p);
  layouts_conform(p);
}

/// Two policies give the same answers.
template <padding_policy A, padding_policy B>
void same(const A& a, const B& b) {
  suite(b);
  BOOST_TEST(a.has_total == b.has_total);
  BOOST_TEST(a.has_fixed_total == b.has_fixed_total);
  BOOST_TEST((a.tail_goes_to == b.tail_goes_to));
  BOOST_TEST(a.each() == b.each());
  BOOST_TEST(a.total_multiple() == b.total_multiple());
  BOOST_TEST(a.fixed_total() == b.fixed_total());
  for (offset_t n = 0; n <= 300; ++n) {
    BOOST_TEST(a.padded_length(n) == b.padded_length(n));
    BOOST_TEST(total_for(a, n) == total_for(b, n));
  }
}

/// Static and dynamic numbers, and parts that are chosen at run time, give the same answers.
template <padding_policy Static, padding_policy Dynamic>
void agree(const Static& fixed, const Dynamic& at_run_time) {
  suite(fixed);
  same(fixed, at_run_time);
  same(fixed, any_padding(fixed));
  same(fixed, any_padding(at_run_time));
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_padding_conforms) {
  suite(no_padding{});
  same(no_padding{}, any_padding{});
  same(no_padding{}, any_padding(no_padding{}));
  BOOST_TEST(no_padding{}.padded_length(7) == 7);
  static_assert(!no_padding::has_total && !has_ghost(no_padding{}));
}

BOOST_AUTO_TEST_CASE(each_conforms) {
  agree(padding{each_multiple_of<1>{}}, padding{each_multiple_of<>{1}});
  agree(padding{each_multiple_of<8>{}}, padding{each_multiple_of<>{8}});
  agree(padding{each_multiple_of<12>{}}, padding{each_multiple_of<>{12}});
}

BOOST_AUTO_TEST_CASE(total_multiple_conforms) {
  agree(padding{total_multiple_of<64>{}}, padding{total_multiple_of<>{64}});
  agree(padding{total_multiple_of<7>{}, ghost_tail{}},
        padding{total_multiple_of<>{7}, ghost_tail{}});
  agree(padding{each_multiple_of<4>{}, total_multiple_of<48>{}, absorb_tail{}},
        padding{each_multiple_of<>{4}, total_multiple_of<>{48}, absorb_tail{}});
}

BOOST_AUTO_TEST_CASE(fixed_total_conforms) {
  agree(padding{fixed_total<100>{}}, padding{fixed_total<>{100}});
  agree(padding{each_multiple_of<4>{}, fixed_total<96>{}, ghost_tail{}},
        padding{each_multiple_of<>{4}, fixed_total<>{96}, ghost_tail{}});
  agree(padding{each_multiple_of<4>{}, total_multiple_of<16>{}, fixed_total<96>{}},
        padding{each_multiple_of<>{4}, total_multiple_of<>{16}, fixed_total<>{96}});
}

BOOST_AUTO_TEST_CASE(policies_of_ones_own_conform) {
  suite(power_of_two_padding{});
  suite(power_of_two_padding{.least = 8});
  suite(slots_of_ten{});
}

BOOST_AUTO_TEST_CASE(a_policy_of_ones_own_decides_the_bounds) {
  const std::array lens{5, 0, 17, 1};
  const auto layout = make_layout(lens, power_of_two_padding{.least = 4}, context_parallel<2>{});
  const std::array bounds{0, 8, 8, 40, 44};
  BOOST_TEST(layout.cu_seqlens_padded() == bounds, boost::test_tools::per_element());
  BOOST_TEST(layout.max_seqlen() == 32);
  const auto with_ghost = make_layout(lens, slots_of_ten{});
  const std::array ghost_bounds{0, 10, 10, 30, 40, 60};
  BOOST_TEST(with_ghost.cu_seqlens_padded() == ghost_bounds, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(parts_are_chosen_at_run_time) {
  const std::array lens{5, 3};
  const auto bounds_of = [&](bool total, bool ghost) {
    any_padding how = padding{each_multiple_of<>{4}};
    if (total) how = padding{each_multiple_of<>{4}, fixed_total<>{16}};
    if (total && ghost) how = padding{each_multiple_of<>{4}, fixed_total<>{16}, ghost_tail{}};
    const auto layout = make_layout(lens, how);
    const auto bounds = layout.cu_seqlens_padded();
    return oracle::numbers(bounds.begin(), bounds.end());
  };
  BOOST_TEST(bounds_of(false, false) == (oracle::numbers{0, 8, 12}));
  BOOST_TEST(bounds_of(true, false) == (oracle::numbers{0, 8, 16}));
  BOOST_TEST(bounds_of(true, true) == (oracle::numbers{0, 8, 12, 16}));
}

BOOST_AUTO_TEST_CASE(numbers_of_run_time_that_do_not_fit_are_refused) {
  const std::array lens{5, 3};
  BOOST_TEST(
      refusal([&] {
        make_layout(lens, any_padding(padding{each_multiple_of<6>{}}), context_parallel<2>{});
      }) == "each_multiple_of is 6: it must be a multiple of 4, what the sharding divides by");
  BOOST_TEST(refusal([&] {
               make_layout(lens, any_padding(padding{fixed_total<18>{}, total_multiple_of<4>{}}));
             }) == "fixed_total is 18: it must be a multiple of 4, the total multiple");
}

BOOST_AUTO_TEST_CASE(the_order_of_the_parts_does_not_matter) {
  const each_multiple_of<> each{4};
  const total_multiple_of<8> multiple;
  const fixed_total<> fixed{64};
  const auto same = [&](const auto& p) {
    static_assert(std::remove_cvref_t<decltype(p)>::tail_goes_to == tail::ghost);
    static_assert(std::remove_cvref_t<decltype(p)>::static_each == dynamic);
    static_assert(std::remove_cvref_t<decltype(p)>::static_total_multiple == 8);
    BOOST_TEST(p.each() == 4);
    BOOST_TEST(p.total_multiple() == 8);
    BOOST_TEST(p.fixed_total() == 64);
  };
  same(padding{each, multiple, fixed, ghost_tail{}});
  same(padding{ghost_tail{}, fixed, multiple, each});
  same(padding{fixed, ghost_tail{}, each, multiple});
}

BOOST_AUTO_TEST_CASE(a_tail_is_absorbed_unless_it_is_a_ghost) {
  static_assert(padding<each_multiple_of<4>>::tail_goes_to == tail::absorb);
  static_assert(padding<absorb_tail>::tail_goes_to == tail::absorb);
  static_assert(padding<ghost_tail>::tail_goes_to == tail::ghost);
  // A ghost needs a total: without one there is no tail.
  static_assert(!has_ghost(padding{ghost_tail{}, each_multiple_of<4>{}}));
  static_assert(has_ghost(padding{ghost_tail{}, total_multiple_of<1>{}}));
  static_assert(!has_ghost(padding{absorb_tail{}, total_multiple_of<4>{}}));
}

BOOST_AUTO_TEST_CASE(numbers_out_of_range_are_refused_by_name) {
  const std::string range = ": it must be from 1 to 281474976710656";
  BOOST_TEST(refusal([] { each_multiple_of<>{0}; }) == "each_multiple_of is 0" + range);
  BOOST_TEST(refusal([] { total_multiple_of<>{-4}; }) == "total_multiple_of is -4" + range);
  BOOST_TEST(refusal([] { fixed_total<>{max_tokens + 1}; }) ==
             "fixed_total is 281474976710657" + range);
  BOOST_TEST(refusal([] { fixed_total<>{max_tokens}; }) == "accepted");
}
