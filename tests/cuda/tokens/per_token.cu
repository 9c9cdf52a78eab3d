// Per-token arrays, counts, attention parameters and masks on the device, against the oracle.
#include <boost/test/unit_test.hpp>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"
#include "support/oracle.hpp"

BOOST_AUTO_TEST_SUITE(tokens_per_token)

using namespace seqpack;
using testing::captured_call;
using testing::device_array;
using testing::needs_device;
using testing::read_device;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr offset_t batch_rows = 5;
constexpr offset_t width = 9;
const std::vector<int> lengths{5, 0, 3, 9, 1};

template <class Sharding>
void check_arrays(Sharding sharding, oracle::kind kind) {
  const testing::test_stream stream;
  const auto expected = oracle::pack({.lens = {5, 0, 3, 9, 1},
                                      .each = 8,
                                      .total_multiple = 64,
                                      .tail_to = oracle::tail::ghost,
                                      .cp = 4,
                                      .sharding = kind});
  const auto layout = to_device(
      stream.executor(),
      make_layout(lengths, padding{each_multiple_of<8>{}, total_multiple_of<64>{}, ghost_tail{}},
                  context_parallel{4, sharding}));
  std::vector<int> ids;
  for (offset_t b = 0; b < batch_rows; ++b) {
    for (offset_t s = 0; s < width; ++s) ids.push_back(static_cast<int>(oracle::id(b, s)));
  }
  const device_array<int> ids_in(ids);
  const batch_view<const int> tokens(ids_in.data(), batch_rows, width);
  stream.wait();

  const auto check = [&](auto at, const oracle::tokens& place) {
    const std::size_t size = place.size();
    const device_array<int> positions(size), sequence(size), next(size), rows(size);
    const device_array<std::int64_t> third(size), gather(size);
    const device_array<unsigned char> mask(size);
    const auto rows_of = [&](const auto& array) {
      return row_view(array.data(), static_cast<offset_t>(size));
    };
    const captured_call call(stream, [&] {
      per_token(stream.executor(), layout, at, position_ids(rows_of(positions)),
                sequence_index(rows_of(sequence)), padding_mask(rows_of(mask)),
                labels(tokens, rows_of(next)), labels(tokens, rows_of(third), {.shift = 3}),
                batch_index(rows_of(gather), width), row_index(rows_of(rows)));
    });
    BOOST_TEST(call.launches == 1);
    BOOST_TEST(call.memsets + call.others == 0);
    call.replay(stream);
    stream.wait();
    BOOST_TEST(oracle::to_numbers(positions.values()) == oracle::position_ids(place));
    BOOST_TEST(oracle::to_numbers(sequence.values()) == oracle::sequence_index(place));
    BOOST_TEST(oracle::to_numbers(mask.values()) == oracle::padding_mask(place));
    BOOST_TEST(oracle::to_numbers(next.values()) ==
               oracle::labels(place, expected, oracle::id, 1, -100));
    BOOST_TEST(oracle::to_numbers(third.values()) ==
               oracle::labels(place, expected, oracle::id, 3, -100));
    BOOST_TEST(oracle::to_numbers(gather.values()) ==
               oracle::values(place, [](offset_t b, offset_t s) { return b * width + s; }, -1));
    oracle::numbers row_numbers;
    for (const auto& t : place)
      row_numbers.push_back(expected.cu_padded[oracle::at(t.slot)] + t.position);
    BOOST_TEST(oracle::to_numbers(rows.values()) == row_numbers);
    BOOST_TEST((positions.guards_intact() && sequence.guards_intact() && mask.guards_intact() &&
                next.guards_intact() && third.guards_intact()));
  };
  check(full_row, expected.row);
  check(all_shards, expected.all_shards);
  for (offset_t rank = 0; rank < 4; ++rank) {
    const auto& place = expected.shards[oracle::at(rank)];
    check(shard{rank}, place);
    const device_array<int> counts(lengths.size());
    real_tokens_per_sequence(stream.executor(), layout, shard{rank},
                             row_view(counts.data(), batch_rows));
    stream.wait();
    oracle::numbers expected_counts(lengths.size());
    for (const auto& t : place) {
      if (t.real) ++expected_counts[oracle::at(t.slot)];
    }
    BOOST_TEST(oracle::to_numbers(counts.values()) == expected_counts,
               boost::test_tools::per_element());
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(zigzag_arrays) {
  check_arrays(zigzag{}, oracle::kind::zigzag);
}
BOOST_AUTO_TEST_CASE(arrays_of_shardings_that_are_chosen_at_run_time) {
  check_arrays(any_sharding{contiguous{}}, oracle::kind::contiguous);
  check_arrays(any_sharding{striped{}}, oracle::kind::striped);
  check_arrays(any_sharding{row_contiguous{}}, oracle::kind::row_contiguous);
}

BOOST_AUTO_TEST_CASE(keys_of_a_shard_of_the_row) {
  const testing::test_stream stream;
  const auto layout = to_device(
      stream.executor(),
      make_layout(std::vector{37, 51, 40}, no_padding{}, context_parallel<2, row_contiguous>{}));
  const device_array<int> q(4), kv(4), rows(2), bounds(4);
  const auto params =
      make_gathered_key_params(stream.executor(), layout, shard{1}, std::span<int>(q.data(), 4),
                               std::span<int>(kv.data(), 4), std::span<int>(rows.data(), 2));
  shard_bounds(stream.executor(), layout, shard{1}, std::span<int>(bounds.data(), 4));
  stream.wait();
  BOOST_TEST(q.values() == (std::vector{0, 0, 24, 64}), boost::test_tools::per_element());
  BOOST_TEST(bounds.values() == q.values(), boost::test_tools::per_element());
  BOOST_TEST(kv.values() == (std::vector{0, 0, 51, 91}), boost::test_tools::per_element());
  BOOST_TEST(rows.values() == (std::vector{37, 128}), boost::test_tools::per_element());
  // Nothing was read back: the largest lengths are limits.
  BOOST_TEST(params.max_seqlen_q == 51);
  BOOST_TEST(params.max_seqlen_kv == 51);
}

BOOST_AUTO_TEST_CASE(attention_parameters_point_into_device_memory) {
  const testing::test_stream stream;
  const auto layout = to_device(
      stream.executor(),
      make_layout(std::vector{5, 3}, padding{each_multiple_of<4>{}}, context_parallel<2>{}));
  const device_array<int> seq_idx(12), bounds(3);
  const auto params = make_packed_seq_params<attention_bounds::real_and_padded>(
      stream.executor(), layout, std::span<int>(seq_idx.data(), 12),
      std::span<int>(bounds.data(), 3));
  const device_array<std::int64_t> offsets(3);
  ragged_offsets(stream.executor(), params.cu_seqlens_q_padded, 16384, 1 << 20,
                 std::span<std::int64_t>(offsets.data(), 3));
  stream.wait();
  BOOST_TEST(read_device(params.cu_seqlens_q) == (std::vector{0, 5, 8}));
  BOOST_TEST(read_device(params.cu_seqlens_kv_padded) == (std::vector{0, 8, 12}));
  BOOST_TEST(read_device(params.cu_seqlens_shard) == (std::vector{0, 4, 6}));
  BOOST_TEST(read_device(params.seq_idx) == (std::vector{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1}));
  BOOST_TEST(params.has_padding);
  BOOST_TEST(params.max_seqlen_q == 8);
  BOOST_TEST(params.total_tokens == 12);
  BOOST_TEST(offsets.values()[2] == 12LL * 16384 * (1 << 20));
}

BOOST_AUTO_TEST_CASE(masks_become_lengths_and_starts) {
  const testing::test_stream stream;
  const device_array<unsigned char> mask(
      std::vector<unsigned char>{0, 0, 1, 1, /**/ 1, 1, 1, 0, /**/ 0, 0, 0, 0, /**/ 1, 0, 1, 0});
  const device_array<int> found(4), starts(4);
  const captured_call call(stream, [&] {
    lengths_from_mask(stream.executor(), batch_view<const unsigned char>(mask.data(), 4, 4),
                      row_view(found.data(), 4), row_view(starts.data(), 4));
  });
  BOOST_TEST(call.launches == 1);
  BOOST_TEST(call.memsets + call.others == 0);
  call.replay(stream);
  stream.wait();
  BOOST_TEST(found.values() == (std::vector{2, 3, 0, -1}), boost::test_tools::per_element());
  const auto columns = starts.values();
  BOOST_TEST(columns[0] == 2);
  BOOST_TEST(columns[1] == 0);
  BOOST_TEST(columns[2] == 0);
}

BOOST_AUTO_TEST_CASE(a_mask_of_anything_but_0_and_1_has_no_length) {
  const testing::test_stream stream;
  const device_array<int> mask(std::vector<int>{1, 1, 0, /**/ 1, 2, 2, /**/ -1, 0, 0});
  const device_array<int> found(3), starts(3);
  lengths_from_mask(stream.executor(), batch_view<const int>(mask.data(), 3, 3),
                    row_view(found.data(), 3), row_view(starts.data(), 3));
  stream.wait();
  BOOST_TEST(found.values() == (std::vector{2, -1, -1}), boost::test_tools::per_element());
  BOOST_CHECK_EXCEPTION(
      make_layout(stream.executor(), std::span<const int>(found.data(), 3)), invalid_input,
      [](const invalid_input& e) { return e.entry() == "lengths[1]" && e.value() == "-1"; });
}

BOOST_AUTO_TEST_CASE(ids_that_a_label_cannot_hold_set_the_status_of_the_layout) {
  const testing::test_stream stream;
  const auto run = [&](const auto& layout, std::vector<std::int64_t> ids, const std::string& text) {
    const device_array<std::int64_t> table(std::move(ids));
    const device_array<std::int16_t> out(4);
    per_token(stream.executor(), layout, full_row,
              labels(batch_view<const std::int64_t>(table.data(), 2, 2), row_view(out.data(), 4)));
    stream.wait();
    std::string found;
    try {
      layout.check(stream);
    } catch (const invalid_input& e) {
      found = e.what();
    }
    BOOST_TEST(found == text);
    // Where an id does not fit, and where there is no next token.
    const std::int16_t first = text.empty() ? std::int16_t{7} : std::int16_t{-100};
    BOOST_TEST(out.values() == (std::vector<std::int16_t>{first, -100, 4, -100}),
               boost::test_tools::per_element());
    BOOST_TEST(out.guards_intact());
  };
  const auto place_on = [&] {
    return to_device(stream.executor(), make_layout(std::vector{2, 2}));
  };
  run(place_on(), {70000, 7, 3, 4}, "");  // token 0 is nobody's label
  run(place_on(), {1, 70000, 3, 4}, "tokens[0][1] is 70000: a label must be at most 32767");
  run(place_on(), {1, -40000, 3, 4}, "tokens[0][1] is -40000: a label must be at least -32768");
  const device_array<int> lengths(std::vector{2, 2});
  run(make_layout(stream.executor(), std::span<const int>(lengths.data(), 2)), {1, 65436, 3, 4},
      "tokens[0][1] is 65436: a label must be at most 32767");
}

BOOST_AUTO_TEST_CASE(ids_outside_of_the_vocabulary_set_the_status_of_the_layout) {
  const testing::test_stream stream;
  const auto layout = to_device(stream.executor(), make_layout(std::vector{3}));
  const device_array<std::int64_t> table(std::vector<std::int64_t>{9, 3, -1});
  const device_array<std::int64_t> out(3);
  per_token(stream.executor(), layout, full_row,
            labels(batch_view<const std::int64_t>(table.data(), 1, 3), row_view(out.data(), 3),
                   {.vocabulary = 4}));
  BOOST_CHECK_EXCEPTION(layout.check(stream), invalid_input, [](const invalid_input& e) {
    return std::string(e.what()) == "tokens[0][2] is -1: a label must be at least 0";
  });
  BOOST_TEST(out.values() == (std::vector<std::int64_t>{3, -100, -100}));
}

BOOST_AUTO_TEST_CASE(without_a_status_a_narrower_label_type_is_refused) {
  const testing::test_stream stream;
  const auto layout = to_device(stream.executor(), make_layout(std::vector{2}));
  auto bare = layout.view();
  bare.status = nullptr;
  const device_array<std::int64_t> table(std::vector<std::int64_t>{1, 2});
  const device_array<std::int16_t> out(2);
  const batch_view<const std::int64_t> ids(table.data(), 1, 2);
  BOOST_CHECK_EXCEPTION(
      per_token(stream.executor(), bare, full_row, labels(ids, row_view(out.data(), 2))),
      invalid_input, [](const invalid_input& e) {
        return std::string(e.what()) ==
               "array 0's label type is narrower than the ids: on a device the layout must have a "
               "status word, which tells of ids that do not fit";
      });
  // A type that holds all ids needs none.
  const device_array<std::int64_t> wide(2);
  per_token(stream.executor(), bare, full_row, labels(ids, row_view(wide.data(), 2)));
  stream.wait();
  BOOST_TEST(wide.values() == (std::vector<std::int64_t>{2, -100}));
}

BOOST_AUTO_TEST_SUITE_END()
