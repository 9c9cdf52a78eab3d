#define BOOST_TEST_MODULE nccl_faults
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "support/communicator_suite.hpp"
#include "support/nccl.hpp"

using namespace seqpack;
using namespace seqpack::testing;
using namespace std::chrono_literals;

// Faults that only a libnccl can make which has been told to. SEQPACK_TEST_NCCL_FAULT says what it
// has been told, and picks the tests; without it all of them are skipped.
//
// - async_error: operation 2 of rank 1 of every communicator fails with ncclRemoteError
// - stopped_rank: operations from 2 on never start on rank 1, whose calls return success
// - no_join: rank 1 never joins a communicator of 2 ranks
// - slow_rank: the operations of rank 1 start late, within all deadlines
// - launch_delay: calls return before they have put their operation into the stream
// - dead_peer: a peer that has aborted is an asynchronous error of the others
// - mismatch: calls that do not match are an error of their streams

namespace {

std::string told() {
  const char* const text = std::getenv("SEQPACK_TEST_NCCL_FAULT");
  return text == nullptr ? "" : text;
}

struct needs_fault {
  needs_fault() {
    if (told().empty()) skip("SEQPACK_TEST_NCCL_FAULT is not set");
    if (device_count() < 2) skip("fewer than two CUDA devices");
  }
};
BOOST_TEST_GLOBAL_FIXTURE(needs_fault);

struct when {
  std::string fault;
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
    return told() == fault;
  }
};
namespace utf = boost::unit_test;

/// One all-gather of number 10 + rank, into the stream.
struct gathering {
  group_array<std::int32_t, nccl_communicator> mine;
  group_array<std::int32_t, nccl_communicator> all;

  explicit gathering(nccl_communicator& group)
      : mine(group, {static_cast<std::int32_t>(10 + group.rank().value)}),
        all(group, static_cast<std::size_t>(group.size()), -77) {}
  void call(nccl_communicator& group) {
    group.all_gather(static_cast<const std::int32_t*>(mine.data()), all.data(), 1);
  }
};

void check_broken(nccl_communicator& group, findings& found) {
  const auto took = time_of([&] {
    found.throws<communication_error>([&] { group.wait(); },
                                      "the communicator cannot be used any more: ", "wait", true);
  });
  found.check(took < hasty.deadline, "the refusal waited");
  found.check(group.get() == nullptr, "it has been aborted");
  found.check(cudaStreamQuery(group.stream()) == cudaSuccess, "nothing is in flight");
}

void check_conforms(nccl_communicator& group, findings& found) {
  check_seat(group, found);
  check_all_gather<plain_struct>(group, found, 100);
  check_reductions<std::int32_t>(group, found, 3);
  check_broadcast<two_bytes>(group, found, 5);
  check_exchange(group, found);
  check_split(group, found);
}

}  // namespace

// make_hasty_group has made operations 0 and 1.
BOOST_AUTO_TEST_CASE(an_asynchronous_error_is_found_by_wait,
                     *utf::precondition(when{"async_error"})) {
  run_ranks(most_ranks(), [](const rank_place& place, findings& found) {
    nccl_communicator group = make_hasty_group(place);
    gathering g(group);
    if (place.rank == 1) {
      const auto took = time_of([&] {
        try {
          g.call(group);
          group.wait();
          found.check(false, "no error");
        } catch (const nccl_error& e) {
          found.equal(e.code(), ncclRemoteError, "code");
          found.check(e.reason().find(" failed: ") != std::string::npos, e.reason());
          found.check(e.reason().find("(NCCL error 6)") != std::string::npos, e.reason());
        }
      });
      found.check(took < hasty.deadline, "it was found late");
    } else {
      g.call(group);
      found.throws<communication_error>([&] { group.wait(); }, "", "wait for rank 1", true);
    }
    check_broken(group, found);
    const auto size = static_cast<std::size_t>(place.size);
    found.equal(read_device(place.stream, g.all.data(), size), std::vector<std::int32_t>(size, -77),
                "target");
  });
}

BOOST_AUTO_TEST_CASE(an_asynchronous_error_is_found_by_the_next_call,
                     *utf::precondition(when{"async_error"})) {
  run_ranks(most_ranks(), [](const rank_place& place, findings& found) {
    nccl_communicator group = make_hasty_group(place);
    gathering g(group);
    if (place.rank == 1) {
      found.throws<nccl_error>(
          [&] {
            g.call(group);
            for (int k = 0; k < 2000; ++k) {
              std::this_thread::sleep_for(5ms);
              g.call(group);
            }
          },
          "all_gather (ncclAllGather) failed: ", "the next call", true);
    } else {
      g.call(group);
      found.throws<communication_error>([&] { group.wait(); }, "", "wait for rank 1", true);
    }
    check_broken(group, found);
  });
}

BOOST_AUTO_TEST_CASE(a_rank_that_stops, *utf::precondition(when{"stopped_rank"})) {
  run_ranks(most_ranks(), [](const rank_place& place, findings& found) {
    nccl_communicator group = make_hasty_group(place);
    gathering g(group);
    g.call(group);
    const auto took = time_of([&] {
      found.throws<deadline_passed>([&] { group.wait(); }, "the stream has waited 1500 ms", "wait",
                                    true);
    });
    found.check(took >= hasty.deadline && took < hasty.deadline + 30s, "when");
    check_broken(group, found);
  });
}

BOOST_AUTO_TEST_CASE(a_rank_that_does_not_join, *utf::precondition(when{"no_join"})) {
  run_ranks(2, [](const rank_place& place, findings& found) {
    found.throws<deadline_passed>([&] { make_group(place, hasty); },
                                  "ncclCommInitRankConfig has waited 1500 ms", "create", true);
  });
}

BOOST_AUTO_TEST_CASE(a_rank_that_does_not_join_a_part, *utf::precondition(when{"no_join"})) {
  if (most_ranks() < 3) return;
  // Part 0 has two ranks, the second of which never joins; part 1 has the others, and is well.
  const int n = most_ranks() == 4 ? 3 : most_ranks();
  run_ranks(n, [](const rank_place& place, findings& found) {
    nccl_communicator group = make_hasty_group(place);
    if (place.rank < 2) {
      found.throws<deadline_passed>([&] { group.split(0, 0); }, "ncclCommSplit has waited 1500 ms",
                                    "split", true);
      check_broken(group, found);
    } else {
      nccl_communicator part = group.split(1, 0);
      check_exchange(part, found);
    }
  });
}

BOOST_AUTO_TEST_CASE(a_slow_rank_is_waited_for, *utf::precondition(when{"slow_rank"})) {
  run_group(most_ranks(), check_conforms);
}

BOOST_AUTO_TEST_CASE(calls_that_return_early, *utf::precondition(when{"launch_delay"})) {
  for (const int n : group_sizes()) run_group(n, check_conforms);
  // wait() knows what is not in the stream yet.
  run_group(most_ranks(), [](nccl_communicator& group, findings& found) {
    gathering g(group);
    for (int k = 0; k < 3; ++k) {
      g.call(group);
      found.equal(g.all.values().back(), static_cast<std::int32_t>(9 + group.size()), "gathered");
    }
  });
}

BOOST_AUTO_TEST_CASE(a_peer_that_is_gone, *utf::precondition(when{"dead_peer"})) {
  meeting done(most_ranks());
  run_ranks(most_ranks(), [&](const rank_place& place, findings& found) {
    ncclComm_t comm = nullptr;
    check_nccl(ncclCommInitRank(&comm, place.size, place.id, place.rank), "ncclCommInitRank");
    if (place.rank == 0) {
      ncclCommAbort(comm);
    } else {
      nccl_communicator group = nccl_communicator::adopt(comm, place.stream, patient_nccl);
      gathering g(group);
      const auto took = time_of([&] {
        found.throws<nccl_error>(
            [&] {
              g.call(group);
              group.wait();
            },
            "(NCCL error 6)", "wait for a rank that is gone", true);
      });
      found.check(took < 60s, "long before the deadline");
      check_broken(group, found);
    }
    found.check(done.arrive_and_wait(), "all ranks come to the end");
  });
}

// The last one of its kind: the streams are broken.
BOOST_AUTO_TEST_CASE(calls_that_do_not_match, *utf::precondition(when{"mismatch"})) {
  run_ranks(most_ranks(), [](const rank_place& place, findings& found) {
    nccl_communicator group = make_hasty_group(place);
    const auto memory = group.allocate(1024);
    const auto target = group.allocate(1024);
    const auto call = [&] {
      group.all_reduce(static_cast<const float*>(memory.get()), static_cast<float*>(target.get()),
                       place.rank == 1 ? 3 : 4, reduction::sum);
      group.wait();
    };
    try {
      call();
      found.check(false, "no error");
    } catch (const communication_error& e) {
      found.check(!e.reason().empty(), "the reason");
    } catch (const cuda_error& e) {
      found.check(e.code() != cudaSuccess, "the code");
    }
    found.throws<communication_error>([&] { group.wait(); },
                                      "the communicator cannot be used any more: ", "wait", true);
  });
}

BOOST_AUTO_TEST_CASE(the_fault_is_a_known_one) {
  const std::vector<std::string> known{"async_error",  "stopped_rank", "no_join", "slow_rank",
                                       "launch_delay", "dead_peer",    "mismatch"};
  BOOST_TEST(std::count(known.begin(), known.end(), told()) == 1);
}
