#define BOOST_TEST_MODULE comm_rank
#include "seqpack/comm/rank.hpp"

#include <boost/test/unit_test.hpp>
#include <type_traits>

#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refused;

// A rank of one kind is no rank of the other, and no number is either.
static_assert(!std::is_convertible_v<group_rank, world_rank>);
static_assert(!std::is_convertible_v<world_rank, group_rank>);
static_assert(!std::is_convertible_v<offset_t, group_rank>);
static_assert(!std::is_convertible_v<group_rank, offset_t>);

BOOST_AUTO_TEST_CASE(members_translate_both_ways) {
  const group_members group({{3}, {1}});
  BOOST_TEST(group.size() == 2);
  BOOST_TEST(group.to_world({0}).value == 3);
  BOOST_TEST(group.to_world({1}).value == 1);
  BOOST_TEST(group.to_group({3}).value == 0);
  BOOST_TEST(group.to_group({1}).value == 1);
  BOOST_TEST(group.contains({3}));
  BOOST_TEST(!group.contains({0}));
  BOOST_TEST(!group.find({2}).has_value());
  BOOST_TEST(group.to_string() == "{3, 1}");
}

BOOST_AUTO_TEST_CASE(everybody_and_nobody) {
  const group_members all = group_members::all(3);
  BOOST_TEST(all.to_string() == "{0, 1, 2}");
  BOOST_TEST((all == group_members({{0}, {1}, {2}})));
  BOOST_TEST((all != group_members({{0}, {2}, {1}})));
  BOOST_TEST(group_members().size() == 0);
  BOOST_TEST(group_members().to_string() == "{}");
}

BOOST_AUTO_TEST_CASE(ranks_outside_are_refused) {
  const group_members group({{3}, {1}});
  for (const offset_t rank : {-1, 2}) {
    BOOST_CHECK_EXCEPTION(group.to_world({rank}), invalid_input,
                          refused("group rank", std::to_string(rank), "from 0 to 1"));
  }
  BOOST_CHECK_EXCEPTION(group.to_group({0}), invalid_input,
                        refused("world rank", "0", "a member of the group {3, 1}"));
  BOOST_CHECK_EXCEPTION(group.require({7}, "root"), invalid_input,
                        refused("root", "7", "from 0 to 1"));
  BOOST_CHECK_EXCEPTION(group_members({{0}, {-2}}), invalid_input,
                        refused("members[1]", "-2", "at least 0"));
  BOOST_CHECK_EXCEPTION(group_members({{4}, {5}, {4}}), invalid_input,
                        refused("members[2]", "4", "once"));
}
