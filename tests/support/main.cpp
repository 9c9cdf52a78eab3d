// The main function of tests whose source has none: with a precompiled Boost.Test, or as one of several
// sources of a program, BOOST_TEST_MODULE makes none. It lies in an archive, so that one that a source
// does make is taken instead.
#include <boost/test/unit_test.hpp>

int main(int argc, char** argv) {
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
