// What losses and counts ask of the runtime, when their results are read, and in a capture.
#include <boost/test/unit_test.hpp>
#include <cstdint>

#include "seqpack/comm/self.hpp"
#include "seqpack/layout/device_layout.cuh"
#include "seqpack/loss/count_valid.hpp"
#include "seqpack/loss/evaluate.hpp"
#include "seqpack/loss/nll.hpp"
#include "support/audit.cuh"

BOOST_AUTO_TEST_SUITE(audit_step_loss)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr auto value_name = "`evaluate_loss`, value and metrics";
constexpr auto gradient_name = "`evaluate_loss` with the gradient";
constexpr auto first_read = "`loss_result::value` or `metrics`, the first time";
constexpr auto later_read = "`loss_result::value` or `metrics`, later";
constexpr auto counting_name = "`count_valid`";
constexpr offset_t vocabulary = 11;
constexpr int width = 6;

/// Ids and masks in device memory.
struct text {
  std::vector<int> lengths;
  const device_array<std::int64_t>* ids;
  const device_array<std::uint8_t>* masks;

  auto fields() const {
    const auto batch = static_cast<offset_t>(lengths.size());
    return field_list(
        token_field(input_ids, batch_view<const std::int64_t>(ids->data(), batch, width)),
        token_field(token_mask, batch_view<const std::uint8_t>(masks->data(), batch, width)));
  }
};

auto make_host_layout(const std::vector<int>& lengths) {
  return make_layout(lengths, padding{each_multiple_of<>{8}}, context_parallel<>{1});
}

struct loss_case {
  std::vector<int> lengths;
  decltype(make_host_layout(std::vector<int>())) layout;
  device_array<std::int64_t> ids;
  device_array<std::uint8_t> masks;
  device_array<float> logits;
  device_array<float> gradient;

  explicit loss_case(int batch)
      : lengths(audit_lengths(batch, width)),
        layout(make_host_layout(lengths)),
        ids(static_cast<std::size_t>(batch * width)),
        masks(ids.size()),
        logits(static_cast<std::size_t>(layout.total_tokens() * vocabulary)),
        gradient(logits.size()) {
    set(0);
  }
  void set(int round) {
    set_values(ids, round, vocabulary);
    set_values(masks, round, 2);
    set_values(logits, round, 7);
  }
  text batch() const { return {lengths, &ids, &masks}; }
  matrix_view<float> rows(const device_array<float>& array) const {
    return {array.data(), layout.total_tokens(), vocabulary};
  }
  auto evaluate(const test_stream& stream, loss_pass pass, const matrix_view<float>& to) const {
    self_communicator cp, tp;
    return evaluate_loss(stream.executor(), layout, cp, tp, batch(), nll{}, rows(logits),
                         column_range(vocabulary),
                         {.counts = {.tokens = 7, .sequences = 3}, .pass = pass}, to);
  }
  auto value(const test_stream& stream) const { return evaluate(stream, loss_pass::fused, {}); }
  auto with_gradient(const test_stream& stream) const {
    return evaluate(stream, loss_pass::fused, rows(gradient));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_waits_until_a_result_is_read) {
  for (const int batch : audited_batches) {
    const test_stream stream;
    const loss_case c(batch);
    const auto result = audited_call(value_name, stream, [&] { return c.value(stream); });
    const auto other = audited_call(gradient_name, stream, [&] { return c.with_gradient(stream); });
    const double found = audited_call(first_read, stream, [&] { return result.value(); });
    const double again = audited_call(later_read, stream, [&] { return result.value(); });
    audited_call(later_read, stream, [&] { result.metrics(); });
    BOOST_TEST(found == again);
    BOOST_TEST(found == other.value());
    BOOST_TEST((batch == 1 || found > 0));
  }
}

BOOST_AUTO_TEST_CASE(one_sequence_after_the_other_waits_for_nothing_either) {
  const test_stream stream;
  const loss_case c(5);
  const runtime_audit audit;
  const auto result = c.evaluate(stream, loss_pass::per_sequence, c.rows(c.gradient));
  BOOST_TEST(audit.found().waits() == 0, audit.found().text());
  BOOST_TEST(audit.found().all_in(stream));
  BOOST_TEST(audit.found().count(copy_kind::to_device_pageable) == 0);
  BOOST_TEST(audit.found().count(runtime_call::launch) > 0);
}

BOOST_AUTO_TEST_CASE(counts_are_read_at_once) {
  for (const int batch : audited_batches) {
    const test_stream stream;
    const loss_case c(batch);
    const auto counts = audited_call(counting_name, stream, [&] {
      return count_valid(stream.executor(), c.batch(), &text::lengths);
    });
    double expected = 0;
    const auto masks = c.masks.values();
    for (int b = 0; b < batch; ++b) {
      for (int s = 1; s < c.lengths[static_cast<std::size_t>(b)]; ++s) {
        expected += masks[static_cast<std::size_t>(b * width + s)];
      }
    }
    BOOST_TEST(counts.tokens == expected);
  }
}

BOOST_AUTO_TEST_CASE(captured_and_replayed) {
  const test_stream stream;
  loss_case c(9);
  check_replay(
      gradient_name, stream, [&] { c.with_gradient(stream); }, [&](int round) { c.set(round); },
      c.gradient);
  check_captured(value_name, stream, [&] { c.value(stream); });

  loss_case some(9);
  const std::vector<offset_t> order{7, 0, 3};
  some.layout = make_layout(some.lengths, padding{each_multiple_of<>{8}}, context_parallel<>{1},
                            {.order = order});
  check_replay(
      gradient_name, stream, [&] { some.with_gradient(stream); },
      [&](int round) { some.set(round); }, some.gradient);
  const auto result = c.value(stream);
  const double found = result.value();
  check_captured(later_read, stream, [&] { BOOST_TEST(result.value() == found); });
}

BOOST_AUTO_TEST_CASE(what_is_read_is_refused_in_a_capture) {
  const test_stream stream;
  const loss_case c(5);
  const auto result = c.value(stream);
  const double expected = c.value(stream).value();
  check_refused(first_read, stream, [&] { result.value(); });
  BOOST_TEST(expected > 0);
  BOOST_TEST(result.value() == expected);  // it has not taken anything else for its value
  check_refused(counting_name, stream,
                [&] { count_valid(stream.executor(), c.batch(), &text::lengths); });
}

BOOST_AUTO_TEST_CASE(every_call_was_measured) {
  require_all_measured("cuda/audit_step/loss.cu");
}

BOOST_AUTO_TEST_SUITE_END()
