#define BOOST_TEST_MODULE nccl_endless_ends
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/nccl.hpp"

using namespace seqpack;
using namespace seqpack::testing;
using namespace std::chrono_literals;

BOOST_TEST_GLOBAL_FIXTURE(needs_nccl_device);

// The calls that NCCL ends communicators with, in the place of its own: they come to their end when
// the test lets them.
namespace {

enum class ends { freely, without_doing_anything, after_doing_it };
std::atomic<ends> abort_ends{ends::freely};
std::atomic<ends> destroy_ends{ends::freely};
std::atomic<int> stuck{0};
std::atomic<bool> released{false};

template <class Call>
ncclResult_t end(ends how, const Call& call) {
  if (how == ends::freely) return call();
  ++stuck;
  ncclResult_t code = ncclSuccess;
  if (how == ends::after_doing_it) code = call();
  detail::wait_until(60s, [] { return released.load(); });
  if (how == ends::without_doing_anything) code = call();
  --stuck;
  return code;
}

/// Lets all of them go at the end.
struct stuck_calls {
  stuck_calls(ends abort, ends destroy) {
    released = false;
    abort_ends = abort;
    destroy_ends = destroy;
  }
  stuck_calls(const stuck_calls&) = delete;
  stuck_calls& operator=(const stuck_calls&) = delete;
  ~stuck_calls() {
    abort_ends = ends::freely;
    destroy_ends = ends::freely;
    released = true;
    detail::wait_until(60s, [] { return stuck == 0; });
  }
};

void check_time(std::chrono::milliseconds took, int deadlines, findings& found,
                const std::string& what) {
  found.check(took >= deadlines * hasty.deadline, what + " did not wait");
  found.check(took < deadlines * hasty.deadline + 30s, what + " waited for long");
}

/// A broadcast that rank 0 does not come to, and what is told of its abort.
void check_abort(ends how, const std::string& told) {
  const int n = most_ranks();
  if (n < 2) return;
  meeting done(n);
  const stuck_calls calls(how, ends::freely);
  run_ranks(n, [&](const rank_place& place, findings& found) {
    nccl_communicator group = make_hasty_group(place);
    std::shared_ptr<void> memory;
    if (place.rank > 0) {
      memory = group.allocate(4);
      group.broadcast(static_cast<std::int32_t*>(memory.get()), 1, group_rank{0});
      const std::string waited =
          "the stream has waited 1500 ms for another rank, the deadline of the communicator";
      const auto took = time_of(
          [&] { found.throws<deadline_passed>([&] { group.wait(); }, waited, "wait", true); });
      check_time(took, 2, found, "wait");
      found.check(group.get() == nullptr, "the handle is gone");
      try {
        group.wait();
        found.check(false, "no refusal");
      } catch (const communication_error& e) {
        found.equal(e.reason(), "the communicator cannot be used any more: " + waited + told,
                    "the refusal");
      }
    }
    found.check(done.arrive_and_wait(), "all ranks come to the end");
    if (place.rank == 0) released = true;  // before the streams go
    found.check(detail::wait_until(60s, [] { return stuck == 0; }), "the calls end");
  });
}

}  // namespace

extern "C" ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return end(abort_ends, [&] { return pncclCommAbort(comm); });
}
extern "C" ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return end(destroy_ends, [&] { return pncclCommDestroy(comm); });
}

BOOST_AUTO_TEST_CASE(an_abort_that_does_not_end_the_communicator) {
  check_abort(ends::after_doing_it, "; NCCL has not ended the communicator");
}

BOOST_AUTO_TEST_CASE(an_abort_that_does_not_even_end_the_operations) {
  check_abort(ends::without_doing_anything,
              "; NCCL has not ended the communicator, and the stream is still busy");
}

BOOST_AUTO_TEST_CASE(an_abort_of_a_setup_that_does_not_end) {
  const stuck_calls calls(ends::after_doing_it, ends::freely);
  const int n = std::max(1, most_ranks() - 1);
  run_ranks(n, [&](const rank_place& place, findings& found) {
    const auto took = time_of([&] {
      found.throws<deadline_passed>(
          [&] { nccl_communicator::create(place.id, n + 1, {place.rank}, place.stream, hasty); },
          "ncclCommInitRankConfig has waited 1500 ms", "create", true);
    });
    check_time(took, 2, found, "create");
  });
}

BOOST_AUTO_TEST_CASE(a_destruction_that_does_not_end) {
  const stuck_calls calls(ends::freely, ends::after_doing_it);
  run_ranks(most_ranks(), [&](const rank_place& place, findings& found) {
    auto group = std::make_unique<nccl_communicator>(make_hasty_group(place));
    const auto took = time_of([&] { group.reset(); });
    check_time(took, 1, found, "the destructor");
    int device = -1;
    check_cuda(cudaGetDevice(&device));
    found.equal(device, place.device, "the current device");
    found.check(cudaPeekAtLastError() == cudaSuccess, "no error is left behind");
  });
}
