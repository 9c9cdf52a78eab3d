// A program that ends while one of its ranks stalls for good: MPI_Finalize would wait for ever.
// mpirun's exit status is that of MPI_Abort; CTest looks for what is said, and the time limit for
// what hangs.
#include <csignal>
#include <cstdio>

#include "seqpack/comm/broadcast.hpp"
#include "seqpack/comm/mpi.hpp"

using namespace seqpack;

int main() {
  try {
    mpi_environment mpi(MPI_THREAD_FUNNELED, std::chrono::seconds(2));
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    auto all = mpi_communicator::adopt(copy, {.deadline = std::chrono::seconds(1)});
    if (all.rank().value == all.size() - 1) std::raise(SIGSTOP);
    float number = 1;
    broadcast_tensor(tensor_view<float>(&number, {1}), group_rank{0}, all);
  } catch (const communication_error& e) {
    std::printf("not reached: %s\n", e.what());  // the destructor of mpi has ended the program
  }
}
