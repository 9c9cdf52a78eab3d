#define BOOST_TEST_MODULE sharding
#include "seqpack/policy/sharding.hpp"

#include <boost/test/unit_test.hpp>
#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include "seqpack/policy/any_sharding.hpp"
#include "support/oracle.hpp"
#include "support/refused.hpp"
#include "support/sharding_suite.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

/// One with a number of its own: blocks of tokens are dealt out in turn.
struct blocks {
  offset_t size = 1;

  constexpr offset_t divisor(offset_t cp) const { return cp * size; }
  constexpr shard_position to_shard(offset_t token, offset_t, offset_t cp) const {
    const offset_t block = token / size;
    return {block % cp, block / cp * size + token % size};
  }
  constexpr offset_t to_token(shard_position p, offset_t, offset_t cp) const {
    return (p.index / size * cp + p.rank) * size + p.index % size;
  }
  constexpr offset_t run(shard_position p, offset_t, offset_t) const {
    return size - p.index % size;
  }
};

struct without_run {
  static constexpr offset_t divisor(offset_t cp) { return cp; }
  static constexpr shard_position to_shard(offset_t, offset_t, offset_t) { return {}; }
  static constexpr offset_t to_token(shard_position, offset_t, offset_t) { return 0; }
};
struct with_an_int_divisor : reversed_contiguous {
  static constexpr int divisor(offset_t cp) { return static_cast<int>(cp); }
};
struct not_trivially_copyable : reversed_contiguous {
  std::vector<int> table;
};

// Who satisfies the concepts, and who does not.
static_assert(sharding<zigzag> && sharding<contiguous> && sharding<striped>);
static_assert(sharding<row_contiguous>);
static_assert(sharding<reversed_contiguous> && sharding<blocks> && sharding<any_sharding>);
static_assert(!sharding<int> && !sharding<without_run> && !sharding<with_an_int_divisor>);
static_assert(!sharding<not_trivially_copyable> && !sharding<context_parallel<2>>);
static_assert(context_parallel_policy<no_context_parallel>);
static_assert(context_parallel_policy<context_parallel<>>);
static_assert(context_parallel_policy<context_parallel<4, reversed_contiguous>>);
static_assert(context_parallel_policy<context_parallel<dynamic, blocks>>);
static_assert(!context_parallel_policy<zigzag> && !context_parallel_policy<int>);

// The deduced types are those that were meant, and a number does not become a policy by itself.
static_assert(std::same_as<decltype(context_parallel{offset_t{4}}), context_parallel<>>);
static_assert(
    std::same_as<decltype(context_parallel{4, striped{}}), context_parallel<dynamic, striped>>);
static_assert(context_parallel<4>::static_size == 4);
static_assert(context_parallel<>::static_size == dynamic && context_parallel<>{}.size() == 1);
static_assert(!std::is_convertible_v<offset_t, context_parallel<>>);

// What is static converts to what is chosen at run time, and nothing else does.
template <class From, class To>
inline constexpr bool converts = std::is_convertible_v<From, To>;
using chosen_late = context_parallel<dynamic, any_sharding>;
static_assert(converts<context_parallel<4>, context_parallel<>>);
static_assert(converts<context_parallel<4>, context_parallel<4, any_sharding>>);
static_assert(converts<context_parallel<4>, chosen_late>);
static_assert(converts<context_parallel<dynamic, striped>, chosen_late>);
static_assert(converts<context_parallel<2, any_sharding>, chosen_late>);
static_assert(!converts<context_parallel<>, context_parallel<4>>);
static_assert(!converts<context_parallel<2>, context_parallel<4, any_sharding>>);
static_assert(!converts<chosen_late, context_parallel<>>);
static_assert(!converts<context_parallel<4>, context_parallel<4, striped>>);
static_assert(!converts<context_parallel<4, reversed_contiguous>, chosen_late>);

/// It may do something else than what it derives from.
struct from_contiguous : contiguous {};
static_assert(!converts<from_contiguous, any_sharding>);

/// The shares are those of the definitions.
template <sharding S>
void shares_are(oracle::kind kind) {
  for (offset_t cp = 1; cp <= 8; ++cp) {
    const context_parallel<dynamic, S> c{cp};
    BOOST_TEST(c.divisor() == oracle::divisor(kind, cp));
    for (offset_t length = 0; length <= 4 * c.divisor(); length += c.divisor()) {
      for (offset_t rank = 0; rank < cp; ++rank) {
        oracle::numbers share;
        for (offset_t index = 0; index < length / cp; ++index) {
          share.push_back(c.to_token({rank, index}, length));
        }
        BOOST_TEST(share == oracle::share(kind, cp, rank, length));
      }
    }
  }
}

template <context_parallel_policy A, context_parallel_policy B>
void same(const A& fixed, const B& at_run_time) {
  BOOST_TEST(fixed.size() == at_run_time.size());
  BOOST_TEST(fixed.divisor() == at_run_time.divisor());
  BOOST_TEST(fixed.total_divisor() == at_run_time.total_divisor());
  BOOST_TEST(fixed.cuts_row() == at_run_time.cuts_row());
  const offset_t length = 3 * fixed.total_divisor();
  for (offset_t token = 0; token < length; ++token) {
    const shard_position p = fixed.to_shard(token, length);
    BOOST_TEST((p == at_run_time.to_shard(token, length)));
    BOOST_TEST(fixed.to_token(p, length) == at_run_time.to_token(p, length));
    BOOST_TEST(fixed.run(p, length) == at_run_time.run(p, length));
  }
}

template <offset_t Size, sharding S>
void static_agrees() {
  const context_parallel<Size, S> fixed;
  same(fixed, context_parallel<dynamic, S>{Size});
  same(fixed, context_parallel<dynamic, S>(fixed));
  if constexpr (std::convertible_to<S, any_sharding>) {
    same(fixed, context_parallel{Size, any_sharding{S{}}});
    same(fixed, context_parallel<Size, any_sharding>{any_sharding{S{}}});
    same(fixed, chosen_late(fixed));
    same(fixed, chosen_late(context_parallel<dynamic, S>{Size}));
  }
}

/// Loops get the sharding itself, once, where it is chosen at run time.
template <sharding S>
void is_visited_as_itself() {
  const auto check = [](const auto& cp) {
    int visits = 0;
    bool itself = false;
    cp.visit([&]<class C>(const C& chosen) {
      ++visits;
      itself = std::same_as<typename C::sharding_type, S> && chosen.size() == 4;
    });
    BOOST_TEST(visits == 1);
    BOOST_TEST(itself);
  };
  check(context_parallel{4, any_sharding{S{}}});
  check(context_parallel<4, any_sharding>{any_sharding{S{}}});
}

template <sharding S>
void static_and_dynamic_agree() {
  static_agrees<1, S>();
  static_agrees<2, S>();
  static_agrees<3, S>();
  static_agrees<8, S>();
}

}  // namespace

// Zigzag over 2 ranks and 8 tokens, in constant expressions.
static_assert(zigzag::divisor(2) == 4);
static_assert(zigzag::to_shard(0, 8, 2) == shard_position{0, 0});
static_assert(zigzag::to_shard(3, 8, 2) == shard_position{1, 1});
static_assert(zigzag::to_shard(5, 8, 2) == shard_position{1, 3});
static_assert(zigzag::to_shard(6, 8, 2) == shard_position{0, 2});
static_assert(zigzag::to_token({0, 3}, 8, 2) == 7);
static_assert(zigzag::run({0, 0}, 8, 2) == 2 && zigzag::run({1, 1}, 8, 2) == 3);
static_assert(contiguous::to_shard(5, 8, 2) == shard_position{1, 1});
static_assert(striped::to_shard(5, 8, 2) == shard_position{1, 2});

BOOST_AUTO_TEST_CASE(zigzag_conforms) {
  check_sharding(zigzag{}, true);
  shares_are<zigzag>(oracle::kind::zigzag);
  static_and_dynamic_agree<zigzag>();
}

BOOST_AUTO_TEST_CASE(contiguous_conforms) {
  check_sharding(contiguous{}, true);
  shares_are<contiguous>(oracle::kind::contiguous);
  static_and_dynamic_agree<contiguous>();
}

BOOST_AUTO_TEST_CASE(striped_conforms) {
  check_sharding(striped{}, true);
  shares_are<striped>(oracle::kind::striped);
  static_and_dynamic_agree<striped>();
}

BOOST_AUTO_TEST_CASE(row_contiguous_conforms) {
  check_sharding(row_contiguous{}, true);
  static_and_dynamic_agree<row_contiguous>();
  const context_parallel<4, row_contiguous> cp;
  BOOST_TEST(cp.cuts_row());
  BOOST_TEST(cp.divisor() == 1);
  BOOST_TEST(cp.total_divisor() == 4);
  // Row 5 of 8, over 4 ranks.
  BOOST_TEST((cp.to_shard(5, 8) == shard_position{2, 1}));
  BOOST_TEST(cp.to_token({2, 1}, 8) == 5);
}

BOOST_AUTO_TEST_CASE(one_rank_cuts_nothing) {
  const context_parallel<1, row_contiguous> cp;
  BOOST_TEST(!cp.cuts_row());
  BOOST_TEST(cp.divisor() == 1);
  BOOST_TEST(cp.total_divisor() == 1);
  BOOST_TEST(!(context_parallel{1, any_sharding{row_contiguous{}}}.cuts_row()));
}

BOOST_AUTO_TEST_CASE(shardings_of_ones_own_conform) {
  check_sharding(reversed_contiguous{}, true);
  static_and_dynamic_agree<reversed_contiguous>();
  check_sharding(blocks{1}, true);
  check_sharding(blocks{3}, true);
}

BOOST_AUTO_TEST_CASE(shardings_that_are_chosen_at_run_time_conform) {
  check_sharding(any_sharding{zigzag{}}, true);
  check_sharding(any_sharding{contiguous{}}, true);
  check_sharding(any_sharding{striped{}}, true);
  check_sharding(any_sharding{row_contiguous{}}, true);
  BOOST_TEST((any_sharding{} == any_sharding{sharding_kind::zigzag}));
  BOOST_TEST((any_sharding{contiguous{}} == any_sharding{sharding_kind::contiguous}));
  BOOST_TEST((any_sharding{striped{}} == any_sharding{sharding_kind::striped}));
  BOOST_TEST((any_sharding{row_contiguous{}} == any_sharding{sharding_kind::row_contiguous}));
}

BOOST_AUTO_TEST_CASE(loops_see_which_sharding_was_chosen) {
  is_visited_as_itself<zigzag>();
  is_visited_as_itself<contiguous>();
  is_visited_as_itself<striped>();
  is_visited_as_itself<row_contiguous>();
}

BOOST_AUTO_TEST_CASE(a_sharding_is_assigned_another_one) {
  context_parallel<dynamic, any_sharding> cp = context_parallel<2, contiguous>{};
  BOOST_TEST((cp.to_shard(5, 8) == shard_position{1, 1}));
  cp = context_parallel<>{4};
  BOOST_TEST(cp.size() == 4);
  BOOST_TEST(cp.divisor() == 8);
  cp = context_parallel{2, any_sharding{sharding_kind::striped}};
  BOOST_TEST((cp.to_shard(5, 8) == shard_position{1, 2}));
}

BOOST_AUTO_TEST_CASE(a_static_size_takes_a_sharding_with_a_number) {
  const context_parallel<2, blocks> c{blocks{4}};
  BOOST_TEST(c.divisor() == 8);
  BOOST_TEST((c.to_shard(5, 16) == shard_position{1, 1}));
}

BOOST_AUTO_TEST_CASE(one_rank_owns_everything_in_order) {
  const auto whole = [](const auto& c) {
    BOOST_TEST(c.divisor() == 1);
    check_bijection(c, 7);
    for (offset_t token = 0; token < 7; ++token) {
      BOOST_TEST((c.to_shard(token, 7) == shard_position{0, token}));
      BOOST_TEST(c.run({0, token}, 7) == 7 - token);
    }
  };
  whole(no_context_parallel{});
  whole(context_parallel{1, striped{}});
  whole(context_parallel<1, reversed_contiguous>{});
  whole(context_parallel{1, blocks{3}});
}

BOOST_AUTO_TEST_CASE(large_sequences) {
  const offset_t length = offset_t{1} << 40;
  const context_parallel<8> c;
  const offset_t chunk = length / 16;
  BOOST_TEST((c.to_shard(length - 1, length) == shard_position{0, 2 * chunk - 1}));
  BOOST_TEST(c.to_token({7, chunk}, length) == 8 * chunk);
  BOOST_TEST(c.run({7, 0}, length) == 2 * chunk);
}

BOOST_AUTO_TEST_CASE(sizes_and_ranks_out_of_range_are_refused) {
  const std::string range = ": it must be from 1 to 281474976710656";
  BOOST_TEST(refusal([] { context_parallel<>{0}; }) == "context_parallel size is 0" + range);
  BOOST_TEST(refusal([] { context_parallel{-2, striped{}}; }) ==
             "context_parallel size is -2" + range);
  const std::string last = ": it must be from 0 to 3, the last context-parallel rank";
  BOOST_TEST(refusal([] { detail::require_rank(4, 4); }) == "rank is 4" + last);
  BOOST_TEST(refusal([] { detail::require_rank(-1, 4); }) == "rank is -1" + last);
  BOOST_TEST(refusal([] { detail::require_rank(3, 4); }) == "accepted");
  BOOST_TEST(refusal([] { detail::require_rank(0, 1); }) == "accepted");
}
