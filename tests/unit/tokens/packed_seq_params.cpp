// The parameters of attention libraries, against the definitions.
#define BOOST_TEST_MODULE packed_seq_params
#include "seqpack/tokens/packed_seq_params.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "seqpack/layout/adopt.hpp"
#include "seqpack/layout/layout.hpp"
#include "support/buffers.hpp"
#include "support/layouts.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using oracle::numbers;

template <class T>
numbers to_numbers(std::span<const T> values) {
  return {values.begin(), values.end()};
}

template <attention_bounds Bounds, class Layout>
void check_params(const Layout& layout, const oracle::packed& expected, std::size_t rank) {
  using Index = typename Layout::index_type;
  poisoned_buffer<Index> seq_idx(expected.total);
  poisoned_buffer<Index> shard_cu(static_cast<offset_t>(expected.cu.size()));
  const packed_seq_params<Index> params = make_packed_seq_params<Bounds>(
      host, layout, shard{static_cast<offset_t>(rank)}, seq_idx.span(), shard_cu.span());

  const numbers& attended = Bounds == attention_bounds::padded ? expected.cu_padded : expected.cu;
  BOOST_TEST(to_numbers(params.cu_seqlens_q) == attended, per_element());
  BOOST_TEST(to_numbers(params.cu_seqlens_kv) == attended, per_element());
  BOOST_TEST(to_numbers(params.cu_seqlens_q_padded) == expected.cu_padded, per_element());
  BOOST_TEST(to_numbers(params.cu_seqlens_kv_padded) == expected.cu_padded, per_element());
  BOOST_TEST(params.max_seqlen_q == expected.max_seqlen);
  BOOST_TEST(params.max_seqlen_kv == expected.max_seqlen);
  BOOST_TEST(params.qkv_format == "thd");
  BOOST_TEST(params.total_tokens == expected.total);
  BOOST_TEST(to_numbers(params.seq_idx) == oracle::sequence_index(expected.row), per_element());
  numbers local;
  for (oracle::number k = 0; k < static_cast<oracle::number>(expected.cu.size()); ++k) {
    const auto before = [k](const oracle::token& t) { return t.slot < k; };
    local.push_back(std::ranges::count_if(expected.shards[rank], before));
  }
  BOOST_TEST(to_numbers(params.cu_seqlens_shard) == local, per_element());

  // No copies: the spans are the layout's arrays and the caller's.
  BOOST_TEST(params.cu_seqlens_q_padded.data() == layout.cu_seqlens_padded().data());
  BOOST_TEST(params.seq_idx.data() == seq_idx.data());
  BOOST_TEST(params.cu_seqlens_shard.data() == shard_cu.data());
  BOOST_TEST(seq_idx.guards_intact());
  BOOST_TEST(shard_cu.guards_intact());
}

}  // namespace

BOOST_AUTO_TEST_CASE(random_layouts_with_both_bounds) {
  std::mt19937 random(71);
  for (int round = 0; round < 12; ++round) {
    const numbers lens = random_lengths(random, round % 6, 30);
    const numbers order = round % 2 == 0 ? numbers{} : random_order(random, round % 6);
    for_each_layout(lens, order, [](const auto& layout, const auto& expected, const auto&) {
      for (std::size_t rank = 0; rank < expected.shards.size(); ++rank) {
        check_params<attention_bounds::padded>(layout, expected, rank);
        check_params<attention_bounds::real_and_padded>(layout, expected, rank);
      }
    });
  }
}

BOOST_AUTO_TEST_CASE(padded_bounds_are_the_default) {
  const auto layout = make_layout(numbers{5, 3}, padding{each_multiple_of<4>{}});
  std::vector<std::int32_t> seq_idx(12);
  std::vector<std::int32_t> shard_cu(3);
  const auto params = make_packed_seq_params(host, layout, std::span(seq_idx), std::span(shard_cu));
  BOOST_TEST(to_numbers(params.cu_seqlens_q) == (numbers{0, 8, 12}), per_element());
}

BOOST_AUTO_TEST_CASE(total_is_that_of_the_full_row_for_any_context_parallel_size) {
  for (const offset_t cp : {1, 2, 4}) {
    const auto layout =
        make_layout(numbers{5, 3}, padding{each_multiple_of<8>{}}, context_parallel{cp});
    std::vector<std::int32_t> seq_idx(16);
    std::vector<std::int32_t> shard_cu(3);
    const auto params =
        make_packed_seq_params(host, layout, std::span(seq_idx), std::span(shard_cu));
    BOOST_TEST(params.total_tokens == 16);
    BOOST_TEST(params.seq_idx.size() == 16);
    BOOST_TEST(params.max_seqlen_q == 8);
  }
}

BOOST_AUTO_TEST_CASE(index_of_64_bits) {
  const auto layout = make_layout<std::int64_t>(numbers{5, 3}, padding{each_multiple_of<4>{}},
                                                context_parallel<2>{});
  check_params<attention_bounds::real_and_padded>(
      layout, oracle::pack({.lens = {5, 3}, .each = 4, .cp = 2}), 1);
  static_assert(std::is_same_v<decltype(packed_seq_params<std::int64_t>::seq_idx),
                               std::span<const std::int64_t>>);
}

BOOST_AUTO_TEST_CASE(adopted_bounds) {
  const auto layout = from_cu_seqlens(numbers{0, 3, 8}, numbers{0, 4, 16}, 16);
  std::vector<std::int32_t> seq_idx(16);
  std::vector<std::int32_t> shard_cu(3);
  const auto params = make_packed_seq_params<attention_bounds::real_and_padded>(
      host, layout, std::span(seq_idx), std::span(shard_cu));
  BOOST_TEST(to_numbers(params.cu_seqlens_q) == (numbers{0, 3, 8}), per_element());
  BOOST_TEST(to_numbers(params.cu_seqlens_q_padded) == (numbers{0, 4, 16}), per_element());
  BOOST_TEST(params.max_seqlen_q == 12);
  BOOST_TEST(layout.has_padding());
}

BOOST_AUTO_TEST_CASE(refused_sizes_write_nothing) {
  const auto layout = make_layout(numbers{5, 3}, padding{each_multiple_of<4>{}});
  poisoned_buffer<std::int32_t> seq_idx(12);
  poisoned_buffer<std::int32_t> shard_cu(3);
  BOOST_CHECK_EXCEPTION(
      make_packed_seq_params(host, layout, seq_idx.span().first(8), shard_cu.span()), invalid_input,
      refused_as("seq_idx is 8: it must be 12, the tokens of the layout"));
  BOOST_TEST(seq_idx.untouched());
  BOOST_TEST(shard_cu.untouched());
  BOOST_CHECK_EXCEPTION(
      make_packed_seq_params(host, layout, seq_idx.span(), shard_cu.span().first(2)), invalid_input,
      refused_as("bounds is 2: it must be 3, the entries of cu_seqlens"));
  BOOST_TEST(seq_idx.untouched());
  BOOST_TEST(shard_cu.untouched());
}

BOOST_AUTO_TEST_CASE(outputs_in_one_memory_are_refused) {
  const auto layout = make_layout(numbers{5, 3}, padding{each_multiple_of<4>{}});
  poisoned_buffer<std::int32_t> both(14);
  BOOST_CHECK_EXCEPTION(
      make_packed_seq_params(host, layout, both.span().first(12), both.span().last(3)),
      invalid_input, refused_as("bounds is in the memory of seq_idx: outputs must not alias"));
  BOOST_TEST(both.untouched());
}

BOOST_AUTO_TEST_CASE(ranks_that_share_the_row_have_bounds_of_their_own) {
  const auto layout =
      make_layout(numbers{37, 51, 40}, no_padding{}, context_parallel<2, row_contiguous>{});
  std::vector<std::int32_t> out(4);
  shard_bounds(host, layout, shard{1}, out);
  BOOST_TEST(out == (std::vector<std::int32_t>{0, 0, 24, 64}), per_element());
  const std::string why =
      "sharding is of the whole row: every rank has bounds of its own: say of which shard";
  BOOST_TEST(refusal([&] { shard_bounds(host, layout, out); }) == why);
  std::vector<std::int32_t> seq_idx(128);
  BOOST_TEST(refusal([&] {
               make_packed_seq_params(host, layout, std::span(seq_idx), std::span(out));
             }) == why);
  BOOST_TEST(refusal([&] { shard_bounds(host, layout, shard{2}, out); }) ==
             "rank is 2: it must be from 0 to 1, the last context-parallel rank");
}

BOOST_AUTO_TEST_CASE(shard_bounds_alone) {
  const auto layout =
      make_layout(numbers{5, 3}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  poisoned_buffer<std::int64_t> out(3);
  shard_bounds(host, layout, out.span());
  BOOST_TEST(out.values() == (std::vector<std::int64_t>{0, 4, 6}), per_element());
  poisoned_buffer<std::int64_t> wrong(4);
  BOOST_CHECK_EXCEPTION(shard_bounds(host, layout, wrong.span()), invalid_input,
                        refused_as("bounds is 4: it must be 3, the entries of cu_seqlens"));
  BOOST_TEST(wrong.untouched());
}

BOOST_AUTO_TEST_CASE(types_that_cannot_hold_the_bounds_are_refused) {
  const auto layout = make_layout(numbers{300});
  poisoned_buffer<std::int8_t> out(2);
  BOOST_CHECK_EXCEPTION(
      shard_bounds(host, layout, out.span()), invalid_input,
      refused_as("largest bound is 300: the element type of the array holds at most 127"));
  BOOST_TEST(out.untouched());
}

BOOST_AUTO_TEST_CASE(ragged_offsets_count_elements) {
  const auto layout = make_layout(numbers{5, 3}, padding{each_multiple_of<4>{}});
  poisoned_buffer<std::int64_t> out(3);
  ragged_offsets(host, layout.cu_seqlens(), 8, 64, out.span());
  BOOST_TEST(out.values() == (std::vector<std::int64_t>{0, 2560, 4096}), per_element());
  ragged_offsets(host, layout.cu_seqlens_padded(), 8, 64, out.span());
  BOOST_TEST(out.values() == (std::vector<std::int64_t>{0, 4096, 6144}), per_element());
  const std::vector<std::int32_t> bounds{0, 131072, std::numeric_limits<std::int32_t>::max()};
  ragged_offsets(host, std::span(bounds.data(), bounds.size()), 128, 128, out.span());
  BOOST_TEST(out.values() == (std::vector<std::int64_t>{0, 2147483648, 35184372072448}),
             per_element());
}

BOOST_AUTO_TEST_CASE(refused_ragged_offsets) {
  const auto layout = make_layout(numbers{5, 3});
  poisoned_buffer<std::int64_t> out(4);
  const auto refuse = [&](std::size_t size, offset_t heads, offset_t head_dim,
                          const auto& predicate) {
    BOOST_CHECK_EXCEPTION(
        ragged_offsets(host, layout.cu_seqlens(), heads, head_dim, out.span().first(size)),
        invalid_input, predicate);
    BOOST_TEST(out.untouched());
  };
  refuse(3, 0, 64, refused_as("heads is 0: it must be at least 1"));
  refuse(3, 8, -1, refused_as("head_dim is -1: it must be at least 1"));
  refuse(4, 8, 64, refused_as("bounds is 4: it must be 3, the entries of cu_seqlens"));
}

BOOST_AUTO_TEST_CASE(ragged_offsets_above_64_bits_are_refused) {
  const auto layout = make_layout(numbers{5, 3});
  poisoned_buffer<std::int64_t> out(3);
  constexpr offset_t huge = offset_t{1} << 40;
  BOOST_CHECK_EXCEPTION(
      ragged_offsets(host, layout.cu_seqlens(), huge, huge, out.span()), invalid_input,
      refused_as("heads * head_dim is 1099511627776 * 1099511627776: the last offset, "
                 "8 times that, must be at most 9223372036854775807"));
  BOOST_TEST(out.untouched());
}

BOOST_AUTO_TEST_CASE(ragged_offsets_of_any_bounds_do_not_wrap) {
  poisoned_buffer<std::int64_t> out(3);
  const auto refuse = [&](const std::vector<std::int64_t>& bounds, const std::string& text) {
    BOOST_CHECK_EXCEPTION(
        ragged_offsets(host, std::span<const std::int64_t>(bounds), 1 << 15, 1 << 15, out.span()),
        invalid_input, refused_as(text));
    BOOST_TEST(out.untouched());
  };
  refuse({0, offset_t{1} << 40, 3},
         "heads * head_dim is 32768 * 32768: the last offset, 1099511627776 times that, must be at "
         "most 9223372036854775807");
  refuse({0, -1, 3}, "bounds[1] is -1: it must be at least 0");
}

BOOST_AUTO_TEST_CASE(bounds_of_a_shard_over_the_arrays_of_the_layout) {
  std::vector<std::int64_t> cu(3);
  std::vector<std::int64_t> cu_padded(3);
  const auto view = build_layout<std::int64_t>(std::vector{5, 3}, padding{each_multiple_of<4>{}},
                                               no_context_parallel{}, {cu, cu_padded});
  BOOST_CHECK_EXCEPTION(
      shard_bounds(host, view, cu), invalid_input,
      refused_as("bounds is in the memory of the layout's cu_seqlens: outputs must not alias"));
  BOOST_TEST(cu == (std::vector<std::int64_t>{0, 5, 8}), per_element());
}
