/// \file
/// The frame of a test that mpirun starts: MPI, and a communicator of all ranks.
#pragma once

#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>

#include "seqpack/comm/mpi.hpp"
#include "support/findings.hpp"

namespace seqpack::testing {

/// Long enough for ranks that share few cores; a test of what hangs has a deadline of its own.
inline constexpr mpi_options patient{.deadline = std::chrono::seconds(120)};

/// MPI for the whole program.
struct mpi_program {
  mpi_environment environment;
};
BOOST_TEST_GLOBAL_FIXTURE(mpi_program);

inline int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}
inline int my_world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline mpi_communicator world(const mpi_options& options = patient) {
  return mpi_communicator::duplicate(MPI_COMM_WORLD, options);
}

inline findings my_findings() {
  return findings("on rank " + std::to_string(my_world_rank()) + ": ");
}

}  // namespace seqpack::testing
