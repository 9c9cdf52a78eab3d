#define BOOST_TEST_MODULE nccl_dead_process
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "support/broadcast_suite.hpp"
#include "support/nccl.hpp"

using namespace seqpack;
using namespace seqpack::testing;
using namespace std::chrono_literals;

namespace {

/// What the processes share. The parent never touches CUDA, which does not survive a fork.
struct board {
  std::atomic<bool> has_id{false};
  ncclUniqueId id{};

  static board& make() {
    void* const memory =
        mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return *new (memory) board;
  }
};

/// Runs a function in a process of its own.
/// \returns its process id
template <class Body>
pid_t start(const Body& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  std::_Exit(body());
}
int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

/// 0, or 1 after a line for each finding.
int outcome(const findings& found) {
  for (const std::string& text : found.failures()) std::fprintf(stderr, "%s\n", text.c_str());
  return found.failures().empty() ? 0 : 1;
}

/// The last rank dies in the middle of its life; all others must be told, and end as usual.
int live(board& shared, int rank, int size) {
  findings found("on rank " + std::to_string(rank) + ": ");
  try {
    check_cuda(cudaSetDevice(rank));
    const rank_stream stream;
    if (rank == 0) {
      shared.id = new_id();
      shared.has_id = true;
    }
    if (!detail::wait_until(60s, [&] { return shared.has_id.load(); })) return 2;
    nccl_communicator group = make_hasty_group(
        {rank, size, rank, stream, shared.id},
        [&](nccl_communicator& warm) { check_still_usable(warm, found, "its creation"); });
    if (rank == size - 1) raise(SIGKILL);
    group_array<float, nccl_communicator> buffer(group, 12, untouched);
    const auto took = time_of([&] {
      found.throws<communication_error>(
          [&] {
            for (;;) {
              broadcast_tensor(tensor_view<float>(buffer.data(), {12}), group_rank{0}, group);
              group.wait();
            }
          },
          "", "broadcast_tensor", true);
    });
    found.check(took < hasty.deadline + 30s, "in time");
    found.throws<communication_error>([&] { group.wait(); },
                                      "the communicator cannot be used any more: ", "wait", true);
  } catch (const std::exception& e) {
    found.check(false, std::string("an exception: ") + e.what());
  }
  return outcome(found);
}

struct needs_two_devices {
  needs_two_devices() {
    const pid_t asks = start([] { return most_ranks(); });
    ranks = WEXITSTATUS(status_of(asks));
    if (ranks < 2) skip("fewer than two CUDA devices");
  }
  static inline int ranks = 0;
};
BOOST_TEST_GLOBAL_FIXTURE(needs_two_devices);

}  // namespace

BOOST_AUTO_TEST_CASE(a_process_that_dies) {
  board& shared = board::make();
  const int size = needs_two_devices::ranks;
  std::vector<pid_t> processes;
  for (int r = 0; r < size; ++r) processes.push_back(start([&] { return live(shared, r, size); }));
  for (int r = 0; r < size; ++r) {
    const int status = status_of(processes[static_cast<std::size_t>(r)]);
    if (r == size - 1) {
      BOOST_TEST(WIFSIGNALED(status));
      BOOST_TEST(WTERMSIG(status) == SIGKILL);
    } else {
      BOOST_TEST(WIFEXITED(status));
      BOOST_TEST(WEXITSTATUS(status) == 0);
    }
  }
}
