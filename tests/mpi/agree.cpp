// agree between processes: who differs is named, the same on all ranks, and the group stays usable.
#define BOOST_TEST_MODULE mpi_agree
#include "seqpack/parallel/agree.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "support/communicator_suite.hpp"
#include "support/mpi.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

/// All ranks, and what they must throw together.
struct frame {
  mpi_communicator group = world();
  findings found = my_findings();
  offset_t me = group.rank().value;
  offset_t size = group.size();

  template <class Call>
  void all_refuse(const Call& call, const std::string& text, const std::string& what) {
    found.throws<collective_mismatch>(call, text, what);
    found.equal(gather_numbers(group, me).size(), static_cast<std::size_t>(size),
                "the group is usable after: " + what);
    agree(group, 1, "the group");
  }
  ~frame() { found.report(); }
};

template <class Policy = no_padding>
auto layout_of(const std::vector<int>& lens, const Policy& how = {}) {
  return make_layout(lens, how, context_parallel{2, contiguous{}});
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(all_the_same, frame) {
  agree(group, 77, "step");
  agree(group, layout_of({4, 8}));
  agree(group, layout_of({4, 8}), "micro-batch 3");
  found.check(true, "no rank throws");
}

BOOST_FIXTURE_TEST_CASE(static_and_dynamic_policies_agree, frame) {
  if (me % 2 == 0) {
    agree(group,
          make_layout(std::vector{4, 8}, padding{each_multiple_of<4>{}}, context_parallel<2>{}));
  } else {
    agree(group, make_layout<std::int64_t>(std::vector<std::int8_t>{4, 8},
                                           padding{each_multiple_of<>{4}}, context_parallel{2}));
  }
  found.check(true, "no rank throws");
}

BOOST_FIXTURE_TEST_CASE(one_number_differs, frame, *at_least(2)) {
  for (offset_t odd = 0; odd < size; ++odd) {
    // Of two ranks the lower one is right, so that rank 1 is named in any case.
    const offset_t named = size == 2 ? 1 : odd;
    const int wrong = size == 2 && odd == 0 ? 7 : 8;
    all_refuse([&] { agree(group, me == odd ? 8 : 7, "step"); },
               "step on rank " + std::to_string(named) + " is " + std::to_string(wrong) +
                   ": it must be " + std::to_string(15 - wrong) + ", as on rank " +
                   (named == 0 ? "1" : "0"),
               "one number that differs");
  }
}

BOOST_FIXTURE_TEST_CASE(all_numbers_differ, frame, *exactly(3)) {
  all_refuse([&] { agree(group, static_cast<std::uint64_t>(10 + me), "step"); },
             "step on rank 1 is 11: it must be 10, as on rank 0; refused on 2 ranks: 1, 2",
             "all numbers differ");
}

BOOST_FIXTURE_TEST_CASE(one_layout_differs, frame, *at_least(2)) {
  const offset_t odd = size - 1;
  const std::string on = " on rank " + std::to_string(odd) + " is ";
  const auto differ = [&](const auto& other, const auto& layout, const std::string& text) {
    all_refuse([&] { me == odd ? agree(group, other) : agree(group, layout); }, text, text);
  };
  const auto usual = layout_of({4, 8});
  differ(layout_of({4, 8, 0}), usual, "batch size" + on + "3: it must be 2, as on rank 0");
  differ(layout_of({4, 10}), usual, "total tokens" + on + "14: it must be 12, as on rank 0");
  const std::vector<offset_t> one{0};
  differ(make_layout(std::vector{4, 8}, no_padding{}, context_parallel{2, contiguous{}},
                     {.order = one}),
         usual, "number of sequences" + on + "1: it must be 2, as on rank 0");
  differ(make_layout(std::vector{4, 8}), usual,
         "context-parallel size" + on + "1: it must be 2, as on rank 0");
  const auto swapped = layout_of({8, 4});
  differ(swapped, usual,
         "layout hash" + on + detail::hex(layout_hash(swapped)) + ": it must be " +
             detail::hex(layout_hash(usual)) + ", as on rank 0");
  const auto striped_one =
      make_layout(std::vector{4, 8}, no_padding{}, context_parallel{2, striped{}});
  differ(striped_one, usual,
         "layout hash" + on + detail::hex(layout_hash(striped_one)) + ": it must be " +
             detail::hex(layout_hash(usual)) + ", as on rank 0");
  all_refuse([&] { agree(group, layout_of({4, me == odd ? 10 : 8}), "micro-batch 3"); },
             "total tokens of micro-batch 3" + on + "14: it must be 12, as on rank 0",
             "a layout with a name");
}

BOOST_FIXTURE_TEST_CASE(other_subjects_and_other_calls, frame, *at_least(2)) {
  const offset_t odd = size - 1;
  const std::string last = std::to_string(odd);
  all_refuse([&] { agree(group, 7, me == odd ? "epoch" : "step"); },
             "subject of the agreement on rank " + last +
                 " is \"epoch\": it must be \"step\", as on rank 0",
             "another subject");
  all_refuse([&] { me == odd ? agree(group, 7, "step") : agree(group, layout_of({4})); },
             "operation on rank " + last +
                 " is agree: it must be agree on a layout, the operation on rank 0",
             "a number and a layout");
}

BOOST_FIXTURE_TEST_CASE(world_ranks_are_named_in_a_reordered_group, frame, *at_least(2)) {
  auto reversed = group.split(0, -me);
  const std::string world_last = std::to_string(size - 1);
  found.throws<collective_mismatch>(
      [&] { agree(reversed, me == 0 ? 8 : 7, "step"); },
      "step on rank " + world_last +
          " (world rank 0) is 8: it must be 7, as on rank 0 (world rank " + world_last + ")",
      "a reordered group");
  agree(reversed, 1, "the group");
}

BOOST_FIXTURE_TEST_CASE(no_member_throws_alone, frame) {
  auto others = group.split(me == 0 ? std::nullopt : std::optional<offset_t>(0), 0);
  if (me == 0) {
    found.throws<invalid_input>([&] { agree(others, 7, "step"); },
                                "caller is world rank 0: it must be a member of the group",
                                "no member");
  } else {
    agree(others, 7, "step");
  }
  agree(group, 1, "the group");
  found.check(true, "the others agree");
}
