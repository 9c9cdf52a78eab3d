#define BOOST_TEST_MODULE comm_calls
#include "seqpack/comm/detail/calls.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/counting_communicator.hpp"

using namespace seqpack;
using namespace seqpack::testing;

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
  BOOST_CHECK_THROW(detail::keeping(group, {sent, received, nullptr}, fail), deadline_passed);
  BOOST_TEST(group.kept.size() == 2u);
  BOOST_TEST(sent.use_count() == 2);
  BOOST_TEST(received.use_count() == 2);
  BOOST_CHECK_THROW(detail::keeping(group, sent, fail), deadline_passed);
  BOOST_TEST(sent.use_count() == 3);
  // What is refused has not been given away.
  BOOST_CHECK_THROW(detail::keeping(group, {sent}, [] { reject("n", 1, "none"); }), invalid_input);
  BOOST_CHECK_NO_THROW(detail::keeping(group, {sent}, [] {}));
  BOOST_TEST(sent.use_count() == 3);
}

BOOST_AUTO_TEST_CASE(the_outermost_name_of_an_operation_counts) {
  struct named_group : communicator_base<named_group> {
    named_group() : communicator_base(group_members::all(1), {0}) {}
    std::string text() const { return operation_text("MPI_Iallgather"); }
  } group;
  BOOST_TEST(group.text() == "MPI_Iallgather");
  {
    const auto outer = detail::name_operation(group, "broadcast_tensor");
    BOOST_TEST(group.text() == "broadcast_tensor (MPI_Iallgather)");
    {
      const auto inner = detail::name_operation(group, "all_gather");
      BOOST_TEST(group.text() == "broadcast_tensor (MPI_Iallgather)");
    }
    BOOST_TEST(group.text() == "broadcast_tensor (MPI_Iallgather)");
  }
  BOOST_TEST(group.text() == "MPI_Iallgather");
}
