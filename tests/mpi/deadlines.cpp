#define BOOST_TEST_MODULE mpi_deadlines
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "seqpack/comm/subgroup.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/parallel/agree.hpp"
#include "seqpack/parallel/context_gather.hpp"
#include "support/mpi.hpp"

using namespace seqpack;
using namespace seqpack::testing;
using namespace std::chrono_literals;

namespace {

constexpr mpi_options hasty{.deadline = 500ms};

/// All ranks, with a deadline that counts for what is tested and not for the making.
mpi_communicator hasty_world() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  return mpi_communicator::adopt(copy, hasty);
}

/// All ranks wait for each other, whatever happened to the communicators of the library.
void meet() {
  MPI_Barrier(MPI_COMM_WORLD);
}

bool passed(const deadline_passed& e) {
  BOOST_TEST(e.waited().count() == 500);
  const std::string what = e.what();
  BOOST_TEST(what.find(" has waited 500 ms for another rank") != std::string::npos, what);
  BOOST_TEST(what.find(" (at seqpack/comm/mpi.hpp:") != std::string::npos, what);
  BOOST_TEST(what.find(" (at /") == std::string::npos, what);
  return true;
}

/// What a rank throws in a call of this name where the last rank has not come.
std::string missing_text(const std::string& call) {
  std::string members;
  for (int r = 0; r < world_size(); ++r) members += (r > 0 ? ", " : "") + std::to_string(r);
  return call + " on rank " + std::to_string(my_world_rank()) + " of the group {" + members +
         "} has waited 500 ms for another rank, the deadline of the communicator; rank " +
         std::to_string(world_size() - 1) + " has not come";
}

/// What a rank throws that finds what the others have left.
bool met_what_was_left(const communication_error& e) {
  BOOST_TEST(e.reason().find(" has met what rank ") != std::string::npos, e.reason());
  BOOST_TEST(e.reason().find(" and is gone") != std::string::npos, e.reason());
  return true;
}

template <class Call>
void check_time(Call&& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  const auto took = std::chrono::steady_clock::now() - start;
  BOOST_TEST((took >= 500ms));
  BOOST_TEST((took < 60s));
}

/// Everything is refused from then on, at once, and says why.
void check_refuses_everything(mpi_communicator& group) {
  std::vector<int> numbers(64, 7);
  const int* const in = numbers.data();
  const auto refused = [](const communication_error& e) {
    const std::string what = e.what();
    return what.find("the communicator cannot be used any more: ") == 0 &&
           what.find("has waited 500 ms") != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION(group.broadcast(numbers.data(), 3, {0}), communication_error, refused);
  BOOST_CHECK_EXCEPTION(group.all_gather(in, numbers.data() + 8, 1), communication_error, refused);
  BOOST_CHECK_EXCEPTION(group.all_reduce(in, numbers.data() + 8, 1, reduction::sum),
                        communication_error, refused);
  BOOST_CHECK_EXCEPTION(group.reduce_scatter(in, numbers.data() + 60, 1, reduction::sum),
                        communication_error, refused);
  BOOST_CHECK_EXCEPTION(group.join_broadcast(3, {0}), communication_error, refused);
  BOOST_CHECK_EXCEPTION(group.split(0, 0), communication_error, refused);
  BOOST_CHECK_EXCEPTION(group.wait(), communication_error, refused);
  BOOST_CHECK_EXCEPTION(broadcast_tensor(tensor_view(numbers), group_rank{0}, group),
                        communication_error, refused);
  BOOST_TEST(numbers == std::vector<int>(64, 7), boost::test_tools::per_element());
}

/// The last rank never makes the call; the others must not wait for ever.
/// \param text the name of the call and that of MPI, where the others know who is missing
template <class Call>
void check_missing_rank(Call&& call, const std::string& text = "") {
  auto group = hasty_world();
  if (group.rank().value < group.size() - 1) {
    check_time([&] {
      BOOST_CHECK_EXCEPTION(call(group), deadline_passed, [&](const deadline_passed& e) {
        if (!text.empty()) BOOST_TEST(e.reason() == missing_text(text));
        return passed(e);
      });
    });
    check_refuses_everything(group);
  }
  meet();
}

/// A barrier is pending on it.
void check_unfinished(MPI_Comm comm) {
  const auto refused = [](const communication_error& e) {
    BOOST_TEST(
        e.reason() ==
        "the communicator cannot be used any more: duplicate (MPI_Ibarrier) has waited 500 ms "
        "for another rank, the deadline of the communicator");
    return true;
  };
  BOOST_CHECK_EXCEPTION(mpi_communicator::duplicate(comm, hasty), communication_error, refused);
  BOOST_CHECK_EXCEPTION(mpi_communicator::borrow(comm), communication_error, refused);
  BOOST_CHECK_EXCEPTION(mpi_communicator::adopt(comm), communication_error, refused);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_rank_that_never_comes_to_a_broadcast_of_a_tensor, *at_least(2)) {
  std::vector<float> buffer(5, -1.0f);
  check_missing_rank(
      [&](auto& group) {
        // The missing rank is the root: nobody has the data.
        broadcast_tensor(tensor_view(buffer), group_rank{group.size() - 1}, group);
      },
      "broadcast_tensor (MPI_Iallgather)");
  BOOST_TEST(buffer == std::vector<float>(5, -1.0f), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_root_that_is_there_changes_no_buffer_either, *at_least(2)) {
  std::vector<float> buffer(5, my_world_rank() == 0 ? 3.0f : -1.0f);
  check_missing_rank(
      [&](auto& group) { broadcast_tensor(tensor_view(buffer), group_rank{0}, group); });
  const float expected = my_world_rank() == 0 ? 3.0f : -1.0f;
  BOOST_TEST(buffer == std::vector<float>(5, expected), boost::test_tools::per_element());
}

// Memory that MPI keeps after a deadline must live on.
static std::vector<int> in_flight(4096);

BOOST_AUTO_TEST_CASE(a_rank_that_never_comes_to_the_bare_collectives, *at_least(2)) {
  int* const out = in_flight.data();
  const int* const in = in_flight.data() + 2048;
  check_missing_rank([&](auto& group) { group.all_gather(in, out, 100); },
                     "all_gather (MPI_Iallgather)");
  check_missing_rank([&](auto& group) { group.all_reduce(in, out, 100, reduction::sum); },
                     "all_reduce (MPI_Iallreduce)");
  check_missing_rank([&](auto& group) { group.reduce_scatter(in, out, 100, reduction::max); },
                     "reduce_scatter (MPI_Ireduce_scatter_block)");
  check_missing_rank([&](auto& group) { group.broadcast(out, 100, {group.size() - 1}); });
  check_missing_rank([&](auto& group) { group.join_broadcast(100, {group.size() - 1}); });
  check_missing_rank([&](auto& group) { group.split(0, 0); }, "split (MPI_Iallgather)");
  check_missing_rank([&](auto& group) { subgroup(group, {{0}}); }, "subgroup (MPI_Iallgather)");
  check_missing_rank([&](auto& group) { agree(group, 7, "step"); }, "agree (MPI_Iallgather)");
}

BOOST_AUTO_TEST_CASE(a_rank_that_never_comes_to_make_a_communicator, *at_least(2)) {
  // A communicator of its own, so that the meeting that is never finished hurts nobody else.
  MPI_Comm base = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &base);
  auto all = world(patient);
  const bool missing = my_world_rank() == world_size() - 1;
  auto others = all.split(missing ? std::nullopt : std::optional<offset_t>(0), 0);
  if (!missing) {
    BOOST_CHECK_EXCEPTION(mpi_communicator::duplicate(base, hasty), deadline_passed, passed);
    check_unfinished(base);
    MPI_Comm copy_of_others = MPI_COMM_NULL;  // the mark is that communicator's alone
    MPI_Comm_dup(others.get(), &copy_of_others);
    BOOST_TEST(mpi_communicator::adopt(copy_of_others).size() == world_size() - 1);
    // MPI can go on making communicators of those who are there.
    auto again = mpi_communicator::duplicate(others.get(), patient);
    auto part = again.split(0, 0);
    std::int64_t sum = 1;
    part.all_reduce(static_cast<const std::int64_t*>(&sum), &sum, 1, reduction::sum);
    BOOST_TEST(sum == world_size() - 1);
  }
  meet();
}

BOOST_AUTO_TEST_CASE(a_rank_that_comes_too_late_to_make_a_communicator_has_its_original_marked_too,
                     *at_least(2)) {
  MPI_Comm base = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &base);
  if (my_world_rank() == 0) std::this_thread::sleep_for(1500ms);
  BOOST_CHECK_EXCEPTION(mpi_communicator::duplicate(base, hasty), deadline_passed, passed);
  check_unfinished(base);
  meet();
}

BOOST_AUTO_TEST_CASE(a_rank_that_comes_too_late_to_a_split_finds_out, *at_least(2)) {
  auto group = hasty_world();
  if (my_world_rank() == 0) {
    std::this_thread::sleep_for(1500ms);
    BOOST_CHECK_EXCEPTION(group.split(0, 0), communication_error, met_what_was_left);
  } else {
    BOOST_CHECK_EXCEPTION(group.split(0, 0), deadline_passed, passed);
  }
  meet();
}

BOOST_AUTO_TEST_CASE(a_rank_that_is_late_is_waited_for) {
  auto group = world(patient);
  std::vector<int> numbers(3, my_world_rank());
  if (group.rank().value == group.size() - 1) std::this_thread::sleep_for(700ms);
  broadcast_tensor(tensor_view(numbers), group_rank{group.size() - 1}, group);
  BOOST_TEST(numbers == std::vector<int>(3, world_size() - 1), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_rank_that_comes_too_late_is_told_too, *at_least(2)) {
  auto group = hasty_world();
  std::vector<int> numbers(3, my_world_rank());
  const auto call = [&] { broadcast_tensor(tensor_view(numbers), group_rank{0}, group); };
  if (group.rank().value == group.size() - 1) {
    std::this_thread::sleep_for(2000ms);
    BOOST_CHECK_EXCEPTION(call(), communication_error, met_what_was_left);
  } else {
    BOOST_CHECK_EXCEPTION(call(), deadline_passed, passed);
  }
  BOOST_TEST(numbers == std::vector<int>(3, my_world_rank()), boost::test_tools::per_element());
  meet();
}

BOOST_AUTO_TEST_CASE(what_the_library_gave_to_mpi_outlives_the_call, *at_least(2)) {
  // Rank 0 comes when the others have given up: they go on, and MPI writes to where the messages of
  // rank 0 belong. What is freed too early is found by the address sanitizer.
  const bool late = my_world_rank() == 0;
  auto joining = hasty_world();
  auto exchanging = hasty_world();
  auto receiving = hasty_world();
  if (late) std::this_thread::sleep_for(3000ms);
  std::vector<int> numbers(3, 5);
  if (late) {
    joining.broadcast(numbers.data(), 3, {0});
    BOOST_CHECK_EXCEPTION(exchanging.split(0, 0), communication_error, met_what_was_left);
    BOOST_CHECK_EXCEPTION(broadcast_tensor(numbers, group_rank{0}, receiving), communication_error,
                          met_what_was_left);
  } else {
    BOOST_CHECK_THROW(joining.join_broadcast(12, {0}), deadline_passed);
    BOOST_CHECK_THROW(exchanging.split(0, 0), deadline_passed);
    BOOST_CHECK_THROW(broadcast_tensor<int>(std::nullopt, group_rank{0}, receiving),
                      deadline_passed);
  }
  for (int k = 0; k < 3; ++k) meet();
}

BOOST_AUTO_TEST_CASE(a_tensor_of_the_library_outlives_a_root_that_stops_between_two_messages,
                     *at_least(2)) {
  // The root's allocation is its own business, so that it can be slow: here a receiver is, and the
  // root of a long message waits for it. The others have memory of the library.
  auto group = hasty_world();
  const int last = world_size() - 1;
  static std::vector<float> data(1 << 20, 3.0f);  // not eager; it must live on
  std::optional<tensor_view<float>> mine;
  if (my_world_rank() == 0) mine = tensor_view(data);
  broadcast_options options;
  options.allocate = [&](offset_t bytes) {
    if (my_world_rank() == last) std::this_thread::sleep_for(1500ms);
    return group.allocate(bytes);
  };
  try {
    const auto received = broadcast_tensor<float>(mine, group_rank{0}, group, options);
    BOOST_TEST(received.elements().back() == 3.0f);  // who does not wait for the slow one
  } catch (const deadline_passed&) {
  }
  for (int k = 0; k < 3; ++k) meet();
}

BOOST_AUTO_TEST_CASE(a_workspace_of_the_library_outlives_a_gather_that_failed, *at_least(2)) {
  const offset_t ranks = world_size();
  constexpr offset_t payload = 1 << 16;
  const auto layout = make_layout(std::vector{8 * ranks}, padding{each_multiple_of<>{8 * ranks}},
                                  context_parallel<>{ranks});
  static std::vector<float> shard_rows, target;  // they must live on
  shard_rows.resize(static_cast<std::size_t>(layout.shard_tokens() * payload), 1.0f);
  target.resize(static_cast<std::size_t>(8 * ranks * payload), -1.0f);
  const auto call = [&](auto& group) {
    all_gather_unpack(
        host, group, layout,
        field(row_view<const float>(shard_rows.data(), layout.shard_tokens(), payload),
              batch_view(target.data(), 1, 8 * ranks, payload)));
  };
  auto group = hasty_world();
  const bool late = my_world_rank() == 0;
  if (late) std::this_thread::sleep_for(1500ms);
  try {
    call(group);
    BOOST_TEST(late);  // it may find all answers, or not
  } catch (const deadline_passed&) {
    BOOST_TEST(target.front() == -1.0f);
  }
  for (int k = 0; k < 3; ++k) meet();
}

BOOST_AUTO_TEST_CASE(other_groups_of_the_same_ranks_still_work) {
  auto group = hasty_world();
  auto other = world(patient);
  if (world_size() > 1 && group.rank().value < group.size() - 1) {
    BOOST_CHECK_THROW(group.split(0, 0), deadline_passed);
  }
  std::vector<int> numbers(3, my_world_rank() + 5);
  broadcast_tensor(tensor_view(numbers), group_rank{0}, other);
  BOOST_TEST(numbers == std::vector<int>(3, 5), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(nothing_is_not_refused_less, *at_least(2)) {
  // A call without elements moves nothing, and a group that has given up refuses it all the same.
  auto group = hasty_world();
  if (my_world_rank() > 0) {
    BOOST_CHECK_THROW(group.split(0, 0), deadline_passed);
    BOOST_CHECK_THROW(group.broadcast(static_cast<int*>(nullptr), 0, {0}), communication_error);
  }
  meet();
}

BOOST_AUTO_TEST_CASE(deadlines_are_positive) {
  for (const auto deadline : {0ms, -5ms}) {
    BOOST_CHECK_EXCEPTION(
        world({.deadline = deadline}), invalid_input, [&](const invalid_input& e) {
          return std::string(e.what()) ==
                 "deadline is " + std::to_string(deadline.count()) + " ms: it must be positive";
        });
  }
}
