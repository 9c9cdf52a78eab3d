/// \file
/// The frame of a test that mpirun starts: MPI, and a communicator of all ranks.
#pragma once

#include <boost/test/unit_test.hpp>
#include <functional>
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

/// Decorators of a case that other numbers of ranks have nothing to do with; there it is skipped, and
/// counted as that.
inline boost::unit_test::precondition ranks_that(const std::string& requirement,
                                                 const std::function<bool(int)>& suits) {
  return boost::unit_test::precondition([=](boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result result(suits(world_size()));
    result.message() << "the number of ranks is " << world_size() << ": " << requirement;
    return result;
  });
}
inline boost::unit_test::precondition at_least(int ranks) {
  return ranks_that("it must be at least " + std::to_string(ranks),
                    [=](int size) { return size >= ranks; });
}
inline boost::unit_test::precondition exactly(int ranks) {
  return ranks_that("it must be " + std::to_string(ranks), [=](int size) { return size == ranks; });
}
inline boost::unit_test::precondition an_even_number() {
  return ranks_that("it must be even", [](int size) { return size % 2 == 0; });
}

inline mpi_communicator world(const mpi_options& options = patient) {
  return mpi_communicator::duplicate(MPI_COMM_WORLD, options);
}

inline findings my_findings() {
  return findings("on rank " + std::to_string(my_world_rank()) + ": ");
}

}  // namespace seqpack::testing
