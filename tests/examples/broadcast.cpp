#define BOOST_TEST_MODULE examples_broadcast
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "run_program.hpp"

namespace {

using seqpack::testing::program_result;
using seqpack::testing::temporary_file;

program_result broadcast(int ranks, const std::string& file) {
  return seqpack::testing::run_program(SEQPACK_MPIEXEC,
                                       {"-n", std::to_string(ranks), SEQPACK_EXAMPLE, file});
}

/// The line of every rank.
std::string said_by_all(int ranks, const std::string& text) {
  std::string lines;
  for (int r = 0; r < ranks; ++r) lines += "rank " + std::to_string(r) + ": " + text + "\n";
  return lines;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_reaches_all_ranks_and_a_mistake_is_told_to_all) {
  const temporary_file file("123456789");  // whose CRC-32 is cbf43926
  const program_result result = broadcast(4, file.path());
  BOOST_TEST(result.status == 0);
  BOOST_TEST(result.out ==
             said_by_all(4, "has [9] bytes, checksum cbf43926") +
                 said_by_all(4,
                             "shape on rank 3 is [4]: it must be [9], the shape on the root, "
                             "rank 0") +
                 said_by_all(4, "counts 36 bytes on all ranks"));
}

BOOST_AUTO_TEST_CASE(an_empty_file_is_a_tensor_too) {
  const temporary_file file("");
  const program_result result = broadcast(2, file.path());
  BOOST_TEST(result.status == 0);
  BOOST_TEST(result.out.find(said_by_all(2, "has [0] bytes, checksum 0")) == 0u);
}

BOOST_AUTO_TEST_CASE(one_rank_has_nobody_to_disagree_with) {
  const temporary_file file("123456789");
  const program_result result = broadcast(1, file.path());
  BOOST_TEST(result.out.find("rank 0: has [9] bytes, checksum cbf43926\n") == 0u);
}

BOOST_AUTO_TEST_CASE(a_file_that_only_the_root_misses_ends_all_ranks) {
  const program_result result = broadcast(3, "/no/such/file");
  BOOST_TEST(result.status == 2);
  BOOST_TEST(
      result.out ==
      said_by_all(3, "tensor on the root, rank 0 is absent: the root must bring the tensor"));
}
