/// \file
/// What agree must do with plans. Called by all ranks of a group of any size.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/parallel/agree_plan.hpp"
#include "seqpack/plan/row_plan.hpp"
#include "seqpack/plan/step_plan.hpp"
#include "support/findings.hpp"

namespace seqpack::testing {

/// The last rank has another plan than the others; of one rank there is nobody to differ from.
template <class C>
struct odd_rank {
  C& group;
  findings& found;
  bool odd = group.rank().value == group.size() - 1;
  std::string last = "rank " + std::to_string(group.size() - 1);

  /// \param text what all ranks must say, "ODD" where the last rank is named
  template <class Plan>
  void differs(const Plan& other, const Plan& usual, const std::string& text,
               const std::string& what = "") {
    if (group.size() == 1) return agree(group, odd ? other : usual, what);
    std::string expected = text;
    const auto at = expected.find("ODD");
    if (at != expected.npos) expected.replace(at, 3, last);
    found.template throws<collective_mismatch>([&] { agree(group, odd ? other : usual, what); },
                                               expected, text);
    agree(group, 1, "the group");
  }
};

/// Rows of `each` sequences.
inline row_plan rows_of(std::vector<offset_t> sequences, std::size_t each) {
  std::vector<offset_t> bounds;
  for (std::size_t k = 0; k < sequences.size(); k += each) {
    bounds.push_back(static_cast<offset_t>(k));
  }
  bounds.push_back(static_cast<offset_t>(sequences.size()));
  return {std::move(sequences), std::move(bounds)};
}

template <class C>
void check_small_plans(C& group, findings& found) {
  odd_rank<C> last{group, found};
  const std::vector<offset_t> sequences{4, 2, 0, 1, 3};
  const row_plan usual(sequences, {0, 2, 2, 5});
  agree(group, usual);
  agree(group, usual, "epoch 3");
  agree(group, row_plan());
  last.differs(row_plan({4, 2, 0, 3, 1}, {0, 2, 2, 5}), usual,
               "sequences[3] on ODD is 3: it must be 1, as on rank 0");
  last.differs(row_plan({4, 2, 0, 3, 1}, {0, 2, 2, 5}), usual,
               "sequences[3] of epoch 3 on ODD is 3: it must be 1, as on rank 0", "epoch 3");
  last.differs(row_plan({2, 4, 0, 3, 1}, {0, 2, 3, 5}), usual,
               "bounds[2] on ODD is 3: it must be 2, as on rank 0");
  last.differs(row_plan(sequences, {0, 2, 5}), usual,
               "number of rows on ODD is 2: it must be 3, as on rank 0");
  last.differs(row_plan({4, 2, 0, 1}, {0, 2, 2, 4}), usual,
               "number of sequences on ODD is 4: it must be 5, as on rank 0");
  const std::vector<sequence_piece> pieces{{0, 0, 4}, {0, 4, 3}};
  const row_plan split({0, 1}, {0, 1, 2}, pieces);
  agree(group, split);
  last.differs(row_plan({0, 1}, {0, 1, 2}), split,
               "number of pieces on ODD is 0: it must be 2, as on rank 0");
  last.differs(row_plan({0, 1}, {0, 1, 2}, {{0, 0, 5}, {0, 5, 2}}), split,
               "length of piece 0 on ODD is 5: it must be 4, as on rank 0");
  last.differs(row_plan({0, 1}, {0, 1, 2}, {{0, 0, 4}, {0, 5, 3}}), split,
               "first token of piece 1 on ODD is 5: it must be 4, as on rank 0");
}

template <class C>
void check_step_plans(C& group, findings& found) {
  odd_rank<C> last{group, found};
  const step_plan usual(row_plan({4, 2, 0, 1, 3}, {0, 2, 3, 5, 5}), 2);
  agree(group, usual);
  agree(group, step_plan(), "nothing");
  last.differs(step_plan(row_plan({4, 2, 0, 1, 3}, {0, 2, 3, 5, 5}), 4), usual,
               "number of ranks on ODD is 4: it must be 2, as on rank 0");
  last.differs(step_plan(row_plan({4, 2, 0, 1, 3}, {0, 2, 3, 3, 5}), 2), usual,
               "bounds[3] on ODD is 3: it must be 5, as on rank 0");
  last.differs(step_plan(row_plan({4, 2, 1, 0, 3}, {0, 2, 3, 5, 5}), 2), usual,
               "sequences[2] of step 7 on ODD is 1: it must be 0, as on rank 0", "step 7");
}

/// The search among many numbers, wherever the first difference is.
template <class C>
void check_large_plans(C& group, findings& found) {
  odd_rank<C> last{group, found};
  for (const offset_t count : {23, 24, 25, 26, 600, 50'000}) {
    const auto size = static_cast<std::size_t>(count);
    std::vector<offset_t> sequences(size);
    std::iota(sequences.begin(), sequences.end(), 0);
    const row_plan usual = rows_of(sequences, 7);
    agree(group, usual);
    for (const std::size_t place : {size - 2, size / 2, std::size_t{1}, std::size_t{0}}) {
      // What comes after the first difference does not count.
      std::swap(sequences[place], sequences[place + 1]);
      const auto now = static_cast<offset_t>(place);
      const std::string is = std::to_string(sequences[place]);
      last.differs(rows_of(sequences, 7), usual,
                   "sequences[" + std::to_string(now) + "] on ODD is " + is + ": it must be " +
                       std::to_string(now) + ", as on rank 0");
    }
  }
}

/// All that ranks differ in is told of the first of them, and all are named.
template <class C>
void check_many_ranks(C& group, findings& found) {
  if (group.size() < 3) return;
  const offset_t me = group.rank().value;
  // Rank 0 and those from 3 on have one plan, ranks 1 and 2 another one each.
  const row_plan plan = me == 1   ? row_plan({0, 2, 1}, {0, 3})
                        : me == 2 ? row_plan({1, 0, 2}, {0, 3})
                                  : row_plan({0, 1, 2}, {0, 3});
  found.template throws<collective_mismatch>(
      [&] { agree(group, plan); },
      "sequences[1] on rank 1 is 2: it must be 1, as on rank 0; refused on 2 ranks: 1, 2",
      "two ranks differ");
  found.template throws<collective_mismatch>(
      [&] { agree(group, plan, me == 1 ? "train" : "test"); },
      "subject of the agreement on rank 1 is \"train\": it must be \"test\", as on rank 0",
      "another subject");
  found.template throws<collective_mismatch>(
      [&] { me == 1 ? agree(group, plan) : agree(group, 7, "step"); },
      "operation on rank 1 is agree on a plan: it must be agree, the operation on rank 0",
      "another call");
  agree(group, 1, "the group");
}

template <class C>
void check_plan_agreement(C& group, findings& found) {
  check_small_plans(group, found);
  check_step_plans(group, found);
  check_large_plans(group, found);
  check_many_ranks(group, found);
  found.check(true, "all calls return on all ranks");
}

}  // namespace seqpack::testing
