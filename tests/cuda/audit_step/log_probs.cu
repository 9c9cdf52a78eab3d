// What log-probabilities ask of the runtime, forward and backward, and in a capture.
#include <boost/test/unit_test.hpp>
#include <cstdint>

#include "seqpack/comm/self.hpp"
#include "seqpack/exec/cuda.cuh"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/logprob/next_token_logprobs.hpp"
#include "seqpack/logprob/temperature.hpp"
#include "support/audit.cuh"

BOOST_AUTO_TEST_SUITE(audit_step_log_probs)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr auto forward = "`label_log_probs`";
constexpr auto backward = "`label_log_probs_backward`";
constexpr auto scaling = "`scale_logits`";
constexpr auto next_tokens_name = "`next_token_logprobs`";
constexpr auto with_entropy = "`next_token_logprobs` with the entropy";
constexpr auto next_tokens_back = "`next_token_logprobs_backward`";
constexpr offset_t vocabulary = 19;

struct log_prob_case {
  offset_t rows;
  device_array<float> logits;
  device_array<std::int64_t> labels;
  device_array<float> derivatives;
  device_array<float> gradient;
  device_array<float> numbers;
  label_log_prob_rows<float> out;

  explicit log_prob_case(offset_t n, bool entropy)
      : rows(n),
        logits(static_cast<std::size_t>(n * vocabulary)),
        labels(static_cast<std::size_t>(n)),
        derivatives(static_cast<std::size_t>(n)),
        gradient(logits.size()),
        numbers(static_cast<std::size_t>(4 * n)) {
    const auto part = [&](offset_t k) { return row_view<float>(numbers.data() + k * n, n); };
    out = {part(0), part(1), part(2)};
    if (entropy) out.entropy = part(3);
    set(0);
  }
  void set(int round) {
    set_values(logits, round, 7);
    set_values(derivatives, round, 3);
    std::vector<std::int64_t> values;
    for (offset_t t = 0; t < rows; ++t) {
      values.push_back((t + round) % 5 == 4 ? ignored_label : (t * 3 + round) % vocabulary);
    }
    labels.upload(values);
  }
  matrix_view<float> logit_rows() const { return {logits.data(), rows, vocabulary}; }
  row_view<const std::int64_t> label_rows() const { return {labels.data(), rows}; }
  void run_forward(const test_stream& stream) const {
    self_communicator tp;
    label_log_probs(stream.executor(), tp, logit_rows(), column_range(vocabulary), label_rows(),
                    out, {.temperature = 1.5});
  }
  void run_backward(const test_stream& stream) const {
    label_log_probs_backward(stream.executor(), logit_rows(), column_range(vocabulary),
                             label_rows(), out, row_view<const float>(derivatives.data(), rows),
                             matrix_view<float>(gradient.data(), rows, vocabulary),
                             {.temperature = 1.5});
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(labels_forward_and_backward) {
  for (const offset_t rows : {1, 64, 1000}) {
    for (const bool entropy : {false, true}) {
      const test_stream stream;
      const log_prob_case c(rows, entropy);
      audited_call(forward, stream, [&] { c.run_forward(stream); });
      audited_call(backward, stream, [&] { c.run_backward(stream); });
      audited_call(scaling, stream, [&] { scale_logits(stream.executor(), c.logit_rows(), 2.0); });
      stream.wait();
    }
  }
}

BOOST_AUTO_TEST_CASE(labels_captured_and_replayed) {
  const test_stream stream;
  log_prob_case c(40, true);
  const auto change = [&](int round) { c.set(round); };
  check_replay(forward, stream, [&] { c.run_forward(stream); }, change, c.numbers);
  const auto change_and_forward = [&](int round) {
    c.set(round);
    c.run_forward(stream);
  };
  check_replay(backward, stream, [&] { c.run_backward(stream); }, change_and_forward, c.gradient);
  const auto scale = [&] { scale_logits(stream.executor(), c.logit_rows(), 2.0); };
  check_captured(scaling, stream, scale);
  const captured_call graph(stream, scale);
  c.set(5);
  graph.replay(stream);
  stream.wait();
  std::vector<float> halves = audit_values<float>(c.logits.size(), 5, 7);
  for (float& x : halves) x /= 2;
  BOOST_TEST(c.logits.values() == halves, boost::test_tools::per_element());
}

namespace {

/// Next tokens of a batch that one rank holds.
struct next_token_case {
  static constexpr offset_t width = changing_layout::longest;
  changing_layout layout;
  device_array<int> ids;
  device_array<float> logits;
  device_array<float> gradient;
  device_array<float> log_probs;
  device_array<float> entropy;
  device_array<float> derivatives;

  explicit next_token_case(int batch)
      : layout(batch, 1),
        ids(layout.positions()),
        logits(layout.rows(vocabulary)),
        gradient(logits.size()),
        log_probs(layout.positions()),
        entropy(layout.positions()),
        derivatives(layout.positions()) {
    set(0);
  }
  void set(int round) {
    layout.set(round);
    set_values(ids, round, vocabulary);
    set_values(logits, round, 7);
    set_values(derivatives, round, 3);
  }
  matrix_view<float> rows() const { return {logits.data(), layout.total(), vocabulary}; }
  batch_view<float> table(const device_array<float>& array) const {
    return {array.data(), layout.batch(), width};
  }
  log_prob_state<float> run(const test_stream& stream, bool also_entropy) const {
    self_communicator cp, tp;
    return next_token_logprobs(stream.executor(), layout.view(), cp, tp,
                               batch_view(ids.data(), layout.batch(), width), rows(),
                               column_range(vocabulary), table(log_probs), {.temperature = 1.5},
                               also_entropy ? table(entropy) : batch_view<float>());
  }
  void back(const test_stream& stream, const log_prob_state<float>& state) const {
    next_token_logprobs_backward(
        stream.executor(), layout.view(), shard{0}, state, rows(), column_range(vocabulary),
        batch_view<const float>(derivatives.data(), layout.batch(), width),
        matrix_view<float>(gradient.data(), layout.total(), vocabulary), {.temperature = 1.5});
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(next_tokens_forward_and_backward) {
  for (const int batch : audited_batches) {
    const test_stream stream;
    const next_token_case c(batch);
    const auto state = audited_call(next_tokens_name, stream, [&] { return c.run(stream, false); });
    const auto other = audited_call(with_entropy, stream, [&] { return c.run(stream, true); });
    audited_call(next_tokens_back, stream, [&] { c.back(stream, state); });
    stream.wait();
  }
}

BOOST_AUTO_TEST_CASE(next_tokens_captured_and_replayed_with_other_lengths) {
  const test_stream stream;
  next_token_case c(9);
  const auto change = [&](int round) { c.set(round); };
  check_replay(next_tokens_name, stream, [&] { c.run(stream, false); }, change, c.log_probs);
  check_replay(with_entropy, stream, [&] { c.run(stream, true); }, change, c.log_probs, c.entropy);
  const auto state = c.run(stream, false);
  const auto change_derivatives = [&](int round) { set_values(c.derivatives, round, 3); };
  check_replay(
      next_tokens_back, stream, [&] { c.back(stream, state); }, change_derivatives, c.gradient);
}

// More than 2^31 logits: the launches alone, of memory that is not there.
BOOST_AUTO_TEST_CASE(large_logits) {
  const test_stream stream;
  const offset_t rows = 65'536;
  const offset_t columns = 131'072;
  const auto numbers = [&](int k) { return row_view<float>(untouched_memory<float>(k), rows); };
  const label_log_prob_rows<float> out{numbers(1), numbers(2), numbers(3)};
  const matrix_view<float> logits(untouched_memory<float>(4), rows, columns);
  const row_view<const std::int64_t> labels(untouched_memory<std::int64_t>(5), rows);
  const captured_call call(stream, [&] {
    self_communicator tp;
    audited_call(forward, stream, [&] {
      label_log_probs(stream.executor(), tp, logits, column_range(columns), labels, out);
    });
    audited_call(backward, stream, [&] {
      label_log_probs_backward(stream.executor(), logits, column_range(columns), labels, out,
                               row_view<const float>(numbers(6)), logits);
    });
  });
  BOOST_TEST(call.launches == cost_of(forward).launches + cost_of(backward).launches);
}

BOOST_AUTO_TEST_CASE(every_call_was_measured) {
  require_all_measured("cuda/audit_step/log_probs.cu");
}

BOOST_AUTO_TEST_SUITE_END()
