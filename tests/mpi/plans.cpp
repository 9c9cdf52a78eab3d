// Plans of processes: from the same lengths they are the same, and where one process has planned with other
// data, all are told alike.
#define BOOST_TEST_MODULE mpi_plans
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "seqpack/parallel/agree_plan.hpp"
#include "seqpack/parallel/together.hpp"
#include "seqpack/plan/plan_rows.hpp"
#include "seqpack/plan/plan_steps.hpp"
#include "support/communicator_suite.hpp"
#include "support/mpi.hpp"
#include "support/plan_agreement_suite.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

struct frame {
  mpi_communicator group = world();
  findings found = my_findings();
  offset_t me = group.rank().value;
  offset_t size = group.size();
  ~frame() { found.report(); }
};

/// What a loader of one process has read: about as many tokens on each.
std::vector<offset_t> lengths_of_rank(offset_t rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank + 1));
  std::lognormal_distribution<double> length(5, 1);
  std::vector<offset_t> lengths(count);
  for (offset_t& n : lengths) n = std::min<offset_t>(2048, static_cast<offset_t>(length(random)));
  return lengths;
}

/// The lengths of all ranks, on all of them.
std::vector<offset_t> gathered(mpi_communicator& group, const std::vector<offset_t>& mine) {
  std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(group.size()));
  group.all_gather(mine.data(), all.data(), static_cast<offset_t>(mine.size()));
  group.wait();
  return {all.begin(), all.end()};
}

const padding<each_multiple_of<16>> each16{};

}  // namespace

BOOST_FIXTURE_TEST_CASE(numbers_that_differ_are_named_on_all_ranks, frame) {
  check_plan_agreement(group, found);
}

BOOST_FIXTURE_TEST_CASE(ranks_with_unequal_data_plan_what_they_have_gathered_alike, frame) {
  const auto lengths = gathered(group, lengths_of_rank(me, 500));
  const step_plan plan = plan_steps(lengths, 4096, size, each16);
  agree(group, plan);
  agree(group, plan_rows(lengths, 4096, each16), "rows");
  // Every rank makes as many layouts, and all sequences are in one of them.
  offset_t packed = 0;
  for (const auto micro_batch : plan.of_rank(me)) {
    packed +=
        make_layout(lengths, each16, no_context_parallel{}, {.order = micro_batch}).sequences();
  }
  std::int64_t all = 0;
  group.all_reduce(&packed, &all, 1, reduction::sum);
  group.wait();
  found.equal(all, static_cast<std::int64_t>(lengths.size()), "sequences of all ranks");
}

BOOST_FIXTURE_TEST_CASE(a_rank_that_planned_other_lengths_is_told_by_all, frame, *at_least(2)) {
  auto lengths = gathered(group, lengths_of_rank(me, 100));
  const step_plan right = plan_steps(lengths, 4096, size, each16);
  if (me == size - 1) std::reverse(lengths.begin(), lengths.end());
  const step_plan plan = plan_steps(lengths, 4096, size, each16);
  std::string text;
  try {
    agree(group, plan, "epoch 0");
  } catch (const collective_mismatch& e) {
    text = e.what();
    found.equal(e.rank().value, size == 2 ? 1 : size - 1, "the rank that differs");
  }
  found.check(text.find(" of epoch 0 on rank " + std::to_string(size - 1) + " is ") != text.npos,
              "what differs: " + text);
  std::vector<char> mine(400, '\0');
  text.copy(mine.data(), mine.size());
  std::vector<char> all(mine.size() * static_cast<std::size_t>(size));
  group.all_gather(mine.data(), all.data(), static_cast<offset_t>(mine.size()));
  group.wait();
  for (offset_t r = 0; r < size; ++r) {
    found.equal(std::string(all.data() + 400 * r), text, "the text of all ranks");
  }
  agree(group, right, "what was planned from the same lengths");
}

BOOST_FIXTURE_TEST_CASE(a_plan_that_one_rank_refuses_is_refused_by_all, frame, *at_least(2)) {
  const auto plan_mine = [&](offset_t longest) {
    return plan_steps(std::vector<offset_t>{3, longest}, 8, size);
  };
  found.throws<collective_mismatch>(
      [&] { together(group, "plan", [&] { return plan_mine(me == 1 ? 9 : 5); }); },
      "padded length of lengths[1] on rank 1 is 9: it must be at most 8, what a row of capacity 8 "
      "has "
      "room for",
      "a length above the budget");
  const step_plan plan = together(group, "plan", [&] { return plan_mine(5); });
  agree(group, plan);
}
