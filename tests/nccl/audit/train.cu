// What log-probabilities and losses over several ranks ask of the runtime beside the collectives,
// and in a capture.
#include <boost/test/unit_test.hpp>
#include <cstdint>

#include "seqpack/comm/nccl.hpp"
#include "seqpack/comm/self.hpp"
#include "seqpack/layout/device_layout.cuh"
#include "seqpack/logprob/next_token_logprobs.hpp"
#include "seqpack/loss/evaluate.hpp"
#include "seqpack/loss/nll.hpp"
#include "support/audit_group.cuh"

BOOST_AUTO_TEST_SUITE(audit_train)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_nccl_device);

namespace {

constexpr auto labels_name = "`label_log_probs` over several ranks";
constexpr auto next_tokens_name = "`next_token_logprobs` over several context-parallel ranks";
constexpr auto value_name =
    "`evaluate_loss` over several context-parallel ranks, value and metrics";
constexpr auto gradient_name =
    "`evaluate_loss` over several context-parallel ranks, with the gradient";
constexpr offset_t vocabulary = 12;
constexpr offset_t width = changing_layout::longest;

/// Ids in device memory.
struct text {
  std::vector<int> lengths;
  const device_array<std::int64_t>* ids;

  auto fields() const {
    return field_list(token_field(
        input_ids,
        batch_view<const std::int64_t>(ids->data(), static_cast<offset_t>(lengths.size()), width)));
  }
};

/// One context-parallel rank's rows of logits, and the batch that all of them have.
struct rank_case {
  nccl_communicator& group;
  changing_layout layout;
  device_array<std::int64_t> ids;
  device_array<float> logits;
  device_array<float> gradient;
  device_array<float> log_probs;

  rank_case(nccl_communicator& g, int batch)
      : group(g),
        layout(batch, g.size()),
        ids(layout.positions()),
        logits(layout.shard_rows(vocabulary)),
        gradient(logits.size()),
        log_probs(layout.positions()) {
    set_ids_and_logits(0);
  }
  void set(int round) {
    layout.set(round);
    set_ids_and_logits(round);
  }
  void set_ids_and_logits(int round) {
    set_values(ids, round, vocabulary);
    set_values(logits, round + static_cast<int>(group.rank().value), 7);
  }
  cuda_stream<> where() const { return cuda_stream<>(group.stream()); }
  matrix_view<float> rows(const device_array<float>& array) const {
    return {array.data(), layout.shard_tokens(), vocabulary};
  }
  void next_tokens() const {
    self_communicator tp;
    next_token_logprobs(where(), layout.view(), group, tp,
                        batch_view(ids.data(), layout.batch(), width), rows(logits),
                        column_range(vocabulary),
                        batch_view<float>(log_probs.data(), layout.batch(), width));
  }
  void evaluate(const matrix_view<float>& to) const {
    self_communicator tp;
    const auto batch = static_cast<int>(layout.batch());
    evaluate_loss(where(), layout.on_host(0), group, tp,
                  text{audit_lengths(batch, static_cast<int>(width)), &ids}, nll{}, rows(logits),
                  column_range(vocabulary), {.counts = {.tokens = 7, .sequences = 3}}, to);
  }
};

/// One tensor-parallel rank's columns.
struct column_case {
  nccl_communicator& group;
  offset_t rows;
  column_range columns;
  device_array<float> logits;
  device_array<std::int64_t> labels;
  device_array<float> numbers;

  column_case(nccl_communicator& g, offset_t n)
      : group(g),
        rows(n),
        columns(g.rank().value * vocabulary, (g.rank().value + 1) * vocabulary,
                g.size() * vocabulary),
        logits(static_cast<std::size_t>(n * vocabulary)),
        labels(static_cast<std::size_t>(n)),
        numbers(static_cast<std::size_t>(3 * n)) {
    set(0);
  }
  void set(int round) {
    set_values(logits, round + static_cast<int>(group.rank().value), 7);
    set_values(labels, round, static_cast<int>(vocabulary));
  }
  void run() const {
    const auto part = [&](offset_t k) { return row_view<float>(numbers.data() + k * rows, rows); };
    label_log_probs(cuda_stream<>(group.stream()), group,
                    matrix_view<float>(logits.data(), rows, vocabulary), columns,
                    row_view<const std::int64_t>(labels.data(), rows),
                    label_log_prob_rows<float>{part(0), part(1), part(2)});
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_waits) {
  for (const int n : audited_groups()) {
    if (n == 1) continue;
    run_group(n, [](nccl_communicator& group, findings& found) {
      const cudaStream_t s = group.stream();
      for (const int batch : audited_batches) {
        const rank_case c(group, batch);
        audited_call(next_tokens_name, s, found, [&] { c.next_tokens(); });
        audited_call(value_name, s, found, [&] { c.evaluate({}); });
        audited_call(gradient_name, s, found, [&] { c.evaluate(c.rows(c.gradient)); });
        const column_case columns(group, batch);
        audited_call(labels_name, s, found, [&] { columns.run(); });
        group.wait();
      }
    });
  }
}

BOOST_AUTO_TEST_CASE(captured_and_replayed) {
  for (const int n : audited_groups()) {
    run_group(n, [](nccl_communicator& group, findings& found) {
      rank_case c(group, 9);
      check_replay(
          next_tokens_name, group, found, [&] { c.next_tokens(); },
          [&](int round) { c.set(round); }, c.log_probs);
      check_replay(
          gradient_name, group, found, [&] { c.evaluate(c.rows(c.gradient)); },
          [&](int round) { c.set_ids_and_logits(round); }, c.gradient);
      check_captured(value_name, group, found, [&] { c.evaluate({}); });
      column_case columns(group, 40);
      check_replay(
          labels_name, group, found, [&] { columns.run(); }, [&](int round) { columns.set(round); },
          columns.numbers);
    });
  }
}

BOOST_AUTO_TEST_CASE(every_call_was_measured) {
  require_all_measured_by_ranks("nccl/audit/train.cu");
}

BOOST_AUTO_TEST_SUITE_END()
