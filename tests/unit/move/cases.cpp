// Failures that packing code in production really had, one test each. Token t of sequence b is the
// number 100 * (b + 1) + t; columns behind a length hold -1, which must never come out.
#define BOOST_TEST_MODULE cases
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "seqpack/seqpack.hpp"
#include "support/as_device.hpp"
#include "support/buffers.hpp"
#include "support/refused.hpp"
#include "support/sparse_memory.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using ids = std::vector<std::int64_t>;
using bounds = std::vector<std::int32_t>;

constexpr std::int64_t ign = -100;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

ids tokens_of(const std::vector<int>& lengths, int width) {
  ids tokens;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    for (int t = 0; t < width; ++t) {
      tokens.push_back(t < lengths[b] ? 100 * (static_cast<std::int64_t>(b) + 1) + t : -1);
    }
  }
  return tokens;
}

/// A batch as wide as its longest sequence and two more columns.
struct id_batch {
  explicit id_batch(const std::vector<int>& lengths)
      : size(static_cast<offset_t>(lengths.size())),
        width(*std::max_element(lengths.begin(), lengths.end()) + 2),
        tokens(tokens_of(lengths, static_cast<int>(width))) {}
  auto view() const { return batch_view(tokens.data(), size, width); }

  offset_t size;
  offset_t width;
  ids tokens;
};

template <class Layout, class Place>
ids packed_ids(const Layout& layout, Place at, const id_batch& from) {
  ids out(static_cast<std::size_t>(layout.view().rows(at)), 777);
  pack(host, layout, at, field(from.view(), out));
  return out;
}

template <class Layout, class Place>
ids labels_of(const Layout& layout, Place at, const id_batch& from, offset_t shift = 1) {
  ids out(static_cast<std::size_t>(layout.view().rows(at)), 777);
  per_token(host, layout, at, labels(from.view(), out, {.shift = shift}));
  return out;
}

template <class Layout>
ids counts_of(const Layout& layout, offset_t rank) {
  ids out(static_cast<std::size_t>(layout.sequences()), 777);
  real_tokens_per_sequence(host, layout, shard{rank}, out);
  return out;
}

template <class T>
std::vector<T> to_vector(std::span<const T> values) {
  return {values.begin(), values.end()};
}

auto each_of(offset_t multiple) {
  return padding{each_multiple_of<>{multiple}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(case_01_real_length_far_below_the_aligned_one) {
  const id_batch from({38});
  const auto layout = make_layout(std::vector{38}, each_of(128), context_parallel{4});
  const ids real_tokens_of_ranks{16, 16, 6, 0};
  for (offset_t r = 0; r < 4; ++r) {
    BOOST_TEST(layout.shard_tokens() == 32);
    BOOST_TEST(real_tokens(layout, shard{r}) == real_tokens_of_ranks[static_cast<std::size_t>(r)]);
  }
  ids rank2(32, 0);
  std::iota(rank2.begin(), rank2.begin() + 6, 132);
  BOOST_TEST(packed_ids(layout, shard{2}, from) == rank2, per_element());
  BOOST_TEST(packed_ids(layout, shard{3}, from) == ids(32, 0), per_element());
}

BOOST_AUTO_TEST_CASE(case_02_target_slice_without_source) {
  const id_batch from({10});
  const auto layout = make_layout(std::vector{10}, each_of(32), context_parallel{8});
  const std::vector<ids> shards{{100, 101, 0, 0}, {102, 103, 0, 0}, {104, 105, 0, 0},
                                {106, 107, 0, 0}, {108, 109, 0, 0}, {0, 0, 0, 0},
                                {0, 0, 0, 0},     {0, 0, 0, 0}};
  for (offset_t r = 0; r < 8; ++r) {
    BOOST_TEST(packed_ids(layout, shard{r}, from) == shards[static_cast<std::size_t>(r)],
               per_element());
  }
}

BOOST_AUTO_TEST_CASE(case_03_placeholder_sample) {
  const id_batch from({2});
  const auto layout = make_layout(std::vector{2}, each_of(16), context_parallel{2});
  BOOST_TEST(packed_ids(layout, shard{0}, from) == (ids{100, 101, 0, 0, 0, 0, 0, 0}),
             per_element());
  BOOST_TEST(packed_ids(layout, shard{1}, from) == ids(8, 0), per_element());
}

BOOST_AUTO_TEST_CASE(case_04_second_chunk_is_all_padding) {
  const auto layout = make_layout(std::vector{9, 8, 8, 12, 8, 12}, each_of(4), context_parallel{2});
  BOOST_TEST(to_vector(layout.cu_seqlens()) == (bounds{0, 9, 17, 25, 37, 45, 57}), per_element());
  BOOST_TEST(to_vector(layout.cu_seqlens_padded()) == (bounds{0, 12, 20, 28, 40, 48, 60}),
             per_element());
  BOOST_TEST(counts_of(layout, 0) == (ids{3, 4, 4, 6, 4, 6}), per_element());
  BOOST_TEST(counts_of(layout, 1) == (ids{6, 4, 4, 6, 4, 6}), per_element());
  BOOST_TEST(real_tokens(layout, shard{0}) == 27);
  BOOST_TEST(real_tokens(layout, shard{1}) == 30);
}

BOOST_AUTO_TEST_CASE(case_05_last_token_of_an_odd_length) {
  const id_batch from({7});
  const auto layout = make_layout(std::vector{7}, each_of(4), context_parallel{2});
  BOOST_TEST(packed_ids(layout, shard{0}, from) == (ids{100, 101, 106, 0}), per_element());
  BOOST_TEST(packed_ids(layout, shard{1}, from) == (ids{102, 103, 104, 105}), per_element());
  BOOST_TEST(real_tokens(layout, shard{0}) == 3);
  BOOST_TEST(real_tokens(layout, shard{1}) == 4);
}

BOOST_AUTO_TEST_CASE(case_06_shards_of_four_sequences) {
  const id_batch from({4, 8, 6, 10});
  const auto layout = make_layout(std::vector{4, 8, 6, 10}, each_of(4), context_parallel{2});
  BOOST_TEST(to_vector(layout.cu_seqlens()) == (bounds{0, 4, 12, 18, 28}), per_element());
  BOOST_TEST(to_vector(layout.cu_seqlens_padded()) == (bounds{0, 4, 12, 20, 32}), per_element());
  BOOST_TEST(packed_ids(layout, shard{0}, from) ==
                 (ids{100, 103, 200, 201, 206, 207, 300, 301, 0, 0, 400, 401, 402, 409, 0, 0}),
             per_element());
  BOOST_TEST(packed_ids(layout, shard{1}, from) == (ids{101, 102, 202, 203, 204, 205, 302, 303, 304,
                                                        305, 403, 404, 405, 406, 407, 408}),
             per_element());
}

BOOST_AUTO_TEST_CASE(case_07_bounds_of_a_shard) {
  const std::vector lengths{5, 3};
  const auto layout = make_layout(lengths, each_of(4), context_parallel{2});
  bounds local(3);
  shard_bounds(host, layout, local);
  BOOST_TEST(local == (bounds{0, 4, 6}), per_element());
  BOOST_CHECK_EXCEPTION(make_layout(lengths, no_padding{}, context_parallel{2}), invalid_input,
                        refused("padded length of lengths[0]", "5", "multiple of 4"));
}

BOOST_AUTO_TEST_CASE(case_08_identical_sequences_have_identical_shares) {
  const id_batch from({6, 6});
  const auto layout = make_layout(std::vector{6, 6}, each_of(8), context_parallel{4});
  bounds local(3);
  shard_bounds(host, layout, local);
  BOOST_TEST(local == (bounds{0, 2, 4}), per_element());
  const std::vector<ids> shards{
      {100, 0, 200, 0}, {101, 0, 201, 0}, {102, 105, 202, 205}, {103, 104, 203, 204}};
  for (offset_t r = 0; r < 4; ++r) {
    BOOST_TEST(packed_ids(layout, shard{r}, from) == shards[static_cast<std::size_t>(r)],
               per_element());
  }
}

BOOST_AUTO_TEST_CASE(case_09_repeated_tail_entries) {
  const context_parallel cp{2};
  const auto repeated = from_cu_seqlens(bounds{0, 16, 40, 40, 40}, 40, cp);
  const auto plain = from_cu_seqlens(bounds{0, 16, 40}, 40, cp);
  for (offset_t r = 0; r < 2; ++r) {
    ids a(20);
    ids b(20, -1);
    per_token(host, repeated, shard{r}, row_index(a));
    per_token(host, plain, shard{r}, row_index(b));
    BOOST_TEST(a == b, per_element());
  }
  BOOST_CHECK_EXCEPTION(from_cu_seqlens(bounds{0, 16, 40, 24, 40}, 40, cp), invalid_input,
                        refused("cu_seqlens[3]", "24", "40"));
}

BOOST_AUTO_TEST_CASE(case_12_zero_length_rows_come_back_zero) {
  for (const std::vector<int>& lengths : {std::vector{0, 4}, std::vector{4, 0}}) {
    const auto layout = make_layout(lengths, each_of(4));
    const std::vector<double> rows{1, 2, 3, 4};
    std::vector<double> out(8, not_a_number);
    unpack(host, layout, full_row, field(rows, batch_view(out.data(), 2, 4)));
    const std::vector<double> first = lengths[0] == 0 ? std::vector<double>(4, 0.0) : rows;
    const std::vector<double> second = lengths[1] == 0 ? std::vector<double>(4, 0.0) : rows;
    BOOST_TEST(std::vector(out.begin(), out.begin() + 4) == first, per_element());
    BOOST_TEST(std::vector(out.begin() + 4, out.end()) == second, per_element());
  }
}

BOOST_AUTO_TEST_CASE(case_13_longest_is_one_and_some_are_zero) {
  const auto layout = make_layout(std::vector{0, 1, 0, 1});
  BOOST_TEST(to_vector(layout.cu_seqlens()) == (bounds{0, 0, 1, 1, 2}), per_element());
  BOOST_TEST(layout.total_tokens() == 2);
  BOOST_TEST(layout.max_seqlen() == 1);
  const ids rows{11, 22};
  ids out(4, 777);
  unpack(host, layout, full_row, field(rows, batch_view(out.data(), 4, 1)));
  BOOST_TEST(out == (ids{0, 11, 0, 22}), per_element());
}

BOOST_AUTO_TEST_CASE(case_14_all_sequences_are_empty) {
  const auto layout = make_layout(std::vector{0, 0}, each_of(4));
  BOOST_TEST(layout.total_tokens() == 0);
  BOOST_TEST(to_vector(layout.cu_seqlens()) == (bounds{0, 0, 0}), per_element());
  const ids nothing;
  ids nothing_out;
  const ids source(6, -1);
  pack(host, layout, full_row, field(batch_view(source.data(), 2, 3), nothing_out));
  pack(host, layout, shard{0}, field(batch_view(source.data(), 2, 3), nothing_out));
  std::vector<double> out(2 * 3 * 5, not_a_number);
  unpack(host, layout, full_row,
         field(row_view<const double>(nullptr, 0, 5), batch_view(out.data(), 2, 3, 5)));
  BOOST_TEST(out == std::vector<double>(30, 0.0), per_element());
}

BOOST_AUTO_TEST_CASE(case_15_micro_batch_of_masked_rows) {
  const std::vector<std::uint8_t> mask(2 * 4, 0);
  ids lengths(2, 777);
  ids starts(2, 777);
  lengths_from_mask(host, batch_view(mask.data(), 2, 4), lengths, starts);
  BOOST_TEST(lengths == (ids{0, 0}), per_element());
  const auto layout = make_layout(lengths, padding{fixed_total<8>{}, ghost_tail{}});
  const ids source(8, -1);
  ids row(8, 777);
  pack(host, layout, full_row, field(batch_view(source.data(), 2, 4), row));
  BOOST_TEST(row == ids(8, 0), per_element());
  ids out(8, 777);
  unpack(host, layout, full_row, field(row, batch_view(out.data(), 2, 4)));
  BOOST_TEST(out == ids(8, 0), per_element());
}

BOOST_AUTO_TEST_CASE(case_16_per_token_tables_have_the_padded_size) {
  const auto layout = make_layout(std::vector{5, 3}, each_of(4));
  ids table(12, 777);
  per_token(host, layout, full_row, position_ids(table));
  BOOST_TEST(table == (ids{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3}), per_element());
  ids real_size(8, 777);
  BOOST_CHECK_EXCEPTION(per_token(host, layout, full_row, position_ids(real_size)), invalid_input,
                        refused("array 0's rows", "8", "12"));
  BOOST_TEST(real_size == ids(8, 777), per_element());
}

BOOST_AUTO_TEST_CASE(case_17_output_keeps_the_padded_row_count) {
  const id_batch from({5, 3});
  const auto layout = make_layout(std::vector{5, 3}, each_of(4));
  BOOST_TEST(packed_ids(layout, full_row, from) ==
                 (ids{100, 101, 102, 103, 104, 0, 0, 0, 200, 201, 202, 0}),
             per_element());
  BOOST_TEST(to_vector(layout.cu_seqlens()) == (bounds{0, 5, 8}), per_element());
  BOOST_TEST(to_vector(layout.cu_seqlens_padded()) == (bounds{0, 8, 12}), per_element());
}

BOOST_AUTO_TEST_CASE(case_18_params_carry_the_real_bounds) {
  const auto layout = make_layout(std::vector{5, 3}, each_of(4));
  bounds seq_idx(12);
  bounds local(3);
  const auto params =
      make_packed_seq_params<attention_bounds::real_and_padded>(host, layout, seq_idx, local);
  BOOST_TEST(to_vector(params.cu_seqlens_q) == (bounds{0, 5, 8}), per_element());
  BOOST_TEST(to_vector(params.cu_seqlens_kv) == (bounds{0, 5, 8}), per_element());
  BOOST_TEST(to_vector(params.cu_seqlens_q_padded) == (bounds{0, 8, 12}), per_element());
  BOOST_TEST(to_vector(params.cu_seqlens_kv_padded) == (bounds{0, 8, 12}), per_element());
  BOOST_TEST(layout.has_padding());
  BOOST_TEST(!make_layout(std::vector{8, 4}, each_of(4)).has_padding());
}

BOOST_AUTO_TEST_CASE(case_19_padded_fields_are_never_null) {
  const auto layout = make_layout(std::vector{5, 3});
  bounds seq_idx(8);
  bounds local(3);
  const auto params =
      make_packed_seq_params<attention_bounds::real_and_padded>(host, layout, seq_idx, local);
  BOOST_TEST(to_vector(params.cu_seqlens_q_padded) == (bounds{0, 5, 8}), per_element());
  BOOST_TEST(to_vector(params.cu_seqlens_kv_padded) == (bounds{0, 5, 8}), per_element());
}

BOOST_AUTO_TEST_CASE(case_20_bounds_claim_three_times_the_tokens) {
  BOOST_CHECK_EXCEPTION(from_cu_seqlens(bounds{0, 256, 512, 768}, 256), invalid_input,
                        refused("cu_seqlens[3]", "768", "256"));
}

BOOST_AUTO_TEST_CASE(case_21_span_wider_than_the_input_row) {
  const ids source = tokens_of({6, 5}, 6);
  const auto layout =
      make_layout(std::vector{6, 5}, padding{each_multiple_of<4>{}, total_multiple_of<32>{}});
  BOOST_TEST(to_vector(layout.cu_seqlens_padded()) == (bounds{0, 8, 32}), per_element());
  BOOST_TEST(layout.max_seqlen() == 24);
  ids out(32, 777);
  pack(host, layout, full_row, field(batch_view(source.data(), 2, 6), out));
  ids expected(32, 0);
  std::iota(expected.begin(), expected.begin() + 6, 100);
  std::iota(expected.begin() + 8, expected.begin() + 13, 200);
  BOOST_TEST(out == expected, per_element());
}

BOOST_AUTO_TEST_CASE(case_28_labels_of_odd_lengths) {
  const id_batch from({5, 3});
  const std::vector lengths{5, 3};
  const auto halves = make_layout(lengths, each_of(4), context_parallel{2});
  BOOST_TEST(labels_of(halves, shard{0}, from) == (ids{101, 102, ign, ign, 201, ign}),
             per_element());
  BOOST_TEST(labels_of(halves, shard{1}, from) == (ids{103, 104, ign, ign, 202, ign}),
             per_element());
  const auto whole = make_layout(lengths, each_of(4));
  BOOST_TEST(labels_of(whole, full_row, from) ==
                 (ids{101, 102, 103, 104, ign, ign, ign, ign, 201, 202, ign, ign}),
             per_element());
  for (const int tiny : {0, 1}) {
    const auto layout = make_layout(std::vector{tiny}, each_of(4), context_parallel{2});
    const auto size = static_cast<std::size_t>(layout.shard_tokens());
    for (offset_t r = 0; r < 2; ++r) {
      BOOST_TEST(labels_of(layout, shard{r}, id_batch({tiny})) == ids(size, ign), per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(case_29_labels_of_padded_shards) {
  const id_batch from({3, 2});
  const auto layout = make_layout(std::vector{3, 2}, each_of(4), context_parallel{2});
  BOOST_TEST(packed_ids(layout, shard{0}, from) == (ids{100, 0, 200, 0}), per_element());
  BOOST_TEST(packed_ids(layout, shard{1}, from) == (ids{101, 102, 201, 0}), per_element());
  BOOST_TEST(labels_of(layout, shard{0}, from) == (ids{101, ign, 201, ign}), per_element());
  BOOST_TEST(labels_of(layout, shard{1}, from) == (ids{102, ign, ign, ign}), per_element());
}

BOOST_AUTO_TEST_CASE(case_30_label_at_the_edge_of_a_chunk) {
  const id_batch from({8});
  const auto layout = make_layout(std::vector{8}, no_padding{}, context_parallel{2});
  BOOST_TEST(labels_of(layout, shard{0}, from) == (ids{101, 102, 107, ign}), per_element());
  BOOST_TEST(labels_of(layout, shard{1}, from) == (ids{103, 104, 105, 106}), per_element());
}

BOOST_AUTO_TEST_CASE(case_31_labels_stay_at_the_rows_that_predict) {
  const id_batch from({3, 2});
  const auto layout = make_layout(std::vector{3, 2});
  const ids found = labels_of(layout, full_row, from);
  BOOST_TEST(found == (ids{101, 102, ign, 201, ign}), per_element());
  ids back(2 * 3, 777);
  unpack(host, layout, full_row, field(found, batch_view(back.data(), 2, 3), ign));
  BOOST_TEST(back == (ids{101, 102, ign, 201, ign, ign}), per_element());
}

BOOST_AUTO_TEST_CASE(case_32_shift_crosses_ranks_and_stops_at_documents) {
  const id_batch from({4, 4});
  const auto layout = make_layout(std::vector{4, 4}, no_padding{}, context_parallel{2});
  BOOST_TEST(labels_of(layout, shard{0}, from) == (ids{101, ign, 201, ign}), per_element());
  BOOST_TEST(labels_of(layout, shard{1}, from) == (ids{102, 103, 202, 203}), per_element());
}

BOOST_AUTO_TEST_CASE(case_48_padded_rows_are_never_read) {
  const auto layout = make_layout(std::vector{3}, each_of(4));
  const std::vector<double> rows{1, 2, 3, not_a_number};
  std::vector<double> out(5, not_a_number);
  unpack(host, layout, full_row, field(rows, batch_view(out.data(), 1, 5)));
  BOOST_TEST(out == (std::vector<double>{1, 2, 3, 0, 0}), per_element());
}

BOOST_AUTO_TEST_CASE(case_49_every_slot_is_written) {
  const auto layout = make_layout(std::vector{3, 0, 2},
                                  padding{each_multiple_of<4>{}, fixed_total<16>{}, ghost_tail{}});
  const std::vector<double> source{1, 2, 3,           not_a_number, not_a_number, not_a_number,
                                   4, 5, not_a_number};
  std::vector<double> row(16, not_a_number);
  pack(host, layout, full_row, field(batch_view(source.data(), 3, 3), row));
  BOOST_TEST(row == (std::vector<double>{1, 2, 3, 0, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
             per_element());
  std::vector<double> back(9, not_a_number);
  unpack(host, layout, full_row, field(row, batch_view(back.data(), 3, 3)));
  BOOST_TEST(back == (std::vector<double>{1, 2, 3, 0, 0, 0, 4, 5, 0}), per_element());
}

BOOST_AUTO_TEST_CASE(case_50_capacity_beyond_the_last_real_token) {
  const auto layout = from_cu_seqlens(bounds{0, 3, 8}, bounds{0, 4, 16}, 16);
  const ids source = tokens_of({3, 5}, 5);
  ids out(16, 777);
  pack(host, layout, full_row, field(batch_view(source.data(), 2, 5), out));
  BOOST_TEST(out == (ids{100, 101, 102, 0, 200, 201, 202, 203, 204, 0, 0, 0, 0, 0, 0, 0}),
             per_element());
  BOOST_CHECK_EXCEPTION(from_cu_seqlens(bounds{0, 3, 8}, bounds{0, 4, 12}, 16), invalid_input,
                        refused("cu_seqlens_padded[2]", "12", "16"));
}

BOOST_AUTO_TEST_CASE(case_51_gathered_shards_in_sequence_order) {
  const auto layout = make_layout(std::vector{4, 8}, each_of(4), context_parallel{2});
  const ids gathered{100, 103, 200, 201, 206, 207, 101, 102, 202, 203, 204, 205};
  ids out(2 * 8, 777);
  unpack(host, layout, all_shards, field(gathered, batch_view(out.data(), 2, 8)));
  BOOST_TEST(out == (ids{100, 101, 102, 103, 0, 0, 0, 0, 200, 201, 202, 203, 204, 205, 206, 207}),
             per_element());
  BOOST_CHECK_EXCEPTION(make_layout(std::vector{4, 6}, no_padding{}, context_parallel{2}),
                        invalid_input, refused("padded length of lengths[1]", "6", "4"));
}

BOOST_AUTO_TEST_CASE(case_52_round_trip_through_an_order) {
  const std::vector<offset_t> order{2, 0, 1};
  const id_batch from({2, 3, 1});
  const auto layout =
      make_layout(std::vector{2, 3, 1}, each_of(2), no_context_parallel{}, {.order = order});
  const ids row = packed_ids(layout, full_row, from);
  BOOST_TEST(row == (ids{300, 0, 100, 101, 200, 201, 202, 0}), per_element());
  ids back(3 * 3, 777);
  unpack(host, layout, full_row, field(row, batch_view(back.data(), 3, 3)));
  BOOST_TEST(back == (ids{100, 101, 0, 200, 201, 202, 300, 0, 0}), per_element());

  ids in_place = row;
  in_place.resize(9);
  const ids before = in_place;
  BOOST_CHECK_EXCEPTION(
      unpack(host, layout, full_row,
             field(row_view(in_place.data(), 8), batch_view(in_place.data(), 3, 3))),
      invalid_input, refused("field 0's target", "in the memory of field 0's source", "alias"));
  BOOST_TEST(in_place == before, per_element());
}

BOOST_AUTO_TEST_CASE(case_53_results_in_the_order_of_the_caller) {
  const std::vector<offset_t> sorted{1, 0, 2};
  const id_batch from({2, 5, 1});
  const auto layout =
      make_layout(std::vector{2, 5, 1}, no_padding{}, no_context_parallel{}, {.order = sorted});
  BOOST_TEST(to_vector(layout.cu_seqlens()) == (bounds{0, 5, 7, 8}), per_element());
  const ids row = packed_ids(layout, full_row, from);
  BOOST_TEST(row == (ids{200, 201, 202, 203, 204, 100, 101, 300}), per_element());
  ids back(3 * 5, 777);
  unpack(host, layout, full_row, field(row, batch_view(back.data(), 3, 5)));
  BOOST_TEST(back == (ids{100, 101, 0, 0, 0, 200, 201, 202, 203, 204, 300, 0, 0, 0, 0}),
             per_element());
}

BOOST_AUTO_TEST_CASE(case_54_round_trip_keeps_the_width) {
  const id_batch from({4, 2, 3});
  const auto layout = make_layout(std::vector{4, 2, 3});
  const ids row = packed_ids(layout, full_row, from);
  ids back(3 * 5, 777);
  unpack(host, layout, full_row, field(row, batch_view(back.data(), 3, 5)));
  BOOST_TEST(back == (ids{100, 101, 102, 103, 0, 200, 201, 0, 0, 0, 300, 301, 302, 0, 0}),
             per_element());
}

BOOST_AUTO_TEST_CASE(case_55_longest_segment_is_the_tail) {
  const std::vector lengths{3};
  const auto ghost = make_layout(lengths, padding{fixed_total<16>{}, ghost_tail{}});
  BOOST_TEST(ghost.max_seqlen() == 13);
  const auto absorbed = make_layout(lengths, padding{fixed_total<16>{}});
  BOOST_TEST(absorbed.max_seqlen() == 16);
  BOOST_TEST(to_vector(absorbed.cu_seqlens_padded()) == (bounds{0, 16}), per_element());
}

BOOST_AUTO_TEST_CASE(case_58_elements_above_two_to_the_31) {
  constexpr offset_t width = 8192;
  constexpr offset_t payload = 32768;
  const sparse_memory<std::int8_t> source(9 * width * payload);
  const batch_view view(source.data(), 9, width, payload);
  BOOST_TEST(view.at(8, 0) - source.data() == 2147483648);
  BOOST_TEST(view.at(8, 8191) + 32767 - source.data() == 2415919103);
  source.data()[2415919103] = 42;

  const auto layout = make_layout(std::vector<offset_t>(9, width));
  const sparse_memory<std::int8_t> target(9 * width * payload);
  const row_view rows(target.data(), 9 * width, payload);
  const auto move = detail::packing::make_operation(layout.view(), full_row, field(view, rows));
  move.process(9 * width - 1, 9 * width);
  BOOST_TEST(target.data()[2415919103] == 42);
  target.data()[2415919103] = 0;
  run_tiles(move, move.tiles() - 1, move.tiles());
  BOOST_TEST(target.data()[2415919103] == 42);
}

BOOST_AUTO_TEST_CASE(case_59_corrupt_lengths_and_totals) {
  BOOST_CHECK_EXCEPTION(make_layout(std::vector{3, -1}), invalid_input,
                        refused("lengths[1]", "-1", "at least 0"));
  BOOST_CHECK_EXCEPTION(from_cu_seqlens(bounds{0, 3, 2}, 2), invalid_input,
                        refused("cu_seqlens[2]", "2", "3"));
  constexpr offset_t claimed = offset_t{1} << 62;
  BOOST_CHECK_EXCEPTION(from_cu_seqlens(bounds{0, 3}, claimed), invalid_input,
                        refused("cu_seqlens[1]", "3", std::to_string(claimed)));
  BOOST_CHECK_EXCEPTION(make_layout(std::vector<offset_t>{3, claimed}), invalid_input,
                        refused("lengths[1]", std::to_string(claimed), "at most"));
}

BOOST_AUTO_TEST_CASE(case_60_products_of_sizes_are_64_bits) {
  constexpr offset_t rows = 2274987;
  constexpr offset_t payload = 1280;
  const sparse_memory<std::int8_t> memory(rows * payload);
  const row_view row(memory.data(), rows, payload);
  BOOST_TEST(row.touched().last - row.touched().first == 2911983360);
  const batch_view table(memory.data(), 1, rows, payload);
  BOOST_TEST(table.touched().last - table.touched().first == 2911983360);

  constexpr offset_t half = offset_t{1} << 30;
  BOOST_TEST(make_layout(std::vector<offset_t>{half, half - 1}).total_tokens() == 2147483647);
  BOOST_CHECK_EXCEPTION(make_layout(std::vector<offset_t>{half, half}), invalid_input,
                        refused("sum of the padded lengths", "2147483648", "2147483647"));
  BOOST_TEST(make_layout<std::int64_t>(std::vector<offset_t>{half, half}).total_tokens() ==
             2147483648);
}

BOOST_AUTO_TEST_CASE(case_61_many_packed_tokens) {
  constexpr offset_t tokens = 190485;
  constexpr offset_t payload = 16384;
  constexpr offset_t width = 190400;
  const sparse_memory<std::int8_t> rows(tokens * payload);
  const sparse_memory<std::int8_t> back(2 * width * payload);
  rows.data()[tokens * payload - 1] = 7;
  const auto layout = make_layout(std::vector<offset_t>{tokens - 100, 100});
  const auto move = detail::unpacking::make_operation<detail::unpacking::write::everything>(
      layout.view(), full_row,
      field(row_view<const std::int8_t>(rows.data(), tokens, payload),
            batch_view(back.data(), 2, width, payload)));
  // The last row is token 99 of sequence 1. Only its own pages are touched.
  const offset_t position = width + 99;
  const offset_t element = (position + 1) * payload - 1;
  BOOST_TEST(element > 2147483648);
  move.process(position, position + 1);
  BOOST_TEST(back.data()[element] == 7);
  back.data()[element] = 0;
  const offset_t tile = position / move.moves.move.shape.span(0).rows;
  run_tiles(move, tile, tile + 1);
  BOOST_TEST(back.data()[element] == 7);
}

BOOST_AUTO_TEST_CASE(case_62_ragged_offsets_are_64_bits) {
  const auto layout = make_layout(std::vector{131072});
  ids offsets(2, 777);
  ragged_offsets(host, layout.cu_seqlens(), 128, 128, offsets);
  BOOST_TEST(offsets == (ids{0, 2147483648}), per_element());
}

BOOST_AUTO_TEST_CASE(case_63_strided_inputs) {
  const auto layout = make_layout(std::vector{3, 2});
  const ids expected{100, 101, 102, 200, 201};
  ids out(5, 777);

  const ids transposed{100, 200, 101, 201, 102, -1};
  pack(host, layout, full_row, field(batch_view(transposed.data(), 2, 3, 1, 1, 2), out));
  BOOST_TEST(out == expected, per_element());

  const ids every_other{100, -1, 101, -1, 102, -1, 200, -1, 201, -1, -1, -1};
  out.assign(5, 777);
  pack(host, layout, full_row, field(batch_view(every_other.data(), 2, 3, 1, 6, 2), out));
  BOOST_TEST(out == expected, per_element());
}

BOOST_AUTO_TEST_CASE(case_76_bounds_are_never_sharded) {
  const std::vector lengths{1, 64, 65, 3};
  const id_batch from(lengths);
  const auto layout = make_layout(lengths, each_of(64), context_parallel{32});
  for (offset_t r = 0; r < 32; ++r) BOOST_TEST(packed_ids(layout, shard{r}, from).size() == 10);
  BOOST_TEST(to_vector(layout.cu_seqlens()) == (bounds{0, 1, 65, 130, 133}), per_element());
  BOOST_TEST(to_vector(layout.cu_seqlens_padded()) == (bounds{0, 64, 128, 256, 320}),
             per_element());
}

BOOST_AUTO_TEST_CASE(case_77_ids_without_labels) {
  const id_batch from({2, 1});
  const auto layout = make_layout(std::vector{2, 1}, each_of(2));
  BOOST_TEST(packed_ids(layout, full_row, from) == (ids{100, 101, 200, 0}), per_element());
}

BOOST_AUTO_TEST_CASE(case_78_positions_of_both_halves) {
  const auto layout = make_layout(std::vector{4803}, each_of(4), context_parallel{2});
  ids rank0(2402, 777);
  ids rank1(2402, 777);
  per_token(host, layout, shard{0}, position_ids(rank0));
  per_token(host, layout, shard{1}, position_ids(rank1));
  ids expected0(2402);
  std::iota(expected0.begin(), expected0.begin() + 1201, 0);
  std::iota(expected0.begin() + 1201, expected0.end(), 3603);
  ids expected1(2402);
  std::iota(expected1.begin(), expected1.end(), 1201);
  BOOST_TEST(rank0 == expected0, per_element());
  BOOST_TEST(rank1 == expected1, per_element());
  BOOST_TEST(real_tokens(layout, shard{0}) == 2401);
  BOOST_TEST(real_tokens(layout, shard{1}) == 2402);
  std::vector<std::uint8_t> mask(2402);
  per_token(host, layout, shard{0}, padding_mask(mask));
  BOOST_TEST(std::accumulate(mask.begin(), mask.end(), 0) == 1);
  BOOST_TEST(int{mask.back()} == 1);
}

BOOST_AUTO_TEST_CASE(case_79_sequences_are_isolated) {
  id_batch from({3, 2});
  const auto layout = make_layout(std::vector{3, 2}, each_of(4), context_parallel{2});
  for (offset_t r = 0; r < 2; ++r) {
    const ids row = packed_ids(layout, shard{r}, from);
    const ids targets = labels_of(layout, shard{r}, from);
    id_batch changed = from;
    std::fill_n(changed.tokens.begin(), changed.width, 5);
    const ids changed_row = packed_ids(layout, shard{r}, changed);
    const ids changed_targets = labels_of(layout, shard{r}, changed);
    for (std::size_t k = 2; k < 4; ++k) {
      BOOST_TEST(changed_row[k] == row[k]);
      BOOST_TEST(changed_targets[k] == targets[k]);
    }
    BOOST_TEST(changed_row[0] == 5);
  }
}

BOOST_AUTO_TEST_CASE(case_80_padding_is_not_routed) {
  const auto layout =
      make_layout(std::vector{192}, padding{fixed_total<256>{}}, context_parallel<4, striped>{});
  int routes = 0;
  for (offset_t r = 0; r < 4; ++r) {
    std::vector<std::uint8_t> mask(64, 7);
    per_token(host, layout, shard{r}, padding_mask(mask));
    BOOST_TEST(std::count(mask.begin(), mask.end(), 1) == 16);
    routes += 2 * static_cast<int>(std::count(mask.begin(), mask.end(), 0));
  }
  BOOST_TEST(routes == 384);
}

BOOST_AUTO_TEST_CASE(case_81_inner_padding_is_dropped) {
  const auto layout = make_layout(std::vector{3, 5}, each_of(4));
  std::vector<std::uint8_t> mask(12, 7);
  per_token(host, layout, full_row, padding_mask(mask));
  ids kept;
  for (std::size_t t = 0; t < mask.size(); ++t) {
    if (mask[t] == 0) kept.push_back(static_cast<std::int64_t>(t));
  }
  BOOST_TEST(kept == (ids{0, 1, 2, 4, 5, 6, 7, 8}), per_element());
}

BOOST_AUTO_TEST_CASE(case_82_longer_than_the_row_is_not_truncated) {
  const auto layout = from_cu_seqlens(bounds{0, 4}, 4);
  const ids row{1, 2, 3, 4};
  ids out(3, 777);
  BOOST_CHECK_EXCEPTION(unpack(host, layout, full_row, field(row, batch_view(out.data(), 1, 3))),
                        invalid_input, refused("field 0's target width", "3", "4"));
  BOOST_TEST(out == ids(3, 777), per_element());
}

BOOST_AUTO_TEST_CASE(case_83_malformed_bounds) {
  BOOST_CHECK_EXCEPTION(from_cu_seqlens(bounds{1, 4}, 4), invalid_input,
                        refused("cu_seqlens[0]", "1", "0"));
  BOOST_CHECK_EXCEPTION(from_cu_seqlens(bounds{0, 3}, 4), invalid_input,
                        refused("cu_seqlens[1]", "3", "4"));
  BOOST_CHECK_EXCEPTION(from_cu_seqlens(bounds{0, 3, 2, 4}, 4), invalid_input,
                        refused("cu_seqlens[2]", "2", "3"));
  BOOST_CHECK_EXCEPTION(from_cu_seqlens(bounds{0, 3}, 3, no_context_parallel{}, {.max_seqlen = 2}),
                        invalid_input, refused("max_seqlen", "2", "3"));
}

BOOST_AUTO_TEST_CASE(case_84_number_of_bounds) {
  BOOST_CHECK_EXCEPTION(from_cu_seqlens(bounds{0, 5}, 5, no_context_parallel{}, {.sequences = 2}),
                        invalid_input, refused("number of entries of cu_seqlens", "2", "3"));
}
