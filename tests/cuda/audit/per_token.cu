// What per-token arrays, counts, masks and attention parameters ask of the runtime, and in a
// capture.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <span>

#include "seqpack/exec/memory.hpp"
#include "seqpack/tokens/causal.hpp"
#include "seqpack/tokens/counts.hpp"
#include "seqpack/tokens/gathered_keys.hpp"
#include "seqpack/tokens/mask.hpp"
#include "seqpack/tokens/packed_seq_params.hpp"
#include "seqpack/tokens/per_token.hpp"
#include "support/audit.cuh"

BOOST_AUTO_TEST_SUITE(audit_per_token)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr offset_t width = changing_layout::longest;

/// Token ids of a batch, and room for every array of a place.
struct arrays {
  changing_layout layout;
  device_array<int> ids;
  device_array<int> positions, sequences, targets, indices, rows;
  device_array<std::uint8_t> mask;
  device_array<int> counts;
  device_array<int> bounds, key_bounds, key_rows;
  device_array<std::int64_t> offsets;

  arrays(int batch, offset_t cp)
      : layout(batch, cp),
        ids(layout.positions()),
        positions(layout.rows()),
        sequences(layout.rows()),
        targets(layout.rows()),
        indices(layout.rows()),
        rows(layout.rows()),
        mask(layout.rows()),
        counts(static_cast<std::size_t>(batch)),
        bounds(static_cast<std::size_t>(batch) + 1),
        key_bounds(static_cast<std::size_t>(batch) + 1),
        key_rows(2),
        offsets(static_cast<std::size_t>(batch) + 1) {
    set(0);
  }
  void set(int round) {
    layout.set(round);
    set_values(ids, round);
  }
  template <class T>
  std::span<T> part(const device_array<T>& array, offset_t count) const {
    return {array.data(), static_cast<std::size_t>(count)};
  }
  auto labels_of(offset_t count) const {
    return labels(batch_view(ids.data(), layout.batch(), width), part(targets, count));
  }
  template <class Place>
  void all(const test_stream& stream, Place at) const {
    const offset_t n = layout.view().rows(at);
    per_token(stream.executor(), layout.view(), at, position_ids(part(positions, n)),
              sequence_index(part(sequences, n)), padding_mask(part(mask, n)), labels_of(n),
              batch_index(part(indices, n), width), row_index(part(rows, n)));
  }
  void one(const test_stream& stream, shard at) const {
    per_token(stream.executor(), layout.view(), at, labels_of(layout.shard_tokens()));
  }
  void two(const test_stream& stream) const {
    per_token(stream.executor(), layout.view(), full_row,
              position_ids(part(positions, layout.total())),
              padding_mask(part(mask, layout.total())));
  }
  void count(const test_stream& stream, shard at) const {
    real_tokens_per_sequence(stream.executor(), layout.view(), at, part(counts, layout.batch()));
  }
  void parameters(const test_stream& stream) const {
    make_packed_seq_params(stream.executor(), layout.view(), part(sequences, layout.total()),
                           part(bounds, layout.batch() + 1));
  }
  void shards(const test_stream& stream) const {
    shard_bounds(stream.executor(), layout.view(), part(bounds, layout.batch() + 1));
  }
  void keys(const test_stream& stream) const {
    make_gathered_key_params(stream.executor(), layout.view(), shard{0},
                             part(bounds, layout.batch() + 1), part(key_bounds, layout.batch() + 1),
                             part(key_rows, 2));
  }
  void ragged(const test_stream& stream) const {
    ragged_offsets(stream.executor(), layout.view().cu_seqlens(), 4, 8,
                   part(offsets, layout.batch() + 1));
  }
};

constexpr auto tokens = "`per_token`, any arrays";
constexpr auto counting_name = "`real_tokens_per_sequence`";
constexpr auto parameters_name = "`make_packed_seq_params`";
constexpr auto shard_bounds_name = "`shard_bounds`";
constexpr auto keys_name = "`make_gathered_key_params`";
constexpr auto offsets_name = "`ragged_offsets`";
constexpr auto mask_name = "`lengths_from_mask`";
constexpr auto starts_name = "`document_starts`";
constexpr auto causal_name = "`causal_mask`";

}  // namespace

BOOST_AUTO_TEST_CASE(arrays_of_all_places) {
  for (const int batch : audited_batches) {
    for (const offset_t cp : audited_ranks) {
      const test_stream stream;
      const arrays a(batch, cp);
      const shard last{cp - 1};
      audited_call(tokens, stream, [&] { a.all(stream, full_row); });
      audited_call(tokens, stream, [&] { a.all(stream, last); });
      audited_call(tokens, stream, [&] { a.one(stream, last); });
      audited_call(tokens, stream, [&] { a.two(stream); });
      audited_call(counting_name, stream, [&] { a.count(stream, last); });
      audited_call(parameters_name, stream, [&] { a.parameters(stream); });
      audited_call(shard_bounds_name, stream, [&] { a.shards(stream); });
      if (cp == 1) audited_call(keys_name, stream, [&] { a.keys(stream); });
      audited_call(offsets_name, stream, [&] { a.ragged(stream); });
      stream.wait();
    }
  }
}

BOOST_AUTO_TEST_CASE(captured_and_replayed_with_other_lengths) {
  for (const int batch : {5, 64}) {
    const test_stream stream;
    arrays a(batch, 2);
    const auto change = [&](int round) { a.set(round); };
    check_replay(
        tokens, stream, [&] { a.all(stream, full_row); }, change, a.positions, a.sequences,
        a.targets, a.indices, a.rows, a.mask);
    check_replay(tokens, stream, [&] { a.one(stream, shard{1}); }, change, a.targets);
    check_replay(counting_name, stream, [&] { a.count(stream, shard{0}); }, change, a.counts);
    check_replay(offsets_name, stream, [&] { a.ragged(stream); }, change, a.offsets);
  }
}

// What depends on the padded bounds alone, which are the same for all lengths above 0.
BOOST_AUTO_TEST_CASE(captured_and_replayed_with_other_bounds) {
  const test_stream stream;
  arrays a(8, 2);
  const auto change = [&](int round) { a.set(round); };
  check_replay(
      parameters_name, stream, [&] { a.parameters(stream); }, change, a.sequences, a.bounds);
  check_replay(shard_bounds_name, stream, [&] { a.shards(stream); }, change, a.bounds);
  arrays one(8, 1);
  check_replay(
      keys_name, stream, [&] { one.keys(stream); }, [&](int round) { one.set(round); }, one.bounds,
      one.key_bounds);
}

BOOST_AUTO_TEST_CASE(lengths_of_masks) {
  for (const int batch : audited_batches) {
    const test_stream stream;
    device_array<std::uint8_t> mask(static_cast<std::size_t>(batch * width));
    const device_array<int> lengths(static_cast<std::size_t>(batch));
    const device_array<int> starts(static_cast<std::size_t>(batch));
    const auto change = [&](int round) {
      std::vector<std::uint8_t> values;
      for (const int length : audit_lengths(batch, static_cast<int>(width), round)) {
        for (int s = 0; s < width; ++s) values.push_back(s >= width - length);
      }
      mask.upload(values);
    };
    change(0);
    const auto call = [&] {
      const auto size = static_cast<std::size_t>(batch);
      lengths_from_mask(stream.executor(), batch_view(mask.data(), batch, width),
                        std::span(lengths.data(), size), std::span(starts.data(), size));
    };
    audited_call(mask_name, stream, call);
    if (batch == 64) check_replay(mask_name, stream, call, change, lengths, starts);
  }
}

BOOST_AUTO_TEST_CASE(documents_and_causal_masks) {
  for (const int batch : audited_batches) {
    const test_stream stream;
    const offset_t s = 8;
    // A batch that is not packed: every row takes all of its width.
    device_array<int> cu(static_cast<std::size_t>(batch) + 1);
    device_array<int> cu_padded(static_cast<std::size_t>(batch) + 1);
    device_array<int> ids(static_cast<std::size_t>(batch * s));
    const device_array<std::int64_t> starts(ids.size());
    const device_array<bool> mask(ids.size() * 8);
    const layout_view<no_context_parallel> view{.cu = cu.data(),
                                                .cu_padded = cu_padded.data(),
                                                .sequences = batch,
                                                .segments = batch,
                                                .batch = batch,
                                                .total = batch * s,
                                                .longest = s,
                                                .longest_padded = s,
                                                .padded = true};
    const auto change = [&](int round) {
      std::vector<int> real{0};
      std::vector<int> padded{0};
      for (const int length : audit_lengths(batch, 8, round)) {
        real.push_back(real.back() + length);
        padded.push_back(padded.back() + 8);
      }
      cu.upload(real);
      cu_padded.upload(padded);
      set_values(ids, round, 3);
    };
    change(0);
    const row_view<std::int64_t> start_rows(starts.data(), batch, s);
    const auto find_starts = [&] {
      document_starts(stream.executor(), view, batch_view(ids.data(), batch, s), 1, start_rows);
    };
    const auto make_mask = [&] {
      causal_mask(stream.executor(), view, shard{0}, start_rows,
                  row_view<bool>(mask.data(), batch * s, s));
    };
    audited_call(starts_name, stream, find_starts);
    audited_call(causal_name, stream, make_mask);
    if (batch == 64) {
      check_replay(starts_name, stream, find_starts, change, starts);
      const auto change_starts = [&](int round) {
        change(round);
        find_starts();
      };
      check_replay(causal_name, stream, make_mask, change_starts, mask);
    }
  }
}

BOOST_AUTO_TEST_CASE(workspaces_and_results) {
  const test_stream stream;
  const auto where = stream.executor();
  for (const offset_t size : {1, 5000}) {
    const executor_array<float> array(where, size);
    audited_call("`fill`", stream, [&] { fill(where, array, 2.5F); });
    check_captured("`fill`", stream, [&] { fill(where, array, 3.5F); });
    std::vector<float> found(static_cast<std::size_t>(size));
    audited_call("`read_back`", stream,
                 [&] { read_back(where, found.data(), array.data(), size); });
    BOOST_TEST(found == std::vector<float>(found.size(), 2.5F));
    check_refused("`read_back`", stream,
                  [&] { read_back(where, found.data(), array.data(), size); });
  }
}

BOOST_AUTO_TEST_CASE(every_call_was_measured) {
  require_all_measured("cuda/audit/per_token.cu");
}

BOOST_AUTO_TEST_SUITE_END()
