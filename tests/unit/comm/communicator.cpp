#define BOOST_TEST_MODULE comm_communicator
#include "seqpack/comm/communicator.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <thread>
#include <vector>

#include "seqpack/comm/detail/deadline.hpp"
#include "seqpack/comm/self.hpp"
#include "support/broadcast_suite.hpp"
#include "support/communicator_suite.hpp"
#include "support/counting_communicator.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

struct without_deadline_or_wait {
  static constexpr bool on_device = false;
  group_rank rank() const { return {}; }
  offset_t size() const { return 1; }
};

}  // namespace

static_assert(communicator<self_communicator>);
static_assert(communicator<counting_communicator<>>);
static_assert(!communicator<without_deadline_or_wait>);
static_assert(!communicator<const self_communicator>);
static_assert(!communicator<int>);
static_assert(any_rank<group_rank> && any_rank<world_rank>);
static_assert(!any_rank<int>);

BOOST_AUTO_TEST_CASE(one_of_a_users_own_conforms) {
  counting_communicator<> group;
  findings found;
  check_communicator(group, found);
  check_broadcast_tensor(group, found);
  found.report();
}

BOOST_AUTO_TEST_CASE(a_broadcast_is_two_collectives) {
  counting_communicator<> group;
  std::vector<float> numbers(5);
  broadcast_tensor(tensor_view(numbers), group_rank{0}, group);
  BOOST_TEST(group.collectives == 2);
  broadcast_tensor(tensor_view<float>(nullptr, {0, 4}), group_rank{0}, group);
  BOOST_TEST(group.collectives == 3);  // nothing to send
}

BOOST_AUTO_TEST_CASE(locations) {
  const memory_location anywhere;
  const auto host = memory_location::host();
  const auto device0 = memory_location::on_device(0);
  const auto device1 = memory_location::on_device(1);
  const auto closed1 = memory_location::closed(1);
  BOOST_TEST(host.accepts(host));
  BOOST_TEST(host.accepts(anywhere));
  BOOST_TEST(anywhere.accepts(device1));
  BOOST_TEST(device1.accepts(device1));
  BOOST_TEST(!host.accepts(device0));
  BOOST_TEST(!device0.accepts(device1));
  BOOST_TEST(!device0.accepts(host));
  BOOST_TEST(!device1.accepts(closed1));
  BOOST_TEST(anywhere.accepts(closed1));
  BOOST_TEST(host.to_string() == "host memory");
  BOOST_TEST(device1.to_string() == "memory of CUDA device 1");
  BOOST_TEST(closed1.to_string() ==
             "memory of a pool of CUDA device 1 without access for the group's other devices");
  BOOST_TEST(anywhere.to_string() == "memory anywhere");
}

BOOST_AUTO_TEST_CASE(waiting_ends) {
  using namespace std::chrono_literals;
  int polls = 0;
  BOOST_TEST(detail::wait_until(10s, [&] { return ++polls == 3; }));
  BOOST_TEST(polls == 3);
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST(!detail::wait_until(30ms, [] { return false; }));
  BOOST_TEST((std::chrono::steady_clock::now() - start >= 30ms));
}

BOOST_AUTO_TEST_CASE(what_has_come_while_it_was_asked_for_counts) {
  using namespace std::chrono_literals;
  // The first answers are quick; the next one takes longer than the deadline.
  int polls = 0;
  BOOST_TEST(detail::wait_until(1ms, [&] {
    if (++polls == 65) std::this_thread::sleep_for(5ms);
    return polls > 65;
  }));
}

BOOST_AUTO_TEST_CASE(errors_say_where) {
  const communication_error error("nothing works");
  BOOST_TEST(error.reason() == "nothing works");
  BOOST_TEST(std::string(error.where().file).find("communicator.cpp") != std::string::npos);
  BOOST_TEST(error.where().line == __LINE__ - 3);
  BOOST_TEST(std::string(error.what()) ==
             "nothing works (at communicator.cpp:" + std::to_string(__LINE__ - 5) + ")");
  const deadline_passed late("all_gather", std::chrono::milliseconds(250));
  BOOST_TEST(late.reason() ==
             "all_gather has waited 250 ms for another rank, the deadline of the communicator");
  const deadline_passed known("agree", std::chrono::milliseconds(250), "rank 2 has not come");
  BOOST_TEST(
      known.reason() ==
      "agree has waited 250 ms for another rank, the deadline of the communicator; rank 2 has "
      "not come");
  BOOST_TEST(known.waited().count() == 250);
  const collective_mismatch mismatch({2}, "shape on rank 2", "[3]", "it must be [4]");
  BOOST_TEST(mismatch.rank().value == 2);
  BOOST_TEST(std::string(mismatch.what()) == "shape on rank 2 is [3]: it must be [4]");
}

BOOST_AUTO_TEST_CASE(places_do_not_tell_where_the_machine_has_its_folders) {
  const auto text = [](const char* file) { return source_location{file, 7}.to_string(); };
  BOOST_TEST(text("/home/me/build/include/seqpack/comm/mpi.hpp") == "seqpack/comm/mpi.hpp:7");
  BOOST_TEST(text("/home/user/seqpack/include/seqpack/comm/mpi.hpp") == "seqpack/comm/mpi.hpp:7");
  BOOST_TEST(text("seqpack/comm/mpi.hpp") == "mpi.hpp:7");
  BOOST_TEST(text("/home/me/secret/main.cpp") == "main.cpp:7");
  BOOST_TEST(text("main.cpp") == "main.cpp:7");
  BOOST_TEST(text("") == ":7");
}

namespace {

/// Throws where it should move data, and notes what it is given to keep.
struct failing_group : counting_communicator<> {
  failing_group split(std::optional<offset_t>, offset_t) { return failing_group(); }
  std::vector<std::shared_ptr<void>> kept;
  void keep(std::shared_ptr<void> memory) { kept.push_back(std::move(memory)); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_sent_and_what_was_to_be_received_is_kept) {
  failing_group group;
  const auto sent = std::make_shared<int>(1);
  const auto received = std::make_shared<int>(2);
  const auto fail = [] { throw deadline_passed("all_gather", std::chrono::milliseconds(5)); };
  BOOST_CHECK_THROW(keeping(group, {sent, received, nullptr}, fail), deadline_passed);
  BOOST_TEST(group.kept.size() == 2u);
  BOOST_TEST(sent.use_count() == 2);
  BOOST_TEST(received.use_count() == 2);
  BOOST_CHECK_THROW(keeping(group, sent, fail), deadline_passed);
  BOOST_TEST(sent.use_count() == 3);
  // What is refused has not been given away.
  BOOST_CHECK_THROW(keeping(group, {sent}, [] { reject("n", 1, "none"); }), invalid_input);
  BOOST_CHECK_NO_THROW(keeping(group, {sent}, [] {}));
  BOOST_TEST(sent.use_count() == 3);
}

BOOST_AUTO_TEST_CASE(the_outermost_name_of_an_operation_counts) {
  struct named_group : communicator_base<named_group> {
    named_group() : communicator_base(group_members::all(1), {0}) {}
    std::string text() const { return operation_text("MPI_Iallgather"); }
  } group;
  BOOST_TEST(group.text() == "MPI_Iallgather");
  {
    const auto outer = name_operation(group, "broadcast_tensor");
    BOOST_TEST(group.text() == "broadcast_tensor (MPI_Iallgather)");
    {
      const auto inner = name_operation(group, "all_gather");
      BOOST_TEST(group.text() == "broadcast_tensor (MPI_Iallgather)");
    }
    BOOST_TEST(group.text() == "broadcast_tensor (MPI_Iallgather)");
  }
  BOOST_TEST(group.text() == "MPI_Iallgather");
}
