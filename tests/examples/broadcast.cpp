#define BOOST_TEST_MODULE examples_broadcast
#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "run_program.hpp"

namespace {

using seqpack::testing::program_result;
using seqpack::testing::temporary_file;

program_result run(int ranks, const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"-n", std::to_string(ranks), SEQPACK_EXAMPLE};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return seqpack::testing::run_program(SEQPACK_MPIEXEC, all);
}

program_result broadcast(int ranks, const std::string& file) {
  return run(ranks, {file});
}

/// How often a text has another one.
int times(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

const std::string usage = std::string("usage: mpirun -n RANKS ") + SEQPACK_EXAMPLE + " FILE\n";

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

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_read_is_told_once_and_ends_all_ranks) {
  const seqpack::testing::temporary_folder folder;
  for (const auto& [file, why] :
       {std::pair{std::string("/no/such/file"), "No such file or directory"},
        std::pair{folder.path(), "it is no regular file"}}) {
    const program_result result = broadcast(3, file);
    BOOST_TEST(result.status == 2);
    BOOST_TEST(result.out == "");
    BOOST_TEST(times(result.err, std::string(SEQPACK_EXAMPLE) + ": " + file +
                                     " cannot be read: " + why + "\n") == 1,
               result.err);
    BOOST_TEST(times(result.err, "cannot be read") == 1);
  }
}

BOOST_AUTO_TEST_CASE(the_help_is_printed_once) {
  const program_result result = run(3, {"--help"});
  BOOST_TEST(result.status == 0);
  BOOST_TEST(result.out == usage);
  BOOST_TEST(result.err == "");
}

BOOST_AUTO_TEST_CASE(a_missing_and_a_second_file_are_answered_with_the_usage_once) {
  const temporary_file file("123456789");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, std::vector<std::string>{file.path(), file.path()}}) {
    const program_result result = run(3, arguments);
    BOOST_TEST(result.status == 2);
    BOOST_TEST(result.out == "");
    BOOST_TEST(times(result.err, usage) == 1, result.err);
  }
}
