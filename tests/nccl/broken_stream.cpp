#define BOOST_TEST_MODULE nccl_broken_stream
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <exception>
#include <string>

#include "support/nccl.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_TEST_GLOBAL_FIXTURE(needs_nccl_device);

// The only test of this program: a device is of no use after such an error. How NCCL finds out is
// its own affair, so that any of the errors will do, but one of them there must be.
BOOST_AUTO_TEST_CASE(an_address_that_is_none) {
  run_ranks(most_ranks(), [](const rank_place& place, findings& found) {
    nccl_communicator group = make_hasty_group(place);
    auto* const nowhere = reinterpret_cast<float*>(std::uintptr_t{0x10000});
    const std::size_t far = std::size_t{1} << 30;
    std::string reason;
    try {
      group.all_gather(static_cast<const float*>(nowhere), nowhere + far, 1000);
      // Rank 0 asks when the stream has its error already, the others mostly before.
      if (place.rank == 0) {
        detail::wait_until(hasty.deadline / 2,
                           [&] { return cudaStreamQuery(place.stream) != cudaErrorNotReady; });
        found.check(cudaGetLastError() != cudaSuccess, "the stream has its error");
      }
      group.wait();
      found.check(false, "no error");
    } catch (const communication_error& e) {
      reason = e.reason();
    } catch (const cuda_error& e) {
      found.check(e.code() != cudaSuccess && e.code() != cudaErrorNotReady, "the code");
      reason = e.what();
    }
    found.throws<communication_error>([&] { group.wait(); },
                                      "the communicator cannot be used any more: " + reason,
                                      "wait after the error", true);
  });
}
