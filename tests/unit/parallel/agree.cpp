// agree in a group of one, and the verdict on the records of more ranks, which tests/mpi/agree.cpp
// sends around.
#define BOOST_TEST_MODULE agree
#include "seqpack/parallel/agree.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "seqpack/layout/layout.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using detail::agreeing::difference;

difference describe(int found, int expected) {
  return {"number", std::to_string(found), std::to_string(expected)};
}

void refuse_numbers(const std::vector<int>& numbers, offset_t rank, const std::string& text,
                    group_members members = {}) {
  if (members.size() == 0) members = group_members::all(static_cast<offset_t>(numbers.size()));
  BOOST_CHECK_EXCEPTION(detail::agreeing::require_same(members, numbers, describe),
                        collective_mismatch, [&](const collective_mismatch& e) {
                          BOOST_TEST(e.what() == text);
                          BOOST_TEST(e.rank().value == rank);
                          return true;
                        });
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_rank_agrees_with_itself) {
  self_communicator group;
  agree(group, std::uint64_t{7}, "step");
  agree(group, 7, "");
  agree(group, make_layout(std::vector{3, 5}));
  agree(group, make_layout(std::vector{3, 5}).view(), "micro-batch 3");
  agree(group, make_layout(std::vector<int>{}));
}

BOOST_AUTO_TEST_CASE(no_member_is_refused) {
  self_communicator all;
  self_communicator none = all.split(std::nullopt, 0);
  BOOST_CHECK_EXCEPTION(agree(none, 7, "step"), invalid_input,
                        refused("caller", "world rank 0", "it must be a member of the group"));
  BOOST_CHECK_EXCEPTION(agree(none, make_layout(std::vector{3})), invalid_input,
                        refused("caller", "world rank 0", "it must be a member of the group"));
}

BOOST_AUTO_TEST_CASE(layout_without_arrays_is_refused) {
  self_communicator group;
  const layout_view<no_padding, no_context_parallel> view{
      .sequences = 1, .segments = 1, .total = 4};
  BOOST_CHECK_EXCEPTION(agree(group, view), invalid_input,
                        refused("the layout's cu_seqlens", "null", "needs its arrays"));
}

BOOST_AUTO_TEST_CASE(all_the_same) {
  detail::agreeing::require_same(group_members::all(3), std::vector{4, 4, 4}, describe);
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
    const difference d = detail::agreeing::describe_layouts(found, expected);
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

BOOST_AUTO_TEST_CASE(text_is_cut_between_words) {
  using detail::agreeing::shortened;
  BOOST_TEST(shortened("one two three", 13) == "one two three");
  BOOST_TEST(shortened("one two three", 12) == "one two ...");
  BOOST_TEST(shortened("one two three", 11) == "one two ...");
  BOOST_TEST(shortened("one two three", 10) == "one ...");
  BOOST_TEST(shortened(std::string(20, 'x'), 10) == "xxxxxx ...");
  BOOST_TEST(shortened("", 10) == "");
}

BOOST_AUTO_TEST_CASE(the_name_of_a_rank_is_not_cut) {
  const std::string text = "it must be agree, the operation on rank 12 (world rank 345); more";
  for (std::size_t room = 12; room <= text.size(); ++room) {
    const std::string cut = detail::agreeing::shortened(text, room);
    BOOST_TEST(cut.size() <= room);
    BOOST_TEST((cut.find("rank") == cut.npos || cut.find("rank 12 (world rank 345)") != cut.npos),
               cut);
  }
  BOOST_TEST(detail::agreeing::shortened(text, 64) ==
             "it must be agree, the operation on rank 12 (world rank 345); ...");
}

BOOST_AUTO_TEST_CASE(a_refusal_fits_into_a_record_and_keeps_the_name) {
  const std::string name = " on rank 1 (world rank 7)";
  const detail::agreeing::refusal r(std::string(300, 'e'), std::string(300, 'v'),
                                    std::string(300, 'r'), name);
  BOOST_TEST(r.entry == std::string(67, 'e') + " ..." + name);
  BOOST_TEST(r.value == std::string(36, 'v') + " ...");
  BOOST_TEST(r.requirement == std::string(52, 'r') + " ...");
  const auto back = detail::records::read<detail::agreeing::refusal>(detail::records::write(r));
  BOOST_TEST(back.entry == r.entry);
  BOOST_TEST(back.value == r.value);
  BOOST_TEST(back.requirement == r.requirement);
}
