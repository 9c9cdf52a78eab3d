#include <cstdint>
#include <iostream>
#include <seqpack/comm/broadcast.hpp>
#include <seqpack/comm/mpi.hpp>
#include <vector>

int main() {
  seqpack::mpi_environment mpi;
  auto world = seqpack::mpi_communicator::duplicate(MPI_COMM_WORLD);
  std::vector<std::int64_t> ids = {1, 2, 3};
  const auto received =
      seqpack::broadcast_tensor(seqpack::tensor_view(ids), seqpack::group_rank{0}, world);
  std::cout << received.shape().to_string() << '\n';
  return received.elements()[2] == 3 ? 0 : 1;
}
