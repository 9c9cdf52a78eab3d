/// \file
/// The frame of a test of NCCL groups whose ranks are processes under mpirun, each with its device.
#pragma once

#include <boost/test/unit_test.hpp>

#include "seqpack/comm/mpi.hpp"
#include "seqpack/comm/nccl.hpp"
#include "support/mpi.hpp"
#include "support/nccl.hpp"

namespace seqpack::testing {

/// This process in the world, over MPI and over NCCL.
struct process_rank {
  int device = choose_device();
  mpi_communicator world = testing::world();
  rank_stream stream;
  nccl_communicator group = nccl_communicator::over(world, stream, patient_nccl);

  /// All ranks leave with the status that CTest counts as skipped where there are too few devices. Not in
  /// a global fixture: nothing says that MPI's own comes before it.
  static int choose_device() {
    if (device_count() < world_size()) {
      MPI_Finalize();
      skip("fewer CUDA devices than ranks");
    }
    check_cuda(cudaSetDevice(my_world_rank()));
    return my_world_rank();
  }
};

}  // namespace seqpack::testing
