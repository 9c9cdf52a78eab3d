// What layouts from lengths and bounds in device memory ask of the runtime.
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <span>

#include "seqpack/layout/device_layout.cuh"
#include "seqpack/move/pack.hpp"
#include "support/audit.cuh"

BOOST_AUTO_TEST_SUITE(audit_layout)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr auto from_lengths = "`make_layout` from device lengths";
constexpr auto adopted_checked = "`from_cu_seqlens`, checked";
constexpr auto adopted_deferred = "`from_cu_seqlens`, deferred";
constexpr auto checking = "`device_layout::check`";
constexpr int longest = 6;

template <class T>
std::span<const T> span_of(const device_array<T>& array) {
  return {array.data(), array.size()};
}

auto padded_to_eights() {
  return padding{each_multiple_of<>{8}};
}

offset_t total_of(const std::vector<int>& lengths) {
  return make_layout(lengths, padded_to_eights()).total_tokens();
}

/// Bounds of lengths in device memory, each sequence padded to a multiple of 8.
struct bounds {
  device_array<int> cu;
  device_array<int> cu_padded;
  offset_t total = 0;

  explicit bounds(int batch)
      : cu(static_cast<std::size_t>(batch) + 1), cu_padded(static_cast<std::size_t>(batch) + 1) {
    set(audit_lengths(batch, longest));
  }
  void set(const std::vector<int>& lengths) {
    const auto layout = make_layout(lengths, padded_to_eights());
    const auto view = layout.view();
    const auto entries = static_cast<std::ptrdiff_t>(lengths.size()) + 1;
    cu.upload({view.cu, view.cu + entries});
    cu_padded.upload({view.cu_padded, view.cu_padded + entries});
    total = layout.total_tokens();
  }
  template <validation When>
  auto adopt(const test_stream& stream, offset_t cp) const {
    return from_cu_seqlens<std::int32_t, When>(stream.executor(), span_of(cu), span_of(cu_padded),
                                               total, context_parallel{cp}, longest);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(two_launches_and_one_wait) {
  for (const int batch : audited_batches) {
    const std::vector<int> lengths = audit_lengths(batch, longest);
    const device_array<int> on_device(lengths);
    for (const offset_t cp : audited_ranks) {
      const test_stream stream;
      const auto layout = audited_call(from_lengths, stream, [&] {
        return make_layout(stream.executor(), span_of(on_device), padded_to_eights(),
                           context_parallel{cp});
      });
      BOOST_TEST(layout.total_tokens() == total_of(lengths));
      audited_call(checking, stream, [&] { layout.check(stream); });
    }
  }
}

BOOST_AUTO_TEST_CASE(bounds_that_are_adopted) {
  for (const int batch : audited_batches) {
    const bounds b(batch);
    for (const offset_t cp : audited_ranks) {
      const test_stream stream;
      const auto checked = audited_call(adopted_checked, stream,
                                        [&] { return b.adopt<validation::checked>(stream, cp); });
      BOOST_TEST(checked.total_tokens() == b.total);
      const auto deferred = audited_call(adopted_deferred, stream,
                                         [&] { return b.adopt<validation::deferred>(stream, cp); });
      audited_call(checking, stream, [&] { deferred.check(stream); });
    }
  }
}

BOOST_AUTO_TEST_CASE(a_million_sequences) {
  const int batch = 1'000'000;
  const std::vector<int> lengths = audit_lengths(batch, 3);
  const device_array<int> on_device(lengths);
  const test_stream stream;
  const auto layout = audited_call(from_lengths, stream, [&] {
    return make_layout(stream.executor(), span_of(on_device), padded_to_eights(),
                       context_parallel<2>{});
  });
  BOOST_TEST(layout.total_tokens() == total_of(lengths));
  BOOST_TEST(layout.sequences() == batch);
}

BOOST_AUTO_TEST_CASE(what_is_read_back_is_refused_in_a_capture) {
  const test_stream stream;
  const device_array<int> lengths(audit_lengths(5, longest));
  const bounds b(5);
  const auto deferred = b.adopt<validation::deferred>(stream, 1);
  check_refused(from_lengths, stream,
                [&] { make_layout(stream.executor(), span_of(lengths), padded_to_eights()); });
  check_refused(adopted_checked, stream, [&] { b.adopt<validation::checked>(stream, 1); });
  check_refused(checking, stream, [&] { deferred.check(stream); });
  deferred.check(stream);  // the stream and the layout are as they were
}

BOOST_AUTO_TEST_CASE(deferred_bounds_are_captured_and_replayed) {
  const int batch = 8;
  const test_stream stream;
  bounds b(batch);
  b.set(audit_lengths(batch, longest - 1));
  device_array<int> tokens(static_cast<std::size_t>(batch * longest));
  const offset_t total = 8 * batch;
  b.total = total;
  const device_array<int> row(static_cast<std::size_t>(total));
  // Lengths that leave the total as it is.
  const auto change = [&](int round) {
    std::vector<int> lengths;
    for (int k = 0; k < batch; ++k) lengths.push_back(1 + (k + round) % longest);
    b.set(lengths);
    BOOST_TEST(b.total == total);
    set_values(tokens, round);
  };
  const auto adopt = [&] {
    const auto layout = b.adopt<validation::deferred>(stream, 2);
    pack(stream.executor(), layout, all_shards,
         field(batch_view(tokens.data(), batch, offset_t{longest}), row_view(row.data(), total)));
  };
  check_replay({adopted_deferred, 1}, stream, adopt, change, row);
}

BOOST_AUTO_TEST_CASE(every_call_was_measured) {
  require_all_measured("cuda/audit/layout.cu");
}

BOOST_AUTO_TEST_SUITE_END()
