// The same with the file in the memory of GPUs, over NCCL. MPI starts the processes and brings NCCL's id
// to all of them; each rank takes a device of its own.
//
//     mpirun -n 4 seqpack-broadcast-nccl FILE
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

/// One device for each rank of a machine.
void choose_device(offset_t rank) {
  int devices = 0;
  check_cuda(cudaGetDeviceCount(&devices));
  check_cuda(cudaSetDevice(static_cast<int>(rank % devices)));
}

void show(mpi_communicator& world, const char* path) {
  choose_device(world.rank().value);
  const stream work;
  auto group = nccl_communicator::over(world, work.handle, {.deadline = std::chrono::minutes(1)});
  const group_rank root{0};

  std::optional<std::vector<char>> bytes;
  if (group.rank() == root && path != nullptr) bytes = read_file(path);
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
  auto world = mpi_communicator::duplicate(MPI_COMM_WORLD, {.deadline = std::chrono::minutes(1)});
  try {
    show(world, argc == 2 ? argv[1] : nullptr);
  } catch (const collective_mismatch& error) {
    ranks_speak(world, error.what());
    return 2;
  } catch (const cuda_error& error) {
    ranks_speak(world, error.what());
    return 77;
  }
}
