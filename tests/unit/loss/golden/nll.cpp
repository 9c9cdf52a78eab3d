// Log-likelihoods, log-probabilities and gradients against those of a reference system.
#define BOOST_TEST_MODULE golden_nll
#include <boost/test/unit_test.hpp>

#include "seqpack/logprob/next_token_logprobs.hpp"
#include "support/golden_suite.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

const auto with_loss = [](const auto& c, const auto& f) { with_nll(c, f); };

/// The logits of packed rows; those of padding are NaN.
template <class T>
std::vector<T> packed_logits(const golden::loss_case& c, const auto& view) {
  std::vector<T> rows;
  for (offset_t t = 0; t < view.total_tokens(); ++t) {
    const token_ref token = view.token_at(full_row, t);
    for (offset_t v = 0; v < c.vocab; ++v) {
      rows.push_back(token.real()
                         ? static_cast<T>(golden::loss_case::logit(token.slot, token.index, v))
                         : std::numeric_limits<T>::quiet_NaN());
    }
  }
  return rows;
}

template <class T>
void check_log_probs(const golden::loss_case& c) {
  self_communicator cp;
  self_communicator tp;
  const auto layout = make_layout(c.seq_lengths, padding{each_multiple_of<3>{}});
  std::vector<T> logits = packed_logits<T>(c, layout.view());
  std::vector<int> ids;
  for (const auto& row : c.input_ids) ids.insert(ids.end(), row.begin(), row.end());
  const auto batch = static_cast<offset_t>(c.seq_lengths.size());
  const offset_t width = c.width - 1;
  std::vector<T> out(static_cast<std::size_t>(batch * width), T{7});

  next_token_logprobs(host, layout, cp, tp, batch_view(ids.data(), batch, offset_t{c.width}),
                      matrix_view(logits.data(), layout.total_tokens(), offset_t{c.vocab}),
                      column_range(c.vocab), batch_view(out.data(), batch, width));

  for (std::size_t b = 0; b < c.next_token_logprobs.size(); ++b) {
    const auto& expected = c.next_token_logprobs[b];
    for (std::size_t s = 0; s < static_cast<std::size_t>(width); ++s) {
      const double found = static_cast<double>(out[b * static_cast<std::size_t>(width) + s]);
      if (s >= expected.size()) {
        BOOST_TEST(found == 0);
      } else {
        // Six decimals of what was computed in float, from logits up to 3.
        BOOST_TEST(is_near(found, expected[s], 1e-6, 1e-6), found << " for " << expected[s]);
      }
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(in_double) {
  check_golden_losses<double>("nll", 5, with_loss);
}
BOOST_AUTO_TEST_CASE(in_float) {
  check_golden_losses<float>("nll", 5, with_loss);
}
BOOST_AUTO_TEST_CASE(log_probabilities) {
  const auto cases = golden::read_loss_cases("loss.json");
  BOOST_TEST_REQUIRE(cases.size() == 5);
  for (const auto& c : cases) {
    check_log_probs<double>(c);
    check_log_probs<float>(c);
  }
}
