// Rows of float and double logits by warps and blocks: sizes, addresses, ends.
#include <boost/test/unit_test.hpp>

#include "support/log_prob_rows_suite.cuh"

BOOST_AUTO_TEST_SUITE(logprob_log_prob_rows)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

BOOST_AUTO_TEST_CASE(sizes_float) {
  check_row_sizes<float>(1e-6);
}
BOOST_AUTO_TEST_CASE(sizes_double) {
  check_row_sizes<double>(1e-13);
}
BOOST_AUTO_TEST_CASE(addresses_float) {
  check_row_addresses<float>(1e-6);
}
BOOST_AUTO_TEST_CASE(addresses_double) {
  check_row_addresses<double>(1e-13);
}
BOOST_AUTO_TEST_CASE(ends) {
  check_row_ends<float>();
  check_row_ends<double>();
}

BOOST_AUTO_TEST_SUITE_END()
