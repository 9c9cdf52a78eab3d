#define BOOST_TEST_MODULE comm_communicator
#include "seqpack/comm/communicator.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

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
