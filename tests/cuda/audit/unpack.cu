// What unpack, unpack_own and rearrange ask of the runtime, and in a capture.
#include <boost/test/unit_test.hpp>
#include <cstdint>

#include "seqpack/move/rearrange.hpp"
#include "seqpack/move/unpack.hpp"
#include "support/audit.cuh"

BOOST_AUTO_TEST_SUITE(audit_unpack)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr offset_t width = changing_layout::longest;

struct column_number {
  SEQPACK_HD offset_t operator()(offset_t column) const { return column; }
};

/// Packed tensors of three types and widths, and batches for them.
struct tensors {
  changing_layout layout;
  device_array<std::int64_t> packed_ids;
  device_array<float> packed_hidden;
  device_array<std::int16_t> packed_routes;
  device_array<std::int64_t> ids;
  device_array<float> hidden;
  device_array<std::int16_t> routes;
  device_array<std::int64_t> moved;

  tensors(int batch, offset_t cp)
      : layout(batch, cp),
        packed_ids(layout.rows()),
        packed_hidden(layout.rows(5)),
        packed_routes(layout.rows(3)),
        ids(layout.positions()),
        hidden(layout.positions(5)),
        routes(layout.positions(3)),
        moved(layout.rows()) {
    set(0);
  }
  void set(int round) {
    layout.set(round);
    set_values(packed_ids, round);
    set_values(packed_hidden, round);
    set_values(packed_routes, round);
  }

  template <class Place>
  auto field_of_ids(Place at) const {
    return field(row_view(packed_ids.data(), layout.view().rows(at)),
                 batch_view(ids.data(), layout.batch(), width), -1);
  }
  template <class Place>
  void unpack_one(const test_stream& stream, Place at) const {
    unpack(stream.executor(), layout.view(), at, field_of_ids(at));
  }
  template <class Place>
  void unpack_three(const test_stream& stream, Place at) const {
    const offset_t rows = layout.view().rows(at);
    unpack(stream.executor(), layout.view(), at, field_of_ids(at),
           field(row_view(packed_hidden.data(), rows, 5),
                 batch_view(hidden.data(), layout.batch(), width, 5), 0.5F),
           field(row_view(packed_routes.data(), rows, 3),
                 batch_view(routes.data(), layout.batch(), width, 3), column_number{}));
  }
  void unpack_mine(const test_stream& stream, shard at) const {
    unpack_own(stream.executor(), layout.view(), at, field_of_ids(at));
  }
  template <class From, class To>
  void move(const test_stream& stream, From from, To to) const {
    rearrange(stream.executor(), layout.view(), from, to,
              field(row_view(packed_ids.data(), layout.view().rows(from)),
                    row_view(moved.data(), layout.view().rows(to))));
  }
};

template <class Call>
void for_each_size(const Call& call) {
  for (const int batch : audited_batches) {
    for (const offset_t cp : audited_ranks) {
      const test_stream stream;
      const tensors t(batch, cp);
      call(stream, t, cp);
      stream.wait();
    }
  }
}

constexpr auto one = "`unpack`, 1 tensor";
constexpr auto three = "`unpack`, 3 tensors of different types, widths and fills";
constexpr auto own = "`unpack_own`";
constexpr auto tables = "`unpack` to a ragged or left-padded batch";
constexpr auto moving = "`rearrange`";

}  // namespace

BOOST_AUTO_TEST_CASE(unpack_from_everywhere) {
  for_each_size([](const test_stream& stream, const tensors& t, offset_t cp) {
    audited_call(one, stream, [&] { t.unpack_one(stream, full_row); });
    audited_call(one, stream, [&] { t.unpack_one(stream, all_shards); });
    audited_call(one, stream, [&] { t.unpack_one(stream, shard{cp - 1}); });
    audited_call(three, stream, [&] { t.unpack_three(stream, all_shards); });
    audited_call(own, stream, [&] { t.unpack_mine(stream, shard{cp - 1}); });
  });
}

BOOST_AUTO_TEST_CASE(rearrange_between_all_places) {
  for_each_size([](const test_stream& stream, const tensors& t, offset_t cp) {
    audited_call(moving, stream, [&] { t.move(stream, full_row, all_shards); });
    audited_call(moving, stream, [&] { t.move(stream, all_shards, full_row); });
    audited_call(moving, stream, [&] { t.move(stream, full_row, shard{cp - 1}); });
  });
}

BOOST_AUTO_TEST_CASE(captured_and_replayed_with_other_lengths) {
  for (const int batch : {5, 64}) {
    const test_stream stream;
    tensors t(batch, 2);
    const auto change = [&](int round) { t.set(round); };
    check_replay(one, stream, [&] { t.unpack_one(stream, all_shards); }, change, t.ids);
    check_replay(
        three, stream, [&] { t.unpack_three(stream, full_row); }, change, t.ids, t.hidden,
        t.routes);
    check_replay(own, stream, [&] { t.unpack_mine(stream, shard{1}); }, change, t.ids);
    check_replay(moving, stream, [&] { t.move(stream, all_shards, full_row); }, change, t.moved);
  }
}

BOOST_AUTO_TEST_CASE(to_ragged_and_left_padded_batches) {
  for (const int batch : audited_batches) {
    const test_stream stream;
    changing_layout layout(batch, 2);
    device_array<int> rows(layout.rows());
    device_array<std::int32_t> bounds(static_cast<std::size_t>(batch) + 1);
    device_array<int> starts(static_cast<std::size_t>(batch));
    const device_array<int> ragged_values(layout.positions());
    const device_array<int> left_padded_values(layout.positions());
    const auto change = [&](int round) {
      layout.set(round);
      set_values(rows, round);
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
      unpack(
          stream.executor(), view, all_shards,
          field(row_view(rows.data(), layout.total()),
                ragged_view(row_view(ragged_values.data(), batch * width), bounds.data(), batch)));
    };
    const auto left_padded = [&] {
      unpack(stream.executor(), view, full_row,
             field(row_view(rows.data(), layout.total()),
                   left_padded_view(batch_view(left_padded_values.data(), batch, width),
                                    starts.data())));
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
