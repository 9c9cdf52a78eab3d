// How a layout of the host gets to the device: short bounds in the parameters of one launch, longer
// ones through pinned memory, and never a copy that the host could wait for.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <random>

#include "seqpack/layout/device_layout.cuh"
#include "seqpack/layout/place_on.hpp"
#include "seqpack/move/pack.hpp"
#include "support/audit.cuh"

BOOST_AUTO_TEST_SUITE(audit_to_device)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr auto short_bounds =
    "`to_device`, `place_on`, bounds that fit into the parameters of a kernel";
constexpr auto long_bounds = "`to_device`, `place_on`, longer bounds";
constexpr int longest = 6;

auto make_host_layout(int batch, offset_t cp, int round = 0, const layout_options& options = {}) {
  return make_layout(audit_lengths(batch, longest, round), padding{each_multiple_of<>{8}},
                     context_parallel{cp}, options);
}

/// What the parameters of a kernel hold for sure: two arrays of so many bounds.
constexpr int certainly_short = 3000;

template <class Layout>
void check_arrays(const Layout& found,
                  const packed_layout<typename Layout::context_parallel_type>& expected) {
  const auto equal = [](const auto& on_device, const auto& on_host) {
    const auto values = read_device(on_device);
    BOOST_TEST(std::ranges::equal(values, on_host));
  };
  equal(found.cu_seqlens(), expected.cu_seqlens());
  equal(found.cu_seqlens_padded(), expected.cu_seqlens_padded());
  const auto view = found.view();
  const auto from = expected.view();
  BOOST_TEST((view.order == nullptr) == (from.order == nullptr));
  if (from.order != nullptr) {
    const auto slots = static_cast<std::size_t>(from.sequences);
    const auto batch = static_cast<std::size_t>(from.batch);
    equal(std::span(view.order, slots), std::span(from.order, slots));
    equal(std::span(view.slot_of, batch), std::span(from.slot_of, batch));
  }
}

std::vector<offset_t> shuffled(int batch) {
  std::vector<offset_t> order(static_cast<std::size_t>(batch));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  return order;
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_launch_for_short_bounds) {
  for (const int batch : {1, 64, 1000, certainly_short}) {
    for (const offset_t cp : audited_ranks) {
      const test_stream stream;
      const auto layout = make_host_layout(batch, cp);
      const auto copy =
          audited_call(short_bounds, stream, [&] { return to_device(stream.executor(), layout); });
      const auto same =
          audited_call(short_bounds, stream, [&] { return place_on(stream.executor(), layout); });
      stream.wait();
      check_arrays(copy, layout);
      check_arrays(same, layout);
    }
  }
}

BOOST_AUTO_TEST_CASE(one_launch_for_short_bounds_with_an_order) {
  for (const int batch : audited_batches) {
    const test_stream stream;
    const auto order = shuffled(batch);
    const auto layout = make_host_layout(batch, 2, 0, {.order = order});
    const auto copy =
        audited_call(short_bounds, stream, [&] { return to_device(stream.executor(), layout); });
    stream.wait();
    check_arrays(copy, layout);
  }
}

BOOST_AUTO_TEST_CASE(pinned_memory_for_long_bounds) {
  for (const int batch : {10'000, 1'000'000}) {
    const test_stream stream;
    const auto layout = make_host_layout(batch, 2);
    to_device(stream.executor(), layout);
    stream.wait();  // the resource has memory that is free now
    const auto copy =
        audited_call(long_bounds, stream, [&] { return to_device(stream.executor(), layout); });
    stream.wait();
    check_arrays(copy, layout);
  }
}

// The parameters of a kernel are part of a graph: the bounds of the capture are those of every
// replay, whatever becomes of the layout of the host.
BOOST_AUTO_TEST_CASE(short_bounds_are_captured) {
  const int batch = 9;
  const test_stream stream;
  device_array<int> tokens(static_cast<std::size_t>(batch * longest));
  const device_array<int> row(8 * batch);
  const auto layout = make_host_layout(batch, 2);
  const row_view rows(row.data(), layout.total_tokens());
  const batch_view from(tokens.data(), offset_t{batch}, offset_t{longest});
  audited_calls::add(audited_as::captured, short_bounds);
  const captured_call graph(stream, [&] {
    const auto forgotten = make_host_layout(batch, 2);
    const auto placed = to_device(stream.executor(), forgotten);
    pack(stream.executor(), placed, all_shards, field(from, rows, -1));
  });
  BOOST_TEST(graph.launches == cost_of(short_bounds).launches + 1);
  for (int round = 1; round <= 3; ++round) {
    set_values(tokens, round);
    poison(row);
    graph.replay(stream);
    stream.wait();
    std::vector<int> expected(static_cast<std::size_t>(layout.total_tokens()));
    const auto values = tokens.values();
    pack(host, layout, all_shards,
         field(batch_view(values.data(), offset_t{batch}, offset_t{longest}), expected, -1));
    auto found = row.values();
    found.resize(expected.size());
    BOOST_TEST(found == expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(every_call_was_measured) {
  require_all_measured("cuda/audit/to_device.cu");
}

BOOST_AUTO_TEST_SUITE_END()
