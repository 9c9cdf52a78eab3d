// What pack asks of the runtime, for one tensor and several, and in a capture.
#include <boost/test/unit_test.hpp>
#include <cstdint>

#include "seqpack/move/pack.hpp"
#include "support/audited_moves.cuh"

BOOST_AUTO_TEST_SUITE(audit_pack)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

template <class Place>
void pack_one(const test_stream& stream, const audited_tensors& t, Place at) {
  pack(stream.executor(), t.layout.view(), at,
       field(t.in_batch(t.ids), t.in_row(t.packed_ids, at)));
}
template <class Place>
void pack_three(const test_stream& stream, const audited_tensors& t, Place at) {
  pack(stream.executor(), t.layout.view(), at,
       field(t.in_batch(t.ids), t.in_row(t.packed_ids, at), -1),
       field(t.in_batch(t.hidden, 5), t.in_row(t.packed_hidden, at, 5), 0.5F),
       field(t.in_batch(t.routes, 3), t.in_row(t.packed_routes, at, 3), column_number{}));
}

template <class Call>
void check_everywhere(const Call& call) {
  with_audited_tensors([&](const test_stream& stream, const audited_tensors& t, offset_t cp) {
    call(stream, t, full_row);
    call(stream, t, all_shards);
    call(stream, t, shard{cp - 1});
  });
}

constexpr auto one = "`pack`, 1 tensor";
constexpr auto three = "`pack`, 3 tensors of different types, widths and fills";
constexpr auto tables = "`pack` from a ragged or left-padded batch";

}  // namespace

BOOST_AUTO_TEST_CASE(one_tensor) {
  check_everywhere([](const test_stream& stream, const audited_tensors& t, auto at) {
    audited_call(one, stream, [&] { pack_one(stream, t, at); });
  });
}

BOOST_AUTO_TEST_CASE(three_tensors) {
  check_everywhere([](const test_stream& stream, const audited_tensors& t, auto at) {
    audited_call(three, stream, [&] { pack_three(stream, t, at); });
  });
}

BOOST_AUTO_TEST_CASE(captured_and_replayed_with_other_lengths) {
  for (const int batch : {5, 64}) {
    const test_stream stream;
    audited_tensors t(batch, 2);
    const auto change = [&](int round) { t.set_batch(round); };
    check_replay(one, stream, [&] { pack_one(stream, t, full_row); }, change, t.packed_ids);
    check_replay(
        three, stream, [&] { pack_three(stream, t, all_shards); }, change, t.packed_ids,
        t.packed_hidden, t.packed_routes);
  }
}

BOOST_AUTO_TEST_CASE(from_ragged_and_left_padded_batches) {
  for (const int batch : audited_batches) {
    const test_stream stream;
    audited_tables batches(batch);
    device_array<int> values(batches.layout.positions());
    const device_array<int> from_ragged(batches.layout.rows());
    const device_array<int> from_left_padded(batches.layout.rows());
    const auto change = [&](int round) {
      batches.set(round);
      set_values(values, round);
    };
    change(0);
    const auto& view = batches.layout.view();
    const auto ragged = [&] {
      pack(stream.executor(), view, all_shards,
           field(batches.ragged(values), batches.in_row(from_ragged)));
    };
    const auto left_padded = [&] {
      pack(stream.executor(), view, full_row,
           field(batches.left_padded(values), batches.in_row(from_left_padded)));
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
  const audited_tensors t(64, 2);
  const auto waits_of = [&](const auto& policy) {
    const runtime_audit audit;
    pack(policy, t.layout.view(), full_row,
         field(t.in_batch(t.ids), t.in_row(t.packed_ids, full_row)));
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
