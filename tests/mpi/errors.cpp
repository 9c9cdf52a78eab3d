#define BOOST_TEST_MODULE mpi_errors
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <thread>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "support/mpi.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

/// A number with less than its float: what half and bfloat16 are for reductions.
struct narrow {
  std::uint16_t high;

  narrow() = default;
  explicit narrow(float value)
      : high(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16)) {}
  float value() const { return std::bit_cast<float>(static_cast<std::uint32_t>(high) << 16); }
  friend narrow operator+(narrow a, narrow b) { return narrow(a.value() + b.value()); }
  friend bool operator<(narrow a, narrow b) { return a.value() < b.value(); }
};

void count_call(MPI_Comm*, int*, ...) {}

}  // namespace

static_assert(mpi_communicator::reduces<narrow>);
static_assert(!mpi_communicator::reduces<bool>);
static_assert(!mpi_communicator::reduces<std::pair<int, int>>);

BOOST_AUTO_TEST_CASE(an_error_of_mpi_is_an_exception_with_its_code_and_message, *exactly(2)) {
  // Ranks that gather different numbers of elements: the longer message does not fit.
  auto group = world();
  // As in a program without an mpi_environment, whose errors end it by default.
  detail::mpi::world_has_codes = false;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  static std::vector<int> mine(100), all(200);
  const offset_t n = group.rank().value == 0 ? 1 : 100;
  bool caught = false;
  try {
    group.all_gather(static_cast<const int*>(mine.data()), all.data(), n);
  } catch (const mpi_error& e) {
    caught = true;
    int error_class = 0;
    MPI_Error_class(e.code(), &error_class);
    BOOST_TEST(error_class == MPI_ERR_TRUNCATE);
    BOOST_TEST(e.reason().find("all_gather (MPI_Iallgather) failed: MPI_ERR_TRUNCATE") == 0u,
               e.reason());
    BOOST_TEST(e.reason().find("(MPI error " + std::to_string(e.code()) + ")") != std::string::npos,
               e.reason());
    BOOST_TEST(std::string(e.where().file).find("mpi.hpp") != std::string::npos);
    BOOST_TEST(e.where().line > 0);
    BOOST_CHECK_EXCEPTION(group.wait(), communication_error, [](const communication_error& again) {
      return again.reason().find("cannot be used any more: all_gather (MPI_Iallgather) failed") !=
             std::string::npos;
    });
  }
  BOOST_TEST(caught == (group.rank().value == 0));
  MPI_Errhandler now = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
  BOOST_TEST((now == MPI_ERRORS_ARE_FATAL));
  MPI_Errhandler_free(&now);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  detail::mpi::world_has_codes = true;
  MPI_Barrier(MPI_COMM_WORLD);
}

BOOST_AUTO_TEST_CASE(a_borrowed_communicator_stays_its_owners) {
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(&count_call, &handler);
  MPI_Comm_set_errhandler(mine, handler);
  {
    auto group = mpi_communicator::borrow(mine, patient);
    BOOST_TEST((group.get() == mine));
    std::vector<int> numbers(3, my_world_rank() + 1);
    group.broadcast(numbers.data(), 3, {group.size() - 1});
    BOOST_TEST(numbers[2] == world_size());
    auto moved = std::move(group);
    moved.broadcast(numbers.data(), 3, {0});
  }
  MPI_Errhandler now = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(mine, &now);
  BOOST_TEST((now == handler));
  int size = 0;
  BOOST_TEST(MPI_Comm_size(mine, &size) == MPI_SUCCESS);
  BOOST_TEST(size == world_size());
  MPI_Errhandler_free(&now);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&mine);
}

BOOST_AUTO_TEST_CASE(an_adopted_communicator_is_freed) {
  // An attribute's destructor tells.
  static int freed = 0;
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(
      MPI_COMM_NULL_COPY_FN,
      [](MPI_Comm, int, void*, void*) {
        ++freed;
        return MPI_SUCCESS;
      },
      &key, nullptr);
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  MPI_Comm_set_attr(mine, key, nullptr);
  {
    auto group = mpi_communicator::adopt(mine, patient);
    auto moved = std::move(group);
    int number = my_world_rank();
    moved.broadcast(&number, 1, {0});
    BOOST_TEST(number == 0);
    BOOST_TEST(freed == 0);
  }
  BOOST_TEST(freed == 1);
  MPI_Comm_free_keyval(&key);
}

BOOST_AUTO_TEST_CASE(a_duplicate_has_messages_of_its_own) {
  auto a = world();
  auto b = world();
  int result = MPI_IDENT;
  MPI_Comm_compare(a.get(), b.get(), &result);
  BOOST_TEST(result == MPI_CONGRUENT);
}

BOOST_AUTO_TEST_CASE(bad_options_and_handles_are_refused) {
  BOOST_CHECK_EXCEPTION(mpi_communicator::borrow(MPI_COMM_NULL), invalid_input,
                        refused("communicator", "MPI_COMM_NULL", "it must be one"));
  for (const offset_t count : {offset_t{0}, offset_t{INT_MAX} + 1}) {
    BOOST_CHECK_EXCEPTION(mpi_communicator::borrow(MPI_COMM_WORLD, {.largest_count = count}),
                          invalid_input,
                          refused("largest_count", std::to_string(count), "from 1 to 2147483647"));
  }
}

BOOST_AUTO_TEST_CASE(a_communicator_between_two_groups_is_refused, *at_least(2)) {
  MPI_Comm side = MPI_COMM_NULL;
  MPI_Comm between = MPI_COMM_NULL;
  const int mine = my_world_rank() == 0 ? 0 : 1;
  MPI_Comm_split(MPI_COMM_WORLD, mine, 0, &side);
  MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - mine, 5, &between);
  BOOST_CHECK_EXCEPTION(mpi_communicator::duplicate(between), invalid_input,
                        refused("communicator", "an intercommunicator", "of one group"));
  MPI_Comm_free(&between);
  MPI_Comm_free(&side);
}

BOOST_AUTO_TEST_CASE(what_was_moved_from_is_a_member_of_nothing) {
  auto group = world();
  const auto moved = std::move(group);
  BOOST_TEST(moved.is_member());
  BOOST_TEST(!group.is_member());
  int number = 3;
  BOOST_CHECK_THROW(group.broadcast(&number, 1, {0}), invalid_input);
  BOOST_CHECK_THROW(broadcast_tensor(tensor_view<int>(&number, {1}), group_rank{0}, group),
                    invalid_input);
  group = world();
  BOOST_TEST(group.is_member());
  group.broadcast(&number, 1, {0});
}

BOOST_AUTO_TEST_CASE(the_longest_deadline_is_no_short_one) {
  auto group = world({.deadline = std::chrono::milliseconds::max()});
  int number = my_world_rank() + 4;
  if (my_world_rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  group.broadcast(&number, 1, {0});
  BOOST_TEST(number == 4);
}

BOOST_AUTO_TEST_CASE(data_of_the_root_may_be_const) {
  auto group = world();
  const std::vector<int> constant{1, 2, 3};
  if (my_world_rank() == 0) {
    const auto sent = broadcast_tensor(constant, group_rank{0}, group);
    static_assert(std::is_same_v<decltype(sent.data()), const int*>);
    BOOST_TEST(sent.data() == constant.data());
  } else {
    BOOST_TEST(broadcast_tensor<int>({}, group_rank{0}, group).elements()[2] == 3);
  }
  if (world_size() == 1) return;
  // Elsewhere they are refused, on all ranks.
  const auto call = [&] {
    std::vector<int> mine(3);
    if (my_world_rank() == 1) {
      broadcast_tensor(constant, group_rank{0}, group);
    } else {
      broadcast_tensor(mine, group_rank{0}, group);
    }
  };
  BOOST_CHECK_EXCEPTION(call(), collective_mismatch, [](const collective_mismatch& e) {
    BOOST_TEST(e.what() ==
               "data on rank 1 is read-only: only the root may bring data that cannot be written");
    return true;
  });
}

BOOST_AUTO_TEST_CASE(a_bare_call_beside_a_checked_one_is_told_of, *exactly(2)) {
  auto group = world();
  const std::vector<char> mine(256, 'x');
  std::vector<char> all(512);
  const auto call = [&] { group.split(0, 0); };
  if (my_world_rank() == 0) {
    group.all_gather(mine.data(), all.data(), 256);  // of just the size of a record
  } else {
    BOOST_CHECK_EXCEPTION(call(), collective_mismatch, [](const collective_mismatch& e) {
      BOOST_TEST(
          e.what() ==
          "operation on rank 0 is one that ranks do not check, or of another seqpack: it must "
          "be split, the operation on rank 1");
      return true;
    });
  }
}

BOOST_AUTO_TEST_CASE(wide_integers_reduce_as_what_they_are) {
  __extension__ using wide = __int128;
  if constexpr (mpi_communicator::reduces<wide>) {
    auto group = world();
    const wide mine = (wide{1} << 100) + group.rank().value;
    wide sum = 0;
    group.all_reduce(&mine, &sum, 1, reduction::sum);
    const wide n = group.size();
    BOOST_TEST((sum == (wide{1} << 100) * n + n * (n - 1) / 2));
  }
}

BOOST_AUTO_TEST_CASE(types_of_ones_own_reduce) {
  for (const offset_t largest : {offset_t{INT_MAX}, offset_t{2}}) {
    auto group = world({.deadline = patient.deadline, .largest_count = largest});
    const auto me = static_cast<float>(group.rank().value);
    const auto size = static_cast<float>(group.size());
    const std::vector<narrow> in{narrow(me), narrow(1.0f), narrow(-me), narrow(2.0f), narrow(0.5f)};
    std::vector<narrow> out(5);
    group.all_reduce(in.data(), out.data(), 5, reduction::sum);
    BOOST_TEST(out[0].value() == size * (size - 1) / 2);
    BOOST_TEST(out[1].value() == size);
    BOOST_TEST(out[4].value() == size / 2);
    group.all_reduce(in.data(), out.data(), 5, reduction::max);
    BOOST_TEST(out[0].value() == size - 1);
    BOOST_TEST(out[2].value() == 0);
    group.all_reduce(in.data(), out.data(), 5, reduction::min);
    BOOST_TEST(out[0].value() == 0);
    BOOST_TEST(out[2].value() == 1 - size);
  }
}
