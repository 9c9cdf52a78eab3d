// A process that dies. mpirun is told not to end the others, whose exit statuses then count for
// nothing: the last line of the output says that all is well, and CTest looks for it.
#include <csignal>
#include <cstdio>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "seqpack/comm/mpi.hpp"

using namespace seqpack;

int main() {
  mpi_environment mpi(MPI_THREAD_FUNNELED, std::chrono::seconds(2));
  auto all = mpi_communicator::duplicate(MPI_COMM_WORLD, {.deadline = std::chrono::seconds(1)});
  const offset_t last = all.size() - 1;
  const bool dies = all.rank().value == last;
  auto survivors = all.split(dies ? std::nullopt : std::optional<offset_t>(0), 0);
  std::vector<float> buffer(1000, static_cast<float>(all.rank().value));
  if (dies) std::raise(SIGKILL);

  int good = 0;
  try {
    broadcast_tensor(tensor_view(buffer), group_rank{last}, all);
  } catch (const deadline_passed& e) {
    std::printf("rank %d: %s\n", static_cast<int>(all.rank().value), e.what());
    const bool unchanged = buffer == std::vector<float>(1000, static_cast<float>(all.rank().value));
    good = unchanged ? 1 : 0;
  }
  int sum = 0;
  survivors.all_reduce(&good, &sum, 1, reduction::sum);
  if (survivors.rank().value == 0 && sum == last) {
    std::puts("all ranks that live have got an error, and go on");
    std::fflush(stdout);  // the end of MPI is an abort
  }
}
