// The same with the file in the memory of GPUs, over NCCL. MPI starts the processes and brings
// NCCL's id to all of them; each rank takes a device of its machine, and ends with 77 where there
// are too few.
//
//     mpirun -n 4 seqpack-broadcast-nccl FILE
#include <iostream>

#include <seqpack/comm/broadcast.hpp>
#include <seqpack/comm/mpi.hpp>
#include <seqpack/comm/nccl.hpp>

#include "ranks_speak.hpp"
#include "read_file.hpp"

namespace {

using namespace seqpack;

/// A stream that lives as long as the group that uses it.
struct stream {
  cudaStream_t handle = nullptr;
  stream() { check_cuda(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking)); }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream() { cudaStreamDestroy(handle); }
};

/// One device for each rank of a machine: every machine counts its ranks and its devices from 0.
void choose_device() {
  MPI_Comm machine = MPI_COMM_NULL;
  int rank = 0;
  int ranks = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  MPI_Comm_rank(machine, &rank);
  MPI_Comm_size(machine, &ranks);
  MPI_Comm_free(&machine);
  int devices = 0;
  check_cuda(cudaGetDeviceCount(&devices));
  if (devices < ranks) throw cuda_error(cudaErrorInvalidDevice);
  check_cuda(cudaSetDevice(rank));
}

void show(mpi_communicator& world, int argc, char** argv) {
  const stream work;
  auto group = nccl_communicator::over(world, work.handle, {.deadline = std::chrono::minutes(1)});
  const group_rank root{0};

  std::optional<std::vector<char>> bytes;
  if (group.rank() == root) bytes = read_file(argc, argv);
  std::optional<tensor_view<char>> mine;
  std::shared_ptr<void> memory;
  if (bytes) {
    const auto size = static_cast<offset_t>(bytes->size());
    memory = group.allocate(size);
    check_cuda(cudaMemcpyAsync(memory.get(), bytes->data(), bytes->size(), cudaMemcpyHostToDevice,
                               work.handle));
    mine = tensor_view<char>(static_cast<char*>(memory.get()), {size});
  }
  const tensor<char> file = broadcast_tensor(mine, root, group);
  std::vector<char> received(static_cast<std::size_t>(file.shape().elements()));
  group.wait();  // with the deadline, so that the copy has nobody to wait for
  check_cuda(cudaMemcpyAsync(received.data(), file.data(), received.size(), cudaMemcpyDeviceToHost,
                             work.handle));
  check_cuda(cudaStreamSynchronize(work.handle));
  ranks_speak(world, "has " + file.shape().to_string() + " bytes, checksum " + checksum(received));

  // The last rank brings host memory, which NCCL cannot move.
  const bool last = group.rank().value == group.size() - 1;
  try {
    broadcast_tensor(last ? tensor_view(received) : file.view(), root, group);
  } catch (const collective_mismatch& error) {
    ranks_speak(world, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  mpi_environment mpi;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (wants_help(argc, argv, rank == 0)) return 0;
  try {
    choose_device();
  } catch (const cuda_error& error) {
    std::cerr << std::string("no device for each rank: ") + error.what() + '\n';
    return 77;
  }
  try {
    auto world = mpi_communicator::duplicate(MPI_COMM_WORLD, {.deadline = std::chrono::minutes(1)});
    try {
      show(world, argc, argv);
    } catch (const collective_mismatch&) {
      return 2;  // all ranks are here, and the root has said why
    }
  } catch (const std::exception& error) {
    // Some ranks may be here alone: no collective can tell the others, and MPI's end waits for all.
    std::cerr << std::string(error.what()) + '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
