#define BOOST_TEST_MODULE comm_error
#include "seqpack/comm/error.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>

using namespace seqpack;

BOOST_AUTO_TEST_CASE(errors_say_where) {
  const communication_error error("nothing works");
  BOOST_TEST(error.reason() == "nothing works");
  BOOST_TEST(std::string(error.where().file).find("error.cpp") != std::string::npos);
  BOOST_TEST(error.where().line == __LINE__ - 3);
  BOOST_TEST(std::string(error.what()) ==
             "nothing works (at error.cpp:" + std::to_string(__LINE__ - 5) + ")");
  const deadline_passed late("all_gather", std::chrono::milliseconds(250));
  BOOST_TEST(late.reason() ==
             "all_gather has waited 250 ms for another rank, the deadline of the communicator");
  const deadline_passed known("agree", std::chrono::milliseconds(250), "rank 2 has not come");
  BOOST_TEST(
      known.reason() ==
      "agree has waited 250 ms for another rank, the deadline of the communicator; rank 2 has "
      "not come");
  BOOST_TEST(known.waited().count() == 250);
  const collective_mismatch mismatch({2}, "shape on rank 2", "[3]", "it must be [4]");
  BOOST_TEST(mismatch.rank().value == 2);
  BOOST_TEST(std::string(mismatch.what()) == "shape on rank 2 is [3]: it must be [4]");
}
