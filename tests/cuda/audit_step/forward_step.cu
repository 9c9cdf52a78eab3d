// What a forward step and its loss ask of the runtime beside the model, and in a capture.
#include <boost/test/unit_test.hpp>
#include <cstdint>

#include "seqpack/layout/device_layout.cuh"
#include "seqpack/loss/nll.hpp"
#include "seqpack/step/cuda_event_timer.hpp"
#include "seqpack/step/forward_step.hpp"
#include "support/audit.cuh"

BOOST_AUTO_TEST_SUITE(audit_step_forward_step)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr auto packed_name = "`forward_step`, packed, beside the model";
constexpr auto not_packed_name = "`forward_step`, not packed, beside the model";
constexpr auto value_name = "the loss of a step, value and metrics";
constexpr auto gradient_name = "the loss of a step with the gradient";
constexpr offset_t vocabulary = 11;
constexpr int width = 6;

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

/// A model that puts nothing into the stream: its logits are there.
template <attention_input Attention>
struct given_logits {
  static constexpr auto attention = Attention;
  static constexpr auto output = output_kind::logits;
  float* logits;

  template <class Input>
  model_output<float> operator()(const Input& input) const {
    return {matrix_view<float>(logits, input.ids.rows, vocabulary), column_range(vocabulary)};
  }
};

struct step_case {
  device_array<std::int64_t> ids;
  device_array<float> logits;
  device_array<float> gradient;
  std::vector<text> batches;

  explicit step_case(int batch)
      : ids(static_cast<std::size_t>(batch * width)),
        logits(static_cast<std::size_t>(batch * 8 * vocabulary)),
        gradient(logits.size()),
        batches{{audit_lengths(batch, width), &ids}} {
    set(0);
  }
  void set(int round) {
    set_values(ids, round, vocabulary);
    set_values(logits, round, 7);
  }
  template <class Packing>
  auto run(const test_stream& stream, const Packing& packing) const {
    given_logits<Packing::attention> model{logits.data()};
    auto next = batches.begin();
    no_timer timer;
    return forward_step(stream.executor(), timer, next, model, nll{},
                        forward_setup(packing, &text::lengths),
                        {.global_valid_toks = 7, .temperature = 1.5});
  }
};

packed<decltype(padding{each_multiple_of<8>{}}), no_context_parallel> in_eights() {
  return packed(padding{each_multiple_of<8>{}});
}

template <class Step>
matrix_view<float> gradient_rows(const step_case& c, const Step& step) {
  return {c.gradient.data(), step.output.rows.rows, vocabulary};
}

template <class Packing>
void check_calls(const char* name, const Packing& packing) {
  for (const int batch : audited_batches) {
    const test_stream stream;
    const step_case c(batch);
    auto step = audited_call(name, stream, [&] { return c.run(stream, packing); });
    const auto value = audited_call(value_name, stream, [&] { return step.loss(); });
    const auto result =
        audited_call(gradient_name, stream, [&] { return step.loss(gradient_rows(c, step)); });
    BOOST_TEST(value.value() == result.value());
    BOOST_TEST(value.value() > 0);
  }
}

template <class Packing>
void check_graph(const char* name, const Packing& packing) {
  const test_stream stream;
  step_case c(9);
  const int loss_launches = cost_of(gradient_name).launches;
  check_replay(
      {name, loss_launches}, stream,
      [&] {
        auto step = c.run(stream, packing);
        step.loss(gradient_rows(c, step));
      },
      [&](int round) { c.set(round); }, c.gradient);
  auto step = c.run(stream, packing);
  check_captured(value_name, stream, [&] { step.loss(); });
  check_captured(gradient_name, stream, [&] { step.loss(gradient_rows(c, step)); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(packed_steps) {
  check_calls(packed_name, in_eights());
}
BOOST_AUTO_TEST_CASE(steps_that_are_not_packed) {
  check_calls(not_packed_name, not_packed());
}
BOOST_AUTO_TEST_CASE(packed_steps_are_captured) {
  check_graph(packed_name, in_eights());
}
BOOST_AUTO_TEST_CASE(steps_that_are_not_packed_are_captured) {
  check_graph(not_packed_name, not_packed());
}

// Two events for each phase, in the stream; the times wait for them.
BOOST_AUTO_TEST_CASE(a_timer_of_events) {
  const test_stream stream;
  const step_case c(5);
  cuda_event_timer timer(stream);
  given_logits<attention_input::packed_parameters> model{c.logits.data()};
  auto next = c.batches.begin();
  {
    const runtime_audit audit;
    forward_step(stream.executor(), timer, next, model, nll{},
                 forward_setup(in_eights(), &text::lengths), {.global_valid_toks = 7});
    BOOST_TEST(audit.found().count(runtime_call::record_event) == 4);
    BOOST_TEST(audit.found().waits() == 0, audit.found().text());
    BOOST_TEST(audit.found().all_in(stream));
  }
  const runtime_audit audit;
  timer.total(step_phase::forward);
  BOOST_TEST(audit.found().all.size() == 1U, audit.found().text());
  BOOST_TEST(audit.found().waits() == 1);
}

BOOST_AUTO_TEST_CASE(every_call_was_measured) {
  require_all_measured("cuda/audit_step/forward_step.cu");
}

BOOST_AUTO_TEST_SUITE_END()
