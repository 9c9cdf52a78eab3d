// Log-probabilities of labels on the device: the values, what is launched, and what NaN does.
#include <boost/test/unit_test.hpp>
#include <limits>
#include <vector>

#include "support/log_probs_suite.cuh"

BOOST_AUTO_TEST_SUITE(logprob_log_probs)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

BOOST_AUTO_TEST_CASE(values_float) {
  check_log_prob_shapes<float>(3e-6);
}
BOOST_AUTO_TEST_CASE(values_double) {
  check_log_prob_shapes<double>(1e-13);
}

BOOST_AUTO_TEST_CASE(one_launch_each) {
  const test_stream stream;
  const auto where = stream.executor();
  const offset_t rows = 5, columns = 9;
  const device_array<float> logits(std::vector<float>(45, 1));
  const device_array<std::int64_t> labels(std::vector<std::int64_t>{1, 2, ignored_label, 3, 4});
  const device_array<float> derivatives(std::vector<float>(5, 1));
  self_communicator tp;
  const log_prob_state<float> state(where, rows);
  const matrix_view<float> view(logits.data(), rows, columns);
  const row_view<const std::int64_t> label_rows(labels.data(), rows);
  const captured_call forward(stream, [&] {
    label_log_probs(where, tp, view, column_range(columns), label_rows, state.rows());
  });
  BOOST_TEST(forward.launches == 1);
  const captured_call backward(stream, [&] {
    label_log_probs_backward(where, view, column_range(columns), label_rows, state.rows(),
                             row_view<const float>(derivatives.data(), rows), view);
  });
  BOOST_TEST(backward.launches == 1);
  BOOST_TEST(backward.memsets + backward.others == 0);
  forward.replay(stream);
  backward.replay(stream);
  stream.wait();
  const std::vector<float> gradient = logits.values();
  for (std::size_t k = 0; k < gradient.size(); ++k) {
    const std::size_t row = k / 9;
    const float expected =
        row == 2 ? 0 : (k % 9 == std::vector{1U, 2U, 9U, 3U, 4U}[row] ? 8.0F : -1.0F) / 9;
    BOOST_TEST(std::abs(gradient[k] - expected) < 1e-6F);
  }
}

BOOST_AUTO_TEST_CASE(rows_without_a_share_are_not_read) {
  const float bad = std::numeric_limits<float>::quiet_NaN();
  const test_stream stream;
  const auto where = stream.executor();
  // Row 1 has no label, row 2 no derivative.
  const device_array<float> logits(std::vector<float>{0, 0, bad, bad, bad, 0});
  const device_array<std::int64_t> labels(std::vector<std::int64_t>{1, ignored_label, 0});
  const device_array<float> derivatives(std::vector<float>{1, 1, 0});
  self_communicator tp;
  const log_prob_state<float> state(where, 3);
  const matrix_view<float> view(logits.data(), 3, 2);
  const row_view<const std::int64_t> label_rows(labels.data(), 3);
  label_log_probs(where, tp, view, column_range(2), label_rows, state.rows());
  label_log_probs_backward(where, view, column_range(2), label_rows, state.rows(),
                           row_view<const float>(derivatives.data(), 3), view);
  stream.wait();
  const std::vector<float> expected{-0.5F, 0.5F, 0, 0, 0, 0};
  BOOST_TEST(logits.values() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_label_outside_of_the_vocabulary_shows) {
  const test_stream stream;
  const auto where = stream.executor();
  const device_array<float> logits(std::vector<float>(6, 0));
  const device_array<std::int64_t> labels(std::vector<std::int64_t>{2, -1, 1});
  self_communicator tp;
  const log_prob_state<float> state(where, 3);
  label_log_probs(where, tp, matrix_view<float>(logits.data(), 3, 2), column_range(2),
                  row_view<const std::int64_t>(labels.data(), 3), state.rows());
  float log_probs[3];
  read_back(where, log_probs, state.rows().log_probs.data, 3);
  BOOST_TEST(std::isnan(log_probs[0]));
  BOOST_TEST(std::isnan(log_probs[1]));
  BOOST_TEST(std::abs(log_probs[2] + std::log(2.0F)) < 1e-6F);
}

BOOST_AUTO_TEST_SUITE_END()
