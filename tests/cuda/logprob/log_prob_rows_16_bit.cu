// Rows of half and bfloat16 logits by warps and blocks: sizes, addresses, ends, and gradients of
// another type.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <boost/test/unit_test.hpp>

#include "support/log_prob_rows_suite.cuh"

BOOST_AUTO_TEST_SUITE(logprob_log_prob_rows_16_bit)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

BOOST_AUTO_TEST_CASE(sizes_half) {
  check_row_sizes<__half>(1e-6);
}
BOOST_AUTO_TEST_CASE(sizes_bfloat16) {
  check_row_sizes<__nv_bfloat16>(1e-6);
}
BOOST_AUTO_TEST_CASE(sizes_bfloat16_with_a_gradient_in_float) {
  check_row_sizes<__nv_bfloat16, float>(1e-6);
}
BOOST_AUTO_TEST_CASE(addresses_bfloat16) {
  check_row_addresses<__nv_bfloat16>(1e-6);
}
BOOST_AUTO_TEST_CASE(addresses_bfloat16_with_a_gradient_in_float) {
  check_row_addresses<__nv_bfloat16, float>(1e-6);
}
BOOST_AUTO_TEST_CASE(ends) {
  check_row_ends<__half>();
}

BOOST_AUTO_TEST_SUITE_END()
