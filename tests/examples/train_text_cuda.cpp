#define BOOST_TEST_MODULE examples_train_text_cuda
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "loss_curve.hpp"

namespace {

using seqpack::testing::run_training;
using seqpack::testing::training_run;

std::vector<std::string> small_training() {
  return {"--longest", "60", "--batch",      "4",   "--micro-batches", "2",
          "--steps",   "30", "--buckets",    "128", "--learning-rate", "0.1",
          "--repeats", "1",  SEQPACK_LICENSE};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_device_learns_what_the_host_learns) {
  const training_run device = run_training(SEQPACK_CUDA_EXAMPLE, small_training());
  if (device.result.status == 77) {
    std::puts("skipped: no CUDA device");
    std::_Exit(77);
  }
  BOOST_TEST(device.result.status == 0);
  BOOST_TEST(seqpack::testing::without_progress(device.result.err) == "");
  const training_run host = run_training(SEQPACK_EXAMPLE, small_training());
  BOOST_TEST(host.result.status == 0);
  seqpack::testing::require_same_curve(host.curve, device.curve);
  BOOST_TEST(std::exp(device.curve.back().validation) <
             0.8 * std::exp(device.curve.back().unigram));
}
