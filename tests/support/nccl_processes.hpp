/// \file
/// The frame of a test of NCCL groups whose ranks are processes under mpirun, each with its device.
#pragma once

#include <boost/test/unit_test.hpp>

#include "seqpack/comm/mpi.hpp"
#include "seqpack/comm/nccl.hpp"
#include "support/mpi.hpp"
#include "support/nccl.hpp"

namespace seqpack::testing {

/// All ranks leave with the status that CTest counts as skipped where there are too few devices.
struct needs_device_for_each_rank {
  needs_device_for_each_rank() {
    if (device_count() >= world_size()) return;
    MPI_Finalize();
    skip("fewer CUDA devices than ranks");
  }
};
BOOST_TEST_GLOBAL_FIXTURE(needs_device_for_each_rank);

/// This process in the world, over MPI and over NCCL.
struct process_rank {
  int device = choose_device();
  mpi_communicator world = testing::world();
  rank_stream stream;
  nccl_communicator group = nccl_communicator::over(world, stream, patient_nccl);

  static int choose_device() {
    check_cuda(cudaSetDevice(my_world_rank()));
    return my_world_rank();
  }
};

}  // namespace seqpack::testing
