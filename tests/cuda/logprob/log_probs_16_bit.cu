// Log-probabilities of half and bfloat16 logits on the device.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <boost/test/unit_test.hpp>

#include "support/log_probs_suite.cuh"

BOOST_AUTO_TEST_SUITE(logprob_log_probs_16_bit)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

static_assert(logit<__half> && logit<__nv_bfloat16>);
static_assert(std::same_as<compute_type<__nv_bfloat16>, float>);

BOOST_AUTO_TEST_CASE(values_half) {
  check_log_prob_shapes<__half>(3e-6);
}
BOOST_AUTO_TEST_CASE(values_bfloat16) {
  check_log_prob_shapes<__nv_bfloat16>(3e-6);
}

BOOST_AUTO_TEST_SUITE_END()
