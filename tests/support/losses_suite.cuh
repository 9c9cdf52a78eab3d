/// \file
/// A step with a loss on the device beside the same step on the host.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "support/train_batch.cuh"

namespace seqpack::testing {

inline constexpr forward_options usual_options{
    .global_valid_toks = 11, .global_valid_seqs = 5, .temperature = 1.5};

inline bool near(double found, double wanted) {
  return std::abs(found - wanted) <= 1e-12 * (1 + std::abs(wanted));
}

/// \param attention packed, or with a mask
/// \returns the loss on the device
template <attention_input Attention, class Loss, class Packing>
double check_loss(const Loss& loss, const Packing& packing, loss_pass pass = loss_pass::fused) {
  forward_options options = usual_options;
  options.pass = pass;
  no_timer timer;
  const policy_text text = make_policy_text();
  const std::vector<policy_text> on_host{text};
  auto host_next = on_host.begin();
  table_model<Attention> host_model;
  auto expected = forward_step(host, timer, host_next, host_model, loss,
                               forward_setup(packing, &policy_text::lengths), options);
  const auto expected_result = expected.loss(expected.output.rows);

  const test_stream stream;
  const auto where = stream.executor();
  const std::vector<device_text> on_device{device_text(text)};
  auto next = on_device.begin();
  device_table_model<Attention> model{where};
  auto step = forward_step(where, timer, next, model, loss,
                           forward_setup(packing, &device_text::lengths), options);
  BOOST_TEST(near(step.loss().value(), expected_result.value()));
  const auto result = step.loss(step.output.rows);
  BOOST_TEST(near(result.value(), expected_result.value()));
  BOOST_TEST(expected_result.value() != 0);

  std::vector<double> metrics;
  expected_result.metrics().for_each([&](auto, double value) { metrics.push_back(value); });
  std::size_t k = 0;
  result.metrics().for_each([&](auto, double value) { BOOST_TEST(near(value, metrics[k++])); });

  const std::vector<double> gradient = read_rows(step.output.rows);
  double size = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    BOOST_TEST(near(gradient[i], expected.output.rows.data[i]));
    size += std::abs(gradient[i]);
  }
  BOOST_TEST(size > 0);
  return result.value();
}

/// The losses and gradients of the micro-batches of a plan, on the device beside the host.
template <class Loss, class Packing>
void check_micro_batches(const Loss& loss, const Packing& packing, const plain_plan& plan,
                         loss_pass pass) {
  forward_options options = usual_options;
  options.pass = pass;
  const micro_batches on_host(make_policy_text(), plan);
  const test_stream stream;
  const auto where = stream.executor();
  const micro_batches on_device(device_text(make_policy_text()), plan);
  BOOST_TEST((count_valid(where, on_device.all(), &device_text::lengths) ==
              count_valid(host, on_host.all(), &policy_text::lengths)));
  auto host_next = on_host.begin();
  auto next = on_device.begin();
  const forward_setup host_setup(packing, &policy_text::lengths);
  const forward_setup setup(packing, &device_text::lengths);
  double sum = 0;
  while (next != on_device.end()) {
    table_model<> host_model;
    auto expected =
        forward_step(host, no_timer{}, host_next, host_model, loss, host_setup, options);
    const double value = expected.loss(expected.output.rows).value();
    device_table_model<> model{where};
    auto step = forward_step(where, no_timer{}, next, model, loss, setup, options);
    BOOST_TEST(near(step.loss(step.output.rows).value(), value));
    const std::vector<double> gradient = read_rows(step.output.rows);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      BOOST_TEST(near(gradient[i], expected.output.rows.data[i]));
    }
    sum += value;
  }
  BOOST_TEST(sum > 0);
}

}  // namespace seqpack::testing
