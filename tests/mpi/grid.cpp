// A grid of ranks, in which one calls something else or does not come: who is told at once, who
// waits for the deadline, and which groups can be used afterwards.
#define BOOST_TEST_MODULE mpi_grid
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/parallel/agree.hpp"
#include "seqpack/parallel/together.hpp"
#include "support/mpi.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using namespace std::chrono_literals;

/// Two ranks in each row: the first groups of together(); the columns are the second ones.
struct grid {
  mpi_communicator all = world();
  offset_t me = all.rank().value;
  bool last = me == all.size() - 1;
  bool in_last_row = me / 2 == all.size() / 2 - 1;
  bool in_last_column = me % 2 == 1;
  findings found = my_findings();
  mpi_communicator row = hasty(me / 2);
  mpi_communicator column = hasty(all.size() + me % 2);

  ~grid() {
    found.report();
    for (int k = 0; k < 2; ++k) agree(all, 1, "the end of a case");
  }

  /// A part of the world, of a deadline of its own.
  mpi_communicator hasty(offset_t colour) const {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, static_cast<int>(colour), static_cast<int>(me), &made);
    return mpi_communicator::adopt(made, {.deadline = 1500ms});
  }

  void step(const std::string& name = "step") {
    together(row, column, name, [] {});
  }
  std::string named(const mpi_communicator& group, offset_t rank) const {
    return detail::rank_name(group.members(), {rank});
  }
  /// The call must take as long as the deadline, or not.
  template <class Call>
  void timed(const Call& call, bool waits) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const auto took = std::chrono::steady_clock::now() - start;
    found.check((took >= 1500ms) == waits, waits ? "it waits for the deadline" : "it is at once");
  }
  void is_usable(mpi_communicator& group, const std::string& what) {
    try {
      agree(group, 5, "number");
      found.check(true, what);
    } catch (const std::exception& e) {
      found.check(false, what + " cannot be used: " + e.what());
    }
  }
  void is_broken(mpi_communicator& group, const std::string& what) {
    found.throws<communication_error>([&] { agree(group, 5, "number"); },
                                      "the communicator cannot be used any more: ", what, true);
  }
  /// What a rank throws that waits in a call for others.
  template <class Call>
  void misses(const Call& call, const mpi_communicator& group, const std::string& absent) {
    timed(
        [&] {
          try {
            call();
            found.check(false, "nothing was thrown");
          } catch (const deadline_passed& e) {
            found.equal(e.reason(),
                        "step (MPI_Iallgather) on rank " + std::to_string(group.rank().value) +
                            " of the group " + group.members().to_string() +
                            " has waited 1500 ms for another rank, the deadline of the "
                            "communicator; " +
                            absent,
                        "what it has waited for");
          }
        },
        true);
  }
  /// All that can have found out know; the others have their deadline behind them.
  void settle() { agree(all, 1, "the call is over on all ranks"); }
};

auto of_a_grid() {
  return ranks_that("it must be 4 or more, and even",
                    [](int size) { return size >= 4 && size % 2 == 0; });
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(one_rank_calls_something_else_on_its_row, grid, *of_a_grid()) {
  const std::string text = "operation on rank 1 (world rank " + std::to_string(all.size() - 1) +
                           ") is agree: it must be step, the operation on rank 0 (world rank " +
                           std::to_string(all.size() - 2) + ")";
  const offset_t rows = all.size() / 2;
  if (last) {
    timed([&] { found.throws<collective_mismatch>([&] { agree(row, 7, "step"); }, text, "it"); },
          false);
  } else if (in_last_row || !in_last_column) {
    timed(
        [&] { found.throws<collective_mismatch>([&] { step(); }, text, "its row, other columns"); },
        false);
  } else {
    misses([&] { step(); }, column, named(column, rows - 1) + " has not come");
  }
  settle();
  is_usable(row, "a row");
  if (!in_last_column) {
    is_usable(column, "another column");
    return;
  }
  // The column of the rank that left is broken on those that have waited; it finds out as well, and
  // not by a verdict on what they called.
  if (!last) {
    is_broken(column, "the column that has waited");
  } else {
    found.throws<communication_error>([&] { agree(column, 5, "number"); },
                                      "agree on rank " + std::to_string(rows - 1) +
                                          " of the group " + column.members().to_string() +
                                          " has met what " + named(column, 0) +
                                          " left behind, which has given up step and is gone",
                                      "what was left is told from a mismatch", true);
    is_broken(column, "the column of the rank that has left");
  }
}

BOOST_FIXTURE_TEST_CASE(the_same_call_is_no_answer_to_one_that_was_given_up, grid, *of_a_grid()) {
  // The rank that left comes to its column with the very call that the others have given up.
  if (last) {
    found.throws<collective_mismatch>([&] { agree(row, 7, "step"); }, "is agree: it must be step",
                                      "a mismatch", true);
  } else if (in_last_row || !in_last_column) {
    found.throws<collective_mismatch>([&] { step(); }, "is agree: it must be step", "a mismatch",
                                      true);
  } else {
    found.throws<deadline_passed>([&] { step(); }, " has not come", "the column", true);
  }
  settle();
  if (last) {
    found.throws<communication_error>([&] { step(); }, " left behind, which has given up step",
                                      "what was left", true);
  } else if (in_last_row) {
    step();
  } else if (!in_last_column) {
    self_communicator alone;  // its row has a rank whose column is broken
    together(alone, column, "step", [] {});
  }
}

BOOST_FIXTURE_TEST_CASE(one_rank_calls_something_else_on_its_column, grid, *of_a_grid()) {
  const offset_t rows = all.size() / 2;
  if (last) {
    timed(
        [&] {
          found.throws<collective_mismatch>([&] { agree(column, 7, "step"); }, "operation on rank ",
                                            "it", true);
        },
        false);
  } else if (in_last_column) {
    timed(
        [&] {
          found.throws<collective_mismatch>([&] { step(); }, "operation on rank ", "its column",
                                            true);
        },
        false);
  } else if (in_last_row) {
    misses([&] { step(); }, row, named(row, 1) + " has not come");
  } else {
    misses([&] { step(); }, column, named(column, rows - 1) + " has not come");
  }
  settle();
  if (!in_last_row) is_usable(row, "another row");
  if (in_last_column) is_usable(column, "the column of the rank that left");
  if (in_last_row && !in_last_column) is_broken(row, "the row that has waited");
  if (!in_last_row && !in_last_column) is_broken(column, "a column that has waited");
}

BOOST_FIXTURE_TEST_CASE(one_rank_does_not_come, grid, *of_a_grid()) {
  const offset_t rows = all.size() / 2;
  if (!last && in_last_row) misses([&] { step(); }, row, named(row, 1) + " has not come");
  if (!in_last_row) misses([&] { step(); }, column, named(column, rows - 1) + " has not come");
  settle();
  if (!in_last_row) {
    is_usable(row, "another row");
    is_broken(column, "a column");
  } else if (last) {
    // It comes too late to both.
    found.throws<communication_error>([&] { step(); }, "has met what rank 0", "its row", true);
  } else {
    is_broken(row, "the row that has waited");
  }
}

BOOST_FIXTURE_TEST_CASE(a_refusal_is_told_of_where_a_neighbour_calls_something_else, grid,
                        *of_a_grid()) {
  // The other rank of its row leaves; what it has refused itself is what its column hears.
  const auto refused_step = [&] {
    together(row, column, "step", [&] {
      if (in_last_row) reject("lengths[1]", -1, "it must be at least 0");
    });
  };
  if (last) {
    found.throws<collective_mismatch>([&] { agree(row, 7, "step"); }, "is agree: it must be step",
                                      "a mismatch", true);
  } else if (!in_last_column) {
    found.throws<collective_mismatch>(refused_step,
                                      "lengths[1] on rank 0 (world rank " +
                                          std::to_string(all.size() - 2) +
                                          ") is -1: it must be at least 0",
                                      "what the rank has refused");
  } else {
    found.throws<deadline_passed>(refused_step, " has not come", "the column", true);
  }
  settle();
}

BOOST_FIXTURE_TEST_CASE(rows_that_differ_are_told_of_in_one_text, grid, *of_a_grid()) {
  // Both ranks of the last row: nothing is wrong in any row, and the columns find out.
  const std::string row_name = "rank " + std::to_string(all.size() / 2 - 1) + " (world rank " +
                               std::to_string(all.size() - 2) + ")";
  const auto mark = [&] { together(row, column, "step", [] {}, in_last_row ? 8 : 7); };
  found.throws<collective_mismatch>(mark,
                                    "hash of the options, sizes or order of the call on " +
                                        row_name + " is 8: it must be 7, as on rank 0",
                                    "a mark");
  const auto layout = [&] {
    together(row, column, "step", [&] { return make_layout(std::vector{4, in_last_row ? 3 : 4}); });
  };
  found.throws<collective_mismatch>(
      layout, "total tokens on " + row_name + " is 7: it must be 8, as on rank 0", "a layout");
  step();
}

BOOST_FIXTURE_TEST_CASE(what_differs_within_a_row_is_told_of_in_one_text, grid, *of_a_grid()) {
  // Of two ranks the lower one is right.
  found.throws<collective_mismatch>(
      [&] { together(row, column, "step", [] {}, last ? 8 : 7); },
      "hash of the options, sizes or order of the call on rank 1 (world rank " +
          std::to_string(all.size() - 1) + ") is 8: it must be 7, as on rank 0 (world rank " +
          std::to_string(all.size() - 2) + ")",
      "a mark of one rank");
  found.throws<collective_mismatch>(
      [&] {
        together(row, column, "step", [&] {
          if (last) reject(std::string(200, 'e'), std::string(200, 'v'), std::string(200, 'r'));
        });
      },
      std::string(67 - (all.size() > 10 ? 1 : 0), 'e') + " ... on rank 1 (world rank " +
          std::to_string(all.size() - 1) + ") is " + std::string(36, 'v') + " ...: ",
      "a long error of one rank", true);
  step();
}
