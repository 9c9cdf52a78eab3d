// What collective calls ask of the runtime beside the collectives, and in a capture.
#include <boost/test/unit_test.hpp>
#include <cstdint>

#include "seqpack/comm/broadcast.hpp"
#include "seqpack/comm/nccl.hpp"
#include "seqpack/exec/cuda.cuh"
#include "seqpack/parallel/context_gather.hpp"
#include "support/audit_group.cuh"

BOOST_AUTO_TEST_SUITE(audit_groups)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_nccl_device);

namespace {

constexpr auto to_batch = "`all_gather_unpack` with a workspace";
constexpr auto to_batch_alone = "`all_gather_unpack`";
constexpr auto to_row = "`all_gather_rows` with a workspace";
constexpr auto from_batch = "`pack_reduce_scatter` with a workspace";
constexpr auto from_row = "`reduce_scatter_rows` with a workspace";
constexpr auto checked = "`all_gather_unpack` with a workspace and `check_all_ranks`";
constexpr auto sending = "`broadcast_tensor` into memory that every rank brings";
constexpr auto waiting_name = "`nccl_communicator::wait`";
constexpr offset_t payload = 3;
constexpr offset_t width = changing_layout::longest;

/// One rank's part of a batch whose lengths can change.
struct gather_case {
  nccl_communicator& group;
  changing_layout layout;
  device_array<float> mine;
  device_array<float> batch;
  device_array<float> row;
  device_array<float> workspace;

  gather_case(nccl_communicator& g, int sequences)
      : group(g),
        layout(sequences, g.size()),
        mine(layout.shard_rows(payload)),
        batch(layout.positions(payload)),
        row(layout.rows(payload)),
        workspace(layout.rows(payload)) {
    set(0);
  }
  /// Inputs of gathers.
  void set(int round) {
    layout.set(round);
    set_values(mine, round + static_cast<int>(group.rank().value));
  }
  /// Inputs of what goes back.
  void set_gradients(int round) {
    layout.set(round);
    set_values(batch, round + static_cast<int>(group.rank().value), 5);
    set_values(row, round + static_cast<int>(group.rank().value), 5);
  }
  cuda_stream<> where() const { return cuda_stream<>(group.stream()); }
  row_view<float> shard_rows() const { return {mine.data(), layout.shard_tokens(), payload}; }
  row_view<float> row_of_all() const { return {row.data(), layout.total(), payload}; }
  row_view<float> work() const { return {workspace.data(), layout.total(), payload}; }
  batch_view<float> table() const { return {batch.data(), layout.batch(), width, payload}; }

  template <class... More>
  void gather_batch(const More&... more) const {
    all_gather_unpack(where(), group, layout.view(), field(shard_rows(), table(), -1.0F), more...);
  }
  void gather_row() const {
    all_gather_rows(where(), group, layout.view(), field(shard_rows(), row_of_all()), work());
  }
  void reduce_batch() const {
    pack_reduce_scatter(where(), group, layout.view(), field(table(), shard_rows()), work());
  }
  void reduce_row() const {
    reduce_scatter_rows(where(), group, layout.view(), field(row_of_all(), shard_rows()), work());
  }
};

const context_gather_options check_all{.check_all_ranks = true};

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_waits) {
  for (const int n : audited_groups()) {
    run_group(n, [](nccl_communicator& group, findings& found) {
      for (const int batch : audited_batches) {
        const gather_case c(group, batch);
        const cudaStream_t s = group.stream();
        audited_call(to_batch, s, found, [&] { c.gather_batch(c.work()); });
        if (group.size() > 1) {
          audited_call(to_batch_alone, s, found, [&] { c.gather_batch(); });
        }
        audited_call(to_row, s, found, [&] { c.gather_row(); });
        audited_call(from_batch, s, found, [&] { c.reduce_batch(); });
        audited_call(from_row, s, found, [&] { c.reduce_row(); });
        audited_call(waiting_name, s, found, [&] { group.wait(); });
      }
    });
  }
}

BOOST_AUTO_TEST_CASE(what_all_ranks_check_waits_for_the_header) {
  for (const int n : audited_groups()) {
    if (n == 1) continue;
    run_group(n, [](nccl_communicator& group, findings& found) {
      const gather_case c(group, 64);
      c.gather_batch(c.work(), check_all);  // the group has its memory now
      audited_call(checked, group.stream(), found, [&] { c.gather_batch(c.work(), check_all); });
      const tensor_view tensor(c.row.data(), {c.layout.total(), payload});
      audited_call(sending, group.stream(), found,
                   [&] { broadcast_tensor(tensor, group_rank{0}, group); });
      group.wait();
    });
  }
}

BOOST_AUTO_TEST_CASE(captured_and_replayed_with_other_lengths) {
  for (const int n : audited_groups()) {
    run_group(n, [](nccl_communicator& group, findings& found) {
      gather_case c(group, 9);
      const auto change = [&](int round) { c.set(round); };
      const auto change_back = [&](int round) { c.set_gradients(round); };
      check_replay(to_batch, group, found, [&] { c.gather_batch(c.work()); }, change, c.batch);
      check_replay(to_batch_alone, group, found, [&] { c.gather_batch(); }, change, c.batch);
      check_replay(to_row, group, found, [&] { c.gather_row(); }, change, c.row);
      check_replay(from_batch, group, found, [&] { c.reduce_batch(); }, change_back, c.mine);
      check_replay(from_row, group, found, [&] { c.reduce_row(); }, change_back, c.mine);
    });
  }
}

BOOST_AUTO_TEST_CASE(what_waits_is_refused_in_a_capture) {
  for (const int n : audited_groups()) {
    if (n == 1) continue;
    run_group(n, [](nccl_communicator& group, findings& found) {
      const gather_case c(group, 9);
      c.gather_batch(c.work(), check_all);
      check_refused(checked, group, found, [&] { c.gather_batch(c.work(), check_all); });
      const tensor_view tensor(c.row.data(), {c.layout.total(), payload});
      check_refused(sending, group, found, [&] { broadcast_tensor(tensor, group_rank{0}, group); });
      check_refused(waiting_name, group, found, [&] { group.wait(); });
      c.gather_batch(c.work(), check_all);  // the group is as it was
      group.wait();
    });
  }
}

BOOST_AUTO_TEST_CASE(every_call_was_measured) {
  require_all_measured_by_ranks("nccl/audit/groups.cu");
}

BOOST_AUTO_TEST_SUITE_END()
