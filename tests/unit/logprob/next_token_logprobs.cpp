// Next-token log-probabilities of a batch and the way back to its logits. Several ranks are in
// tests/mpi/log_probs.cpp.
#define BOOST_TEST_MODULE next_token_logprobs
#include "seqpack/logprob/next_token_logprobs.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "seqpack/layout/layout.hpp"
#include "support/refused.hpp"
#include "support/row_truth.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_AUTO_TEST_CASE(to_the_batch_and_back) {
  // Two sequences of 3 and 2 tokens: 2 and 1 log-probabilities, 0 where there is no next token.
  const std::vector<int> lengths{3, 2};
  const std::vector<int> ids{1, 2, 0, 2, 1, 0};
  const batch_view<const int> table(ids.data(), 2, 3);
  const auto layout = make_layout(lengths, padding{each_multiple_of<4>{}});
  const offset_t columns = 3;
  std::vector<double> logits;
  for (offset_t k = 0; k < layout.total_tokens() * columns; ++k) {
    logits.push_back(static_cast<double>(k % 7) / 2);
  }
  const matrix_view<double> rows(logits.data(), layout.total_tokens(), columns);
  self_communicator one;
  std::vector<double> out(4, 9);
  std::vector<double> entropy(4, 9);
  const auto state = next_token_logprobs(host, layout, one, one, table, rows, column_range(columns),
                                         batch_view<double>(out.data(), 2, 2), {},
                                         batch_view<double>(entropy.data(), 2, 2));
  const row_truth first = truth(rows.at(0), columns, 2, 1);
  const row_truth second = truth(rows.at(1), columns, 0, 1);
  const row_truth third = truth(rows.at(4), columns, 1, 1);
  const std::vector<double> expected{first.log_prob, second.log_prob, third.log_prob, 0};
  const std::vector<double> expected_entropy{first.entropy, second.entropy, third.entropy, 0};
  BOOST_TEST(out == expected, boost::test_tools::tolerance(1e-13)
                                  << boost::test_tools::per_element());
  BOOST_TEST(entropy == expected_entropy, boost::test_tools::tolerance(1e-13)
                                              << boost::test_tools::per_element());

  // The entry without a token is not read.
  const std::vector<double> derivatives{1, 0, 3, std::numeric_limits<double>::quiet_NaN()};
  std::vector<double> gradient(logits.size(), 9);
  next_token_logprobs_backward(host, layout, shard{0}, state, rows, column_range(columns),
                               batch_view<const double>(derivatives.data(), 2, 2),
                               matrix_view<double>(gradient.data(), rows.rows, columns));
  for (offset_t t = 0; t < rows.rows; ++t) {
    const double d = t == 0 ? 1 : t == 4 ? 3 : 0;
    const row_truth& row = t == 0 ? first : third;
    const offset_t label = t == 0 ? 2 : 1;
    for (offset_t v = 0; v < columns; ++v) {
      const double wanted =
          d * ((v == label ? 1 : 0) - row.probabilities[static_cast<std::size_t>(v)]);
      BOOST_TEST(std::abs(gradient[static_cast<std::size_t>(t * columns + v)] - wanted) < 1e-13);
    }
  }
}

BOOST_AUTO_TEST_CASE(of_the_sequences_of_an_order) {
  // Slot 0 holds sequence 2, slot 1 sequence 0; sequence 1, whose ids are none, is left out.
  const std::vector<int> lengths{3, 2, 2};
  const std::vector<int> ids{1, 2, 0, 99, -7, 99, 2, 1, 0};
  const std::vector<offset_t> order{2, 0};
  const auto layout =
      make_layout(lengths, padding{each_multiple_of<4>{}}, no_context_parallel{}, {.order = order});
  const offset_t columns = 3;
  std::vector<double> logits;
  for (offset_t k = 0; k < 8 * columns; ++k) logits.push_back(static_cast<double>(k % 7) / 2);
  const matrix_view<double> rows(logits.data(), 8, columns);
  self_communicator one;
  std::vector<double> out(6, 9);
  const auto state =
      next_token_logprobs(host, layout, one, one, batch_view<const int>(ids.data(), 3, 3), rows,
                          column_range(columns), batch_view<double>(out.data(), 3, 2));
  const row_truth of_last = truth(rows.at(0), columns, 1, 1);
  const row_truth first = truth(rows.at(4), columns, 2, 1);
  const row_truth second = truth(rows.at(5), columns, 0, 1);
  const std::vector<double> expected{first.log_prob, second.log_prob, 0, 0, of_last.log_prob, 0};
  BOOST_TEST(out == expected, boost::test_tools::tolerance(1e-13)
                                  << boost::test_tools::per_element());

  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> derivatives{0, 2, nan, nan, 3, nan};
  std::vector<double> gradient(logits.size(), 9);
  next_token_logprobs_backward(host, layout, shard{0}, state, rows, column_range(columns),
                               batch_view<const double>(derivatives.data(), 3, 2),
                               matrix_view<double>(gradient.data(), 8, columns));
  for (offset_t t = 0; t < 8; ++t) {
    const double d = t == 0 ? 3 : t == 5 ? 2 : 0;
    const row_truth& row = t == 0 ? of_last : second;
    const offset_t label = t == 0 ? 1 : 0;
    for (offset_t v = 0; v < columns; ++v) {
      const double wanted =
          d * ((v == label ? 1 : 0) - row.probabilities[static_cast<std::size_t>(v)]);
      BOOST_TEST(std::abs(gradient[static_cast<std::size_t>(t * columns + v)] - wanted) < 1e-13);
    }
  }
}

BOOST_AUTO_TEST_CASE(outputs_in_the_batch_are_checked_together) {
  const std::vector<int> lengths{3, 2};
  const std::vector<int> ids{1, 2, 0, 2, 1, 0};
  const batch_view<const int> table(ids.data(), 2, 3);
  const auto layout = make_layout(lengths);
  std::vector<double> logits(15, 1);
  const matrix_view<double> rows(logits.data(), 5, 3);
  self_communicator one;
  std::vector<double> out(4, 77);
  std::vector<double> entropy(4, 77);
  const auto refuse = [&](const batch_view<double>& to, const batch_view<double>& entropies,
                          const char* entry, const char* value, const char* limit) {
    BOOST_CHECK_EXCEPTION(next_token_logprobs(host, layout, one, one, table, rows, column_range(3),
                                              to, {}, entropies),
                          invalid_input, refused(entry, value, limit));
    for (const double x : out) BOOST_TEST(x == 77);
    for (const double x : logits) BOOST_TEST(x == 1);
  };
  const batch_view<double> fits(out.data(), 2, 2);
  refuse(fits, {entropy.data(), 2, 1}, "entropy width", "1", "at least 2");
  refuse({out.data(), 2, 1}, {}, "log-probabilities width", "1", "at least 2");
  refuse(fits, fits, "entropy", "in the memory of log-probabilities", "must not alias");
  refuse({logits.data(), 2, 2}, {}, "log-probabilities", "in the memory of logits",
         "must not alias");
  refuse(fits, {nullptr, 2, 2}, "entropy", "null", "4 elements");
}
