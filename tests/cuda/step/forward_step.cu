// The forward step on a stream, with the negative log-likelihood: packed and not, both passes, the
// counts and the timers.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "seqpack/step/cuda_event_timer.hpp"
#include "seqpack/step/nvtx_timer.hpp"
#include "support/losses_suite.cuh"

BOOST_AUTO_TEST_SUITE(step_forward_step)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

BOOST_AUTO_TEST_CASE(packed_steps) {
  const packed packing(padding{each_multiple_of<4>{}, total_multiple_of<16>{}, ghost_tail{}});
  const double fused = check_loss<attention_input::packed_parameters>(nll{}, packing);
  // To the last bit.
  BOOST_TEST(fused == check_loss<attention_input::packed_parameters>(nll{}, packing,
                                                                     loss_pass::per_sequence));
}

BOOST_AUTO_TEST_CASE(not_packed_with_documents) {
  const not_packed packing(document_options{.end_of_document = 5,
                                            .reset_position_ids = true,
                                            .reset_attention_mask = true,
                                            .mask_end_of_document = true});
  check_loss<attention_input::mask>(nll{}, packing);
}

BOOST_AUTO_TEST_CASE(micro_batches_of_a_plan) {
  const plain_plan plan{{{3, 5, 0}, {}, {4, 1, 2}}};
  const packed absorbed(padding{each_multiple_of<4>{}, fixed_total<24>{}});
  for (const auto pass : {loss_pass::fused, loss_pass::per_sequence}) {
    check_micro_batches(nll{}, absorbed, plan, pass);
  }
}

BOOST_AUTO_TEST_CASE(a_mask_is_that_of_the_host) {
  const document_options documents{
      .end_of_document = 5, .reset_position_ids = true, .reset_attention_mask = true};
  const policy_text text = make_policy_text();
  const std::vector<policy_text> on_host{text};
  auto host_next = on_host.begin();
  no_timer timer;
  table_model<attention_input::mask> host_model;
  const auto expected =
      forward_step(host, timer, host_next, host_model, nll{},
                   forward_setup(not_packed(documents), &policy_text::lengths), usual_options);
  const test_stream stream;
  const std::vector<device_text> on_device{device_text(text)};
  auto next = on_device.begin();
  device_table_model<attention_input::mask> model{stream.executor()};
  const auto step =
      forward_step(stream.executor(), timer, next, model, nll{},
                   forward_setup(not_packed(documents), &device_text::lengths), usual_options);
  stream.wait();
  const auto& mask = step.inputs.input().attention_mask;
  const auto& wanted = expected.inputs.input().attention_mask;
  BOOST_TEST(mask.rows == wanted.rows);
  const auto count = static_cast<std::size_t>(mask.rows * mask.payload);
  std::vector<char> found(count);
  check_cuda(cudaMemcpy(found.data(), mask.data, count, cudaMemcpyDeviceToHost));
  for (std::size_t k = 0; k < count; ++k) BOOST_TEST((found[k] != 0) == wanted.data[k]);
  const auto positions = read_device(std::span(step.inputs.input().position_ids.data, 48));
  for (std::size_t k = 0; k < 48; ++k) {
    BOOST_TEST(positions[k] == expected.inputs.input().position_ids.data[k]);
  }
}

BOOST_AUTO_TEST_CASE(counts_of_masks_on_the_device) {
  const policy_text text = make_policy_text();
  const test_stream stream;
  const auto found = count_valid(stream.executor(), device_text(text), &device_text::lengths);
  BOOST_TEST((found == count_valid(host, text, &policy_text::lengths)));
  BOOST_TEST(found.tokens > 0);
}

BOOST_AUTO_TEST_CASE(events_measure_the_stream) {
  const test_stream stream;
  static_assert(step_timer<cuda_event_timer> && step_timer<nvtx_timer>);
  cuda_event_timer timer(stream);
  const std::vector<device_text> batches(2, device_text(make_policy_text()));
  auto next = batches.begin();
  device_table_model<> model{stream.executor()};
  const forward_setup setup(packed(padding{each_multiple_of<4>{}}), &device_text::lengths);
  for (int step = 0; step < 2; ++step) {
    forward_step(stream.executor(), timer, next, model, nll{}, setup, usual_options);
  }
  BOOST_TEST(timer.total(step_phase::forward).count() > 0);
  BOOST_TEST(timer.total(step_phase::batch_data).count() > 0);
  BOOST_TEST(timer.count(step_phase::forward) == 2);
  BOOST_TEST(timer.count(step_phase::batch_data) == 2);
  timer.reset();
  BOOST_TEST(timer.total(step_phase::forward).count() == 0);
  BOOST_TEST(timer.count(step_phase::forward) == 0);
}

BOOST_AUTO_TEST_CASE(ranges_for_a_profiler) {
  nvtx_timer timer;
  { const timed_phase phase(timer, step_phase::forward); }
  const std::vector<device_text> batches{device_text(make_policy_text())};
  auto next = batches.begin();
  const test_stream stream;
  device_table_model<> model{stream.executor()};
  const auto step = forward_step(
      stream.executor(), timer, next, model, nll{},
      forward_setup(packed(padding{each_multiple_of<4>{}}), &device_text::lengths), usual_options);
  BOOST_TEST(step.loss().value() > 0);
}

BOOST_AUTO_TEST_SUITE_END()
