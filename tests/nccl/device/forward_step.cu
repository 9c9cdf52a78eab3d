// The forward step on a grid of devices: context-parallel groups in one direction, tensor-parallel
// ones in the other, beside one rank on the host.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "support/losses_suite.cuh"
#include "support/nccl.hpp"

BOOST_AUTO_TEST_SUITE(device_forward_step)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_nccl_device);

namespace {

/// Even and odd ranks have columns of their own, where there are two tensor-parallel ranks.
column_range columns_of(offset_t tp_rank, offset_t tp_size) {
  if (tp_size == 1) return column_range(8);
  return tp_rank == 0 ? column_range(0, 3, 8) : column_range(3, 8, 8);
}

void check_step(nccl_communicator& all, offset_t tp_size, loss_pass pass, findings& found) {
  const std::string what = "tp " + std::to_string(tp_size) + ": ";
  const offset_t me = all.rank().value;
  nccl_communicator tp = all.split(me / tp_size, me);
  nccl_communicator cp = all.split(me % tp_size, me);
  forward_options options = usual_options;
  options.pass = pass;
  no_timer timer;
  const policy_text text = make_policy_text();
  const std::vector<policy_text> on_host{text};
  auto host_next = on_host.begin();
  table_model<> host_model;
  auto expected = forward_step(
      host, timer, host_next, host_model, nll{},
      forward_setup(packed(padding{each_multiple_of<24>{}}), &policy_text::lengths), options);
  const double wanted = expected.loss(expected.output.rows).value();

  const cuda_stream<> where(all.stream());
  const std::vector<device_text> on_device{device_text(text)};
  auto next = on_device.begin();
  device_table_model<> model{where, columns_of(tp.rank().value, tp_size)};
  const forward_setup setup(packed(padding{each_multiple_of<24>{}}, context_parallel{cp.size()}),
                            &device_text::lengths, cp, tp);
  auto step = forward_step(where, timer, next, model, nll{}, setup, options);
  const auto result = step.loss(step.output.rows);
  found.check(near(result.value() * static_cast<double>(cp.size()), wanted), what + "loss");

  const std::vector<double> gradient = read_rows(step.output.rows);
  const auto layout = step.loss.layout().view();
  const offset_t width = model.columns.size();
  for (offset_t row = 0; row < layout.shard_tokens(); ++row) {
    const token_ref token = layout.token_at(shard{cp.rank().value}, row);
    const offset_t whole = layout.row_of(full_row, token.slot, token.index);
    for (offset_t v = 0; v < width; ++v) {
      found.check(near(gradient[static_cast<std::size_t>(row * width + v)],
                       expected.output.rows.at(whole)[model.columns.first + v]),
                  what + "gradient");
    }
  }
  // A mistake on the last rank is an error on all, and the groups go on.
  forward_options wrong = options;
  if (me == all.size() - 1) wrong.temperature = -1;
  auto again = on_device.begin();
  if (all.size() > 1) {
    found.throws<collective_mismatch>(
        [&] { forward_step(where, timer, again, model, nll{}, setup, wrong); },
        "temperature on rank", what + "temperature", true);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(grids_of_devices) {
  for (const int n : group_sizes()) {
    run_group(n, [](nccl_communicator& all, findings& found) {
      check_step(all, 1, loss_pass::fused, found);
      if (all.size() % 2 == 0) check_step(all, 2, loss_pass::fused, found);
    });
  }
}

BOOST_AUTO_TEST_CASE(one_sequence_after_the_other) {
  const int n = most_ranks() - most_ranks() % 2;
  if (n == 0) return;
  run_group(n, [](nccl_communicator& all, findings& found) {
    check_step(all, 2, loss_pass::per_sequence, found);
  });
}

BOOST_AUTO_TEST_SUITE_END()
