// What pack asks of the runtime, for one tensor and several, and in a capture.
#include <boost/test/unit_test.hpp>
#include <cstdint>

#include "seqpack/move/pack.hpp"
#include "support/audit.cuh"

BOOST_AUTO_TEST_SUITE(audit_pack)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr offset_t width = changing_layout::longest;

struct column_number {
  SEQPACK_HD offset_t operator()(offset_t column) const { return column; }
};

/// Tensors of three types and widths, and room for them in any place.
struct tensors {
  changing_layout layout;
  device_array<std::int64_t> ids;
  device_array<float> hidden;
  device_array<std::int16_t> routes;
  device_array<std::int64_t> packed_ids;
  device_array<float> packed_hidden;
  device_array<std::int16_t> packed_routes;

  tensors(int batch, offset_t cp)
      : layout(batch, cp),
        ids(layout.positions()),
        hidden(layout.positions(5)),
        routes(layout.positions(3)),
        packed_ids(layout.rows()),
        packed_hidden(layout.rows(5)),
        packed_routes(layout.rows(3)) {
    set(0);
  }
  void set(int round) {
    layout.set(round);
    set_values(ids, round);
    set_values(hidden, round);
    set_values(routes, round);
  }

  template <class Place>
  void pack_one(const test_stream& stream, Place at) const {
    const auto& view = layout.view();
    pack(stream.executor(), view, at,
         field(batch_view(ids.data(), layout.batch(), width),
               row_view(packed_ids.data(), view.rows(at))));
  }
  template <class Place>
  void pack_three(const test_stream& stream, Place at) const {
    const auto& view = layout.view();
    const offset_t rows = view.rows(at);
    pack(
        stream.executor(), view, at,
        field(batch_view(ids.data(), layout.batch(), width), row_view(packed_ids.data(), rows), -1),
        field(batch_view(hidden.data(), layout.batch(), width, 5),
              row_view(packed_hidden.data(), rows, 5), 0.5F),
        field(batch_view(routes.data(), layout.batch(), width, 3),
              row_view(packed_routes.data(), rows, 3), column_number{}));
  }
};

template <class Call>
void check_everywhere(const Call& call) {
  for (const int batch : audited_batches) {
    for (const offset_t cp : audited_ranks) {
      const test_stream stream;
      tensors t(batch, cp);
      call(stream, t, full_row);
      call(stream, t, all_shards);
      call(stream, t, shard{cp - 1});
      stream.wait();
    }
  }
}

constexpr auto one = "`pack`, 1 tensor";
constexpr auto three = "`pack`, 3 tensors of different types, widths and fills";
constexpr auto tables = "`pack` from a ragged or left-padded batch";

}  // namespace

BOOST_AUTO_TEST_CASE(one_tensor) {
  check_everywhere([](const test_stream& stream, const tensors& t, auto at) {
    audited_call(one, stream, [&] { t.pack_one(stream, at); });
  });
}

BOOST_AUTO_TEST_CASE(three_tensors) {
  check_everywhere([](const test_stream& stream, const tensors& t, auto at) {
    audited_call(three, stream, [&] { t.pack_three(stream, at); });
  });
}

BOOST_AUTO_TEST_CASE(captured_and_replayed_with_other_lengths) {
  for (const int batch : {5, 64}) {
    const test_stream stream;
    tensors t(batch, 2);
    const auto change = [&](int round) { t.set(round); };
    check_replay(one, stream, [&] { t.pack_one(stream, full_row); }, change, t.packed_ids);
    check_replay(
        three, stream, [&] { t.pack_three(stream, all_shards); }, change, t.packed_ids,
        t.packed_hidden, t.packed_routes);
  }
}

BOOST_AUTO_TEST_CASE(from_ragged_and_left_padded_batches) {
  for (const int batch : audited_batches) {
    const test_stream stream;
    changing_layout layout(batch, 2);
    device_array<int> values(layout.positions());
    device_array<std::int32_t> bounds(static_cast<std::size_t>(batch) + 1);
    device_array<int> starts(static_cast<std::size_t>(batch));
    const device_array<int> from_ragged(layout.rows());
    const device_array<int> from_left_padded(layout.rows());
    const auto change = [&](int round) {
      layout.set(round);
      set_values(values, round);
      const auto on_host = layout.on_host(round);
      const auto cu = on_host.cu_seqlens();
      bounds.upload({cu.begin(), cu.end()});
      std::vector<int> leads;
      for (const int length : audit_lengths(batch, static_cast<int>(width), round)) {
        leads.push_back(static_cast<int>(width) - length);
      }
      starts.upload(leads);
    };
    change(0);
    const auto& view = layout.view();
    const auto ragged = [&] {
      pack(stream.executor(), view, all_shards,
           field(ragged_view(row_view(values.data(), batch * width), bounds.data(), batch),
                 row_view(from_ragged.data(), layout.total())));
    };
    const auto left_padded = [&] {
      pack(stream.executor(), view, full_row,
           field(left_padded_view(batch_view(values.data(), batch, width), starts.data()),
                 row_view(from_left_padded.data(), layout.total())));
    };
    audited_call(tables, stream, ragged);
    audited_call(tables, stream, left_padded);
    if (batch == 64) {
      check_replay(tables, stream, ragged, change, from_ragged);
      check_replay(tables, stream, left_padded, change, from_left_padded);
    }
  }
}

// Whether a call waits is a Thrust policy's own choice.
BOOST_AUTO_TEST_CASE(policies_of_thrust) {
  const test_stream stream;
  const tensors t(64, 2);
  const auto waits_of = [&](const auto& policy) {
    const runtime_audit audit;
    pack(policy, t.layout.view(), full_row,
         field(batch_view(t.ids.data(), t.layout.batch(), width),
               row_view(t.packed_ids.data(), t.layout.total())));
    BOOST_TEST(audit.found().count(runtime_call::launch) == 1);
    BOOST_TEST(audit.found().all_in(stream));
    return audit.found().waits();
  };
  BOOST_TEST(waits_of(thrust::cuda::par_nosync.on(stream)) == 0);
  BOOST_TEST(waits_of(thrust::cuda::par.on(stream)) == 1);
}

// More than 2^31 elements and tokens: the launch alone, of memory that is not there.
BOOST_AUTO_TEST_CASE(large_tensors) {
  const test_stream stream;
  const offset_t batch = 3;
  const offset_t tokens = offset_t{1} << 33;
  const layout_view<no_context_parallel, std::int64_t> view{
      .cu = untouched_memory<std::int64_t>(0),
      .cu_padded = untouched_memory<std::int64_t>(1),
      .sequences = batch,
      .segments = batch,
      .batch = batch,
      .total = tokens,
      .longest = tokens / 2,
      .longest_padded = tokens / 2};
  const captured_call call(stream, [&] {
    audited_call(one, stream, [&] {
      pack(stream.executor(), view, full_row,
           field(batch_view(untouched_memory<float>(2), batch, tokens / 2, 3),
                 row_view(untouched_memory<float>(3), tokens, 3)));
    });
  });
  BOOST_TEST(call.launches == 1);
  BOOST_TEST(call.others + call.memsets == 0);
}

BOOST_AUTO_TEST_CASE(every_call_was_measured) {
  require_all_measured("cuda/audit/pack.cu");
}

BOOST_AUTO_TEST_SUITE_END()
