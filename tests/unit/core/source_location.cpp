#define BOOST_TEST_MODULE core_source_location
#include "seqpack/core/source_location.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

using namespace seqpack;

BOOST_AUTO_TEST_CASE(places_do_not_tell_where_the_machine_has_its_folders) {
  const auto text = [](const char* file) { return source_location{file, 7}.to_string(); };
  BOOST_TEST(text("/home/me/build/include/seqpack/comm/mpi.hpp") == "seqpack/comm/mpi.hpp:7");
  BOOST_TEST(text("/home/user/seqpack/include/seqpack/comm/mpi.hpp") == "seqpack/comm/mpi.hpp:7");
  BOOST_TEST(text("seqpack/comm/mpi.hpp") == "mpi.hpp:7");
  BOOST_TEST(text("/home/me/secret/main.cpp") == "main.cpp:7");
  BOOST_TEST(text("main.cpp") == "main.cpp:7");
  BOOST_TEST(text("") == ":7");
}
