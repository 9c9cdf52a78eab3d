#define BOOST_TEST_MODULE nccl_no_device
#include <array>
#include <boost/test/unit_test.hpp>
#include <string>

#include "seqpack/comm/self.hpp"
#include "support/nccl.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

struct needs_no_device {
  needs_no_device() {
    if (device_count() > 0) skip("there is a CUDA device");
  }
};
BOOST_TEST_GLOBAL_FIXTURE(needs_no_device);

/// At once, and without NCCL, which would not know these arguments.
template <class Call>
void check_no_device(const Call& call) {
  int devices = 0;
  cudaError_t expected = cudaGetDeviceCount(&devices);
  if (expected == cudaSuccess) expected = cudaErrorNoDevice;
  const auto took = time_of([&] {
    BOOST_CHECK_EXCEPTION(call(), cuda_error, [&](const cuda_error& e) {
      const std::string text = e.what();
      return e.code() == expected &&
             text.starts_with(std::string("CUDA error ") + cudaGetErrorName(expected) + " (") &&
             text.find("seqpack/comm/nccl.hpp:") != std::string::npos;
    });
  });
  BOOST_TEST(took.count() < 20000);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_way_to_make_a_group_says_so) {
  const ncclUniqueId no_id{};
  self_communicator self;
  const std::array<int, 2> devices{0, 1};
  const std::array<cudaStream_t, 2> streams{};
  auto* const no_comm = reinterpret_cast<ncclComm_t>(&self);
  check_no_device([&] { nccl_communicator::create(no_id, 2, {0}, nullptr); });
  check_no_device([&] { nccl_communicator::over(self, nullptr); });
  check_no_device([&] { nccl_communicator::local(devices, streams); });
  check_no_device([&] { nccl_communicator::adopt(no_comm, nullptr); });
  check_no_device([&] { nccl_communicator::borrow(no_comm, nullptr); });
}

BOOST_AUTO_TEST_CASE(what_the_caller_gets_wrong_comes_first) {
  const ncclUniqueId no_id{};
  BOOST_CHECK_EXCEPTION(nccl_communicator::create(no_id, 2, {2}, nullptr), invalid_input,
                        [](const invalid_input& e) {
                          return std::string(e.what()) ==
                                 "rank is 2: it must be from 0 to 1, the last rank of the group";
                        });
  BOOST_CHECK_EXCEPTION(nccl_communicator::adopt(nullptr, nullptr), invalid_input,
                        [](const invalid_input& e) {
                          return std::string(e.what()) == "communicator is null: it must be one";
                        });
}
