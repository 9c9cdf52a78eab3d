// Broadcasts a file from rank 0 to ranks that know nothing about it; then one rank makes a mistake.
//
//     mpirun -n 4 seqpack-broadcast FILE
#include <seqpack/comm/broadcast.hpp>
#include <seqpack/comm/mpi.hpp>

#include "ranks_speak.hpp"
#include "read_file.hpp"

int main(int argc, char** argv) {
  using namespace seqpack;
  mpi_environment mpi;
  auto world = mpi_communicator::duplicate(MPI_COMM_WORLD, {.deadline = std::chrono::minutes(1)});
  const group_rank root{0};
  const group_rank last{world.size() - 1};
  if (wants_help(argc, argv, world.rank() == root)) return 0;

  try {
    // Only the root reads the file. The others bring nothing and ask for no size: shape and element
    // type come with the data. Where it cannot be read, all ranks learn that the root has nothing.
    std::optional<std::vector<char>> bytes;
    if (world.rank() == root) bytes = read_file(argc, argv);
    std::optional<tensor_view<char>> mine;
    if (bytes) mine = tensor_view(*bytes);
    const tensor<char> file = broadcast_tensor(mine, root, world);
    ranks_speak(world, "has " + file.shape().to_string() + " bytes, checksum " + checksum(file));

    // The last rank brings a buffer that is too small. All ranks throw, and nothing is written.
    std::vector<char> small(4, '?');
    try {
      broadcast_tensor(world.rank() == last ? tensor_view(small) : file.view(), root, world);
    } catch (const collective_mismatch& error) {
      ranks_speak(world, error.what());
    }

    // The group goes on.
    std::int64_t total = 0;
    const std::int64_t size = file.shape().elements();
    world.all_reduce(&size, &total, 1, reduction::sum);
    ranks_speak(world, "counts " + std::to_string(total) + " bytes on all ranks");
  } catch (const collective_mismatch&) {
    return 2;  // the root has said why
  }
  return std::cout.flush() ? 0 : 1;
}
