// Which rank is not with the majority, and what the error says.
#define BOOST_TEST_MODULE parallel_majority
#include "seqpack/parallel/detail/majority.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

namespace {

using namespace seqpack;
using detail::difference;

difference describe(int found, int expected) {
  return {"number", std::to_string(found), std::to_string(expected)};
}

void refuse_numbers(const std::vector<int>& numbers, offset_t rank, const std::string& text,
                    group_members members = {}) {
  if (members.size() == 0) members = group_members::all(static_cast<offset_t>(numbers.size()));
  BOOST_CHECK_EXCEPTION(detail::require_same(members, numbers, describe), collective_mismatch,
                        [&](const collective_mismatch& e) {
                          BOOST_TEST(e.what() == text);
                          BOOST_TEST(e.rank().value == rank);
                          return true;
                        });
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_the_same) {
  detail::require_same(group_members::all(3), std::vector{4, 4, 4}, describe);
}

BOOST_AUTO_TEST_CASE(majority_is_right) {
  refuse_numbers({4, 4, 5}, 2, "number on rank 2 is 5: it must be 4, as on rank 0");
  refuse_numbers({5, 4, 4}, 0, "number on rank 0 is 5: it must be 4, as on rank 1");
  refuse_numbers({4, 5, 6, 4, 7}, 1,
                 "number on rank 1 is 5: it must be 4, as on rank 0; refused on 3 ranks: 1, 2, 4");
}

BOOST_AUTO_TEST_CASE(lowest_rank_is_right_in_a_tie) {
  refuse_numbers({4, 5}, 1, "number on rank 1 is 5: it must be 4, as on rank 0");
  refuse_numbers({9, 5, 4, 5, 4}, 0,
                 "number on rank 0 is 9: it must be 5, as on rank 1; refused on 3 ranks: 0, 2, 4");
  refuse_numbers({1, 2, 3}, 1,
                 "number on rank 1 is 2: it must be 1, as on rank 0; refused on 2 ranks: 1, 2");
}

BOOST_AUTO_TEST_CASE(world_ranks_are_named_where_they_differ) {
  refuse_numbers({4, 5}, 1, "number on rank 1 (world rank 2) is 5: it must be 4, as on rank 0",
                 group_members({{0}, {2}}));
}

BOOST_AUTO_TEST_CASE(first_number_of_a_layout_that_differs) {
  const layout_fingerprint expected{
      .hash = 1, .batch = 4, .sequences = 3, .total_tokens = 96, .cp_size = 2};
  const auto name = [&](layout_fingerprint found, const char* what, const char* is,
                        const char* must) {
    const difference d = detail::describe_layouts(found, expected);
    BOOST_TEST(d.name == what);
    BOOST_TEST(d.found == is);
    BOOST_TEST(d.expected == must);
  };
  name({2, 5, 4, 97, 3}, "batch size", "5", "4");
  name({2, 4, 4, 97, 3}, "number of sequences", "4", "3");
  name({2, 4, 3, 97, 3}, "total tokens", "97", "96");
  name({2, 4, 3, 96, 3}, "context-parallel size", "3", "2");
  name({0xfedcba9876543210u, 4, 3, 96, 2}, "layout hash", "0xfedcba9876543210",
       "0x0000000000000001");
}
