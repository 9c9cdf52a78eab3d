#define BOOST_TEST_MODULE mpi_deadlines
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "seqpack/comm/subgroup.hpp"
#include "support/mpi.hpp"

using namespace seqpack;
using namespace seqpack::testing;
using namespace std::chrono_literals;

namespace {

constexpr mpi_options hasty{.deadline = 500ms};

/// All ranks wait for each other, whatever happened to the communicators of the library.
void meet() {
  MPI_Barrier(MPI_COMM_WORLD);
}

bool passed(const deadline_passed& e) {
  BOOST_TEST(e.waited().count() == 500);
  const std::string what = e.what();
  BOOST_TEST(what.find(" has waited 500 ms for another rank") != std::string::npos, what);
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
template <class Call>
void check_missing_rank(Call&& call) {
  if (world_size() == 1) return;
  auto group = world(hasty);
  if (group.rank().value < group.size() - 1) {
    check_time([&] { BOOST_CHECK_EXCEPTION(call(group), deadline_passed, passed); });
    check_refuses_everything(group);
  }
  meet();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_rank_that_never_comes_to_a_broadcast_of_a_tensor) {
  std::vector<float> buffer(5, -1.0f);
  check_missing_rank([&](auto& group) {
    // The missing rank is the root: nobody has the data.
    broadcast_tensor(tensor_view(buffer), group_rank{group.size() - 1}, group);
  });
  BOOST_TEST(buffer == std::vector<float>(5, -1.0f), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_root_that_is_there_changes_no_buffer_either) {
  std::vector<float> buffer(5, my_world_rank() == 0 ? 3.0f : -1.0f);
  check_missing_rank(
      [&](auto& group) { broadcast_tensor(tensor_view(buffer), group_rank{0}, group); });
  const float expected = my_world_rank() == 0 ? 3.0f : -1.0f;
  BOOST_TEST(buffer == std::vector<float>(5, expected), boost::test_tools::per_element());
}

// Memory that MPI keeps after a deadline must live on.
static std::vector<int> in_flight(4096);

BOOST_AUTO_TEST_CASE(a_rank_that_never_comes_to_the_bare_collectives) {
  int* const out = in_flight.data();
  const int* const in = in_flight.data() + 2048;
  check_missing_rank([&](auto& group) { group.all_gather(in, out, 100); });
  check_missing_rank([&](auto& group) { group.all_reduce(in, out, 100, reduction::sum); });
  check_missing_rank([&](auto& group) { group.reduce_scatter(in, out, 100, reduction::max); });
  check_missing_rank([&](auto& group) { group.broadcast(out, 100, {group.size() - 1}); });
  check_missing_rank([&](auto& group) { group.join_broadcast(100, {group.size() - 1}); });
  check_missing_rank([&](auto& group) { group.split(0, 0); });
  check_missing_rank([&](auto& group) { subgroup(group, {{0}}); });
}

BOOST_AUTO_TEST_CASE(a_rank_that_never_comes_to_make_a_communicator) {
  if (world_size() == 1) return;
  // A communicator of its own, so that the duplicate that is never finished hurts nobody else.
  MPI_Comm base = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &base);
  if (my_world_rank() < world_size() - 1) {
    BOOST_CHECK_EXCEPTION(mpi_communicator::duplicate(base, hasty), deadline_passed, passed);
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

BOOST_AUTO_TEST_CASE(a_rank_that_comes_too_late_is_told_too) {
  if (world_size() == 1) return;
  auto group = world(hasty);
  std::vector<int> numbers(3, my_world_rank());
  if (group.rank().value == group.size() - 1) std::this_thread::sleep_for(2000ms);
  BOOST_CHECK_EXCEPTION(broadcast_tensor(tensor_view(numbers), group_rank{0}, group),
                        deadline_passed, passed);
  BOOST_TEST(numbers == std::vector<int>(3, my_world_rank()), boost::test_tools::per_element());
  meet();
}

BOOST_AUTO_TEST_CASE(what_the_library_gave_to_mpi_outlives_the_call) {
  // The root is late, and its message comes when the others have given up: they go on, and MPI
  // writes to where the message belongs.
  if (world_size() == 1) return;
  const bool late = my_world_rank() == 0;
  MPI_Comm base = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &base);
  auto group = world(hasty);
  auto splitting = world(hasty);
  if (late) std::this_thread::sleep_for(2500ms);
  std::vector<int> numbers(3, 5);
  if (late) {
    group.broadcast(numbers.data(), 3, {0});
  } else {
    BOOST_CHECK_THROW(group.join_broadcast(12, {0}), deadline_passed);
    BOOST_CHECK_THROW(splitting.split(0, 0), deadline_passed);
  }
  try {
    mpi_communicator::duplicate(base, hasty);
    BOOST_TEST(late);
  } catch (const deadline_passed&) {
    // A late rank may find all answers, or not.
  }
  for (int k = 0; k < 3; ++k) meet();
}

BOOST_AUTO_TEST_CASE(other_groups_of_the_same_ranks_still_work) {
  auto group = world(hasty);
  auto other = world(patient);
  if (world_size() > 1 && group.rank().value < group.size() - 1) {
    BOOST_CHECK_THROW(group.split(0, 0), deadline_passed);
  }
  std::vector<int> numbers(3, my_world_rank() + 5);
  broadcast_tensor(tensor_view(numbers), group_rank{0}, other);
  BOOST_TEST(numbers == std::vector<int>(3, 5), boost::test_tools::per_element());
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
