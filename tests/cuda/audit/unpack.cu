// What unpack, unpack_own and rearrange ask of the runtime, and in a capture.
#include <boost/test/unit_test.hpp>
#include <cstdint>

#include "seqpack/move/rearrange.hpp"
#include "seqpack/move/unpack.hpp"
#include "support/audited_moves.cuh"

BOOST_AUTO_TEST_SUITE(audit_unpack)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

template <class Place>
auto field_of_ids(const audited_tensors& t, Place at) {
  return field(t.in_row(t.packed_ids, at), t.in_batch(t.ids), -1);
}
template <class Place>
void unpack_one(const test_stream& stream, const audited_tensors& t, Place at) {
  unpack(stream.executor(), t.layout.view(), at, field_of_ids(t, at));
}
template <class Place>
void unpack_three(const test_stream& stream, const audited_tensors& t, Place at) {
  unpack(stream.executor(), t.layout.view(), at, field_of_ids(t, at),
         field(t.in_row(t.packed_hidden, at, 5), t.in_batch(t.hidden, 5), 0.5F),
         field(t.in_row(t.packed_routes, at, 3), t.in_batch(t.routes, 3), column_number{}));
}
void unpack_mine(const test_stream& stream, const audited_tensors& t, shard at) {
  unpack_own(stream.executor(), t.layout.view(), at, field_of_ids(t, at));
}
template <class From, class To>
void move(const test_stream& stream, const audited_tensors& t,
          const device_array<std::int64_t>& moved, From from, To to) {
  rearrange(stream.executor(), t.layout.view(), from, to,
            field(t.in_row(t.packed_ids, from), t.in_row(moved, to)));
}

constexpr auto one = "`unpack`, 1 tensor";
constexpr auto three = "`unpack`, 3 tensors of different types, widths and fills";
constexpr auto own = "`unpack_own`";
constexpr auto tables = "`unpack` to a ragged or left-padded batch";
constexpr auto moving = "`rearrange`";

}  // namespace

BOOST_AUTO_TEST_CASE(unpack_from_everywhere) {
  with_audited_tensors([](const test_stream& stream, const audited_tensors& t, offset_t cp) {
    audited_call(one, stream, [&] { unpack_one(stream, t, full_row); });
    audited_call(one, stream, [&] { unpack_one(stream, t, all_shards); });
    audited_call(one, stream, [&] { unpack_one(stream, t, shard{cp - 1}); });
    audited_call(three, stream, [&] { unpack_three(stream, t, all_shards); });
    audited_call(own, stream, [&] { unpack_mine(stream, t, shard{cp - 1}); });
  });
}

BOOST_AUTO_TEST_CASE(rearrange_between_all_places) {
  with_audited_tensors([](const test_stream& stream, const audited_tensors& t, offset_t cp) {
    const device_array<std::int64_t> moved(t.layout.rows());
    audited_call(moving, stream, [&] { move(stream, t, moved, full_row, all_shards); });
    audited_call(moving, stream, [&] { move(stream, t, moved, all_shards, full_row); });
    audited_call(moving, stream, [&] { move(stream, t, moved, full_row, shard{cp - 1}); });
    stream.wait();
  });
}

BOOST_AUTO_TEST_CASE(captured_and_replayed_with_other_lengths) {
  for (const int batch : {5, 64}) {
    const test_stream stream;
    audited_tensors t(batch, 2);
    const device_array<std::int64_t> moved(t.layout.rows());
    const auto change = [&](int round) { t.set_packed(round); };
    check_replay(one, stream, [&] { unpack_one(stream, t, all_shards); }, change, t.ids);
    check_replay(
        three, stream, [&] { unpack_three(stream, t, full_row); }, change, t.ids, t.hidden,
        t.routes);
    check_replay(own, stream, [&] { unpack_mine(stream, t, shard{1}); }, change, t.ids);
    check_replay(
        moving, stream, [&] { move(stream, t, moved, all_shards, full_row); }, change, moved);
  }
}

BOOST_AUTO_TEST_CASE(to_ragged_and_left_padded_batches) {
  for (const int batch : audited_batches) {
    const test_stream stream;
    audited_tables batches(batch);
    device_array<int> rows(batches.layout.rows());
    const device_array<int> ragged_values(batches.layout.positions());
    const device_array<int> left_padded_values(batches.layout.positions());
    const auto change = [&](int round) {
      batches.set(round);
      set_values(rows, round);
    };
    change(0);
    const auto& view = batches.layout.view();
    const auto ragged = [&] {
      unpack(stream.executor(), view, all_shards,
             field(batches.in_row(rows), batches.ragged(ragged_values)));
    };
    const auto left_padded = [&] {
      unpack(stream.executor(), view, full_row,
             field(batches.in_row(rows), batches.left_padded(left_padded_values)));
    };
    audited_call(tables, stream, ragged);
    audited_call(tables, stream, left_padded);
    if (batch == 64) {
      check_replay(tables, stream, ragged, change, ragged_values);
      check_replay(tables, stream, left_padded, change, left_padded_values);
    }
  }
}

// More than 2^31 elements: the launch alone, of memory that is not there.
BOOST_AUTO_TEST_CASE(large_tensors) {
  const test_stream stream;
  const offset_t batch = 3;
  const offset_t tokens = offset_t{1} << 33;
  const layout_view<context_parallel<2, striped>, std::int64_t> view{
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
      unpack(stream.executor(), view, all_shards,
             field(row_view(untouched_memory<float>(2), tokens, 3),
                   batch_view(untouched_memory<float>(3), batch, tokens / 2, 3)));
    });
  });
  BOOST_TEST(call.launches == 1);
  BOOST_TEST(call.others + call.memsets == 0);
}

BOOST_AUTO_TEST_CASE(every_call_was_measured) {
  require_all_measured("cuda/audit/unpack.cu");
}

BOOST_AUTO_TEST_SUITE_END()
