#define BOOST_TEST_MODULE layout
#include "seqpack/layout/layout.hpp"

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <list>
#include <numeric>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "seqpack/layout/adopt.hpp"
#include "seqpack/policy/any_sharding.hpp"
#include "support/golden.hpp"
#include "support/oracle.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refusal;
using seqpack::testing::refused_as;
using lengths = std::vector<offset_t>;
using bounds = std::vector<offset_t>;

namespace {

template <class Index>
bounds plain(std::span<const Index> cu) {
  return {cu.begin(), cu.end()};
}

template <layout L>
bounds real(const L& l) {
  return plain(l.view().cu_seqlens());
}
template <layout L>
bounds padded(const L& l) {
  return plain(l.view().cu_seqlens_padded());
}

/// Where the sequences begin in every shard, and where the last one ends.
template <layout L>
bounds shard_bounds(const L& l) {
  const auto view = l.view();
  bounds result;
  for (offset_t k = 0; k <= view.segments; ++k) result.push_back(view.shard_begin(shard{0}, k));
  return result;
}

template <class Index = std::int32_t, class... Arguments>
std::string refused(const lengths& lens, const Arguments&... arguments) {
  return refusal([&] { make_layout<Index>(lens, arguments...); });
}

template <layout L>
void check_reference(const L& l, const golden::pack_case& c) {
  BOOST_TEST(real(l) == c.cu_seqlens, boost::test_tools::per_element());
  BOOST_TEST(padded(l) == c.cu_seqlens_padded, boost::test_tools::per_element());
  BOOST_TEST(l.max_seqlen() == c.max_seqlen);
  BOOST_TEST(l.total_tokens() == c.total_tokens);
  BOOST_TEST(l.shard_tokens() == static_cast<offset_t>(c.shards.at(0).size()));
  BOOST_TEST(l.has_padding() == (c.cu_seqlens.back() != c.total_tokens));
}

constexpr offset_t int32_limit = std::numeric_limits<std::int32_t>::max();

}  // namespace

static_assert(layout_index<std::int32_t> && layout_index<std::int64_t>);
static_assert(!layout_index<std::uint32_t> && !layout_index<std::int16_t>);
static_assert(integer_range<std::vector<int>> && integer_range<std::list<unsigned>>);
static_assert(integer_range<std::span<const std::uint64_t>> && integer_range<int[3]>);
static_assert(!integer_range<std::vector<float>> && !integer_range<std::vector<bool>>);
static_assert(!integer_range<int>);

// Reference values.

BOOST_AUTO_TEST_CASE(the_reference_has_the_same_bounds) {
  const auto cases = golden::pack_cases();
  BOOST_TEST(cases.size() == 80u);
  for (const golden::pack_case& c : cases) {
    BOOST_TEST_CONTEXT(c.name) {
      const each_multiple_of<> each{c.pad_each};
      const total_multiple_of<> multiple{c.pad_total_multiple};
      const seqpack::context_parallel cp{c.cp_size};
      const layout_options options{.width = c.width};
      if (c.pad_total_to) {
        const padding p{each, multiple, fixed_total<>{*c.pad_total_to}};
        check_reference(make_layout(c.seq_lengths, p, cp, options), c);
        check_reference(make_layout<std::int64_t>(c.seq_lengths, p, cp, options), c);
      } else {
        const padding p{each, multiple};
        check_reference(make_layout(c.seq_lengths, p, cp, options), c);
        check_reference(make_layout<std::int64_t>(c.seq_lengths, p, cp, options), c);
      }
    }
  }
}

// Known failures, by their number.

BOOST_AUTO_TEST_CASE(case_1_length_far_below_the_padded_one) {
  const auto l = make_layout(lengths{38}, padding{each_multiple_of<128>{}}, context_parallel<4>{});
  BOOST_TEST(l.total_tokens() == 128);
  BOOST_TEST(l.shard_tokens() == 32);
  BOOST_TEST(l.real_tokens() == 38);
}

BOOST_AUTO_TEST_CASE(case_2_and_3_lengths_below_one_chunk_for_each_rank) {
  const auto eight =
      make_layout(lengths{10}, padding{each_multiple_of<32>{}}, context_parallel<8>{});
  BOOST_TEST(eight.shard_tokens() == 4);
  const auto two = make_layout(lengths{2}, padding{each_multiple_of<16>{}}, context_parallel<2>{});
  BOOST_TEST(two.shard_tokens() == 8);
}

BOOST_AUTO_TEST_CASE(case_4_both_bounds_of_uneven_lengths) {
  const auto l = make_layout(lengths{9, 8, 8, 12, 8, 12}, padding{each_multiple_of<4>{}},
                             context_parallel<2>{});
  BOOST_TEST(real(l) == (bounds{0, 9, 17, 25, 37, 45, 57}));
  BOOST_TEST(padded(l) == (bounds{0, 12, 20, 28, 40, 48, 60}));
}

BOOST_AUTO_TEST_CASE(case_6_bounds_are_never_divided_by_hand) {
  const auto l =
      make_layout(lengths{4, 8, 6, 10}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  BOOST_TEST(real(l) == (bounds{0, 4, 12, 18, 28}));
  BOOST_TEST(padded(l) == (bounds{0, 4, 12, 20, 32}));
  BOOST_TEST(shard_bounds(l) == (bounds{0, 2, 6, 10, 16}));
}

BOOST_AUTO_TEST_CASE(case_7_bounds_of_a_shard_come_from_padded_lengths) {
  const auto l = make_layout(lengths{5, 3}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  BOOST_TEST(padded(l) == (bounds{0, 8, 12}));
  BOOST_TEST(shard_bounds(l) == (bounds{0, 4, 6}));
  BOOST_TEST(refused({5, 3}, no_padding{}, context_parallel<2>{}) ==
             "padded length of lengths[0] is 5: it must be a multiple of 4, what the sharding "
             "divides by");
}

BOOST_AUTO_TEST_CASE(case_8_equal_sequences_have_equal_shares) {
  const auto l = make_layout(lengths{6, 6}, padding{each_multiple_of<8>{}}, context_parallel<4>{});
  BOOST_TEST(shard_bounds(l) == (bounds{0, 2, 4}));
}

BOOST_AUTO_TEST_CASE(case_10_exact_fit_gets_no_extra_sequence) {
  const auto exact = make_layout(lengths{512, 512}, padding{fixed_total<1024>{}});
  BOOST_TEST(padded(exact) == (bounds{0, 512, 1024}));
  BOOST_TEST(!exact.has_padding());
  const auto one_more = make_layout(lengths{512, 512}, padding{fixed_total<1025>{}});
  BOOST_TEST(padded(one_more) == (bounds{0, 512, 1025}));
  BOOST_TEST(real(one_more) == (bounds{0, 512, 1024}));
  BOOST_TEST(one_more.has_padding());
}

BOOST_AUTO_TEST_CASE(case_12_empty_sequences_anywhere) {
  const padding each_4{each_multiple_of<4>{}};
  BOOST_TEST(padded(make_layout(lengths{0, 4}, each_4)) == (bounds{0, 0, 4}));
  BOOST_TEST(padded(make_layout(lengths{4, 0}, each_4)) == (bounds{0, 4, 4}));
}

BOOST_AUTO_TEST_CASE(case_13_lengths_of_zero_and_one) {
  const auto l = make_layout(lengths{0, 1, 0, 1});
  BOOST_TEST(real(l) == (bounds{0, 0, 1, 1, 2}));
  BOOST_TEST(padded(l) == (bounds{0, 0, 1, 1, 2}));
  BOOST_TEST(l.total_tokens() == 2);
  BOOST_TEST(l.max_seqlen() == 1);
}

BOOST_AUTO_TEST_CASE(case_14_and_15_nothing_but_empty_sequences) {
  const auto l = make_layout(lengths{0, 0}, padding{each_multiple_of<4>{}}, context_parallel<1>{});
  BOOST_TEST(real(l) == (bounds{0, 0, 0}));
  BOOST_TEST(padded(l) == (bounds{0, 0, 0}));
  BOOST_TEST(l.total_tokens() == 0);
  BOOST_TEST(l.shard_tokens() == 0);
  BOOST_TEST(l.max_seqlen() == 0);
  BOOST_TEST(!l.has_padding());
  BOOST_TEST(l.batch_size() == 2);
}

BOOST_AUTO_TEST_CASE(case_16_to_19_both_bounds_are_always_there) {
  const auto l = make_layout(lengths{5, 3}, padding{each_multiple_of<4>{}});
  BOOST_TEST(real(l) == (bounds{0, 5, 8}));
  BOOST_TEST(padded(l) == (bounds{0, 8, 12}));
  BOOST_TEST(l.total_tokens() == 12);
  BOOST_TEST(l.has_padding());
  const auto unpadded = make_layout(lengths{5, 3});
  BOOST_TEST(real(unpadded) == (bounds{0, 5, 8}));
  BOOST_TEST(padded(unpadded) == (bounds{0, 5, 8}));
  BOOST_TEST(!unpadded.has_padding());
}

BOOST_AUTO_TEST_CASE(case_21_a_last_sequence_wider_than_the_batch) {
  const auto l = make_layout(lengths{6, 5}, padding{each_multiple_of<4>{}, total_multiple_of<32>{}},
                             no_context_parallel{}, {.width = 6});
  BOOST_TEST(padded(l) == (bounds{0, 8, 32}));
  BOOST_TEST(l.max_seqlen() == 24);
  BOOST_TEST(l.max_length() == 6);
}

BOOST_AUTO_TEST_CASE(case_23_content_below_and_above_a_fixed_total) {
  BOOST_TEST(make_layout(lengths{6}, padding{fixed_total<8>{}}).total_tokens() == 8);
  BOOST_TEST(refused({10}, padding{fixed_total<8>{}}) ==
             "content is 10: the padded lengths must sum to at most 8, the fixed total");
  // The padded lengths count, not the real ones.
  BOOST_TEST(refused({5, 1}, padding{each_multiple_of<>{4}, fixed_total<>{8}}) ==
             "content is 12: the padded lengths must sum to at most 8, the fixed total");
}

BOOST_AUTO_TEST_CASE(case_24_a_common_multiple_of_ranks_and_blocks) {
  const seqpack::context_parallel three{3};
  BOOST_TEST(make_layout(lengths{20}, padding{each_multiple_of<>{48}}, three).total_tokens() == 48);
  BOOST_TEST(refused({20}, padding{each_multiple_of<>{32}}, three) ==
             "each_multiple_of is 32: it must be a multiple of 6, what the sharding divides by");
}

BOOST_AUTO_TEST_CASE(case_25_and_26_totals_in_blocks) {
  const auto total = [](offset_t real_tokens, offset_t multiple) {
    return make_layout(lengths{real_tokens}, padding{total_multiple_of<>{multiple}}).total_tokens();
  };
  BOOST_TEST(total(33, 16) == 48);
  BOOST_TEST(total(33, 32) == 64);
  BOOST_TEST(total(33, 128) == 128);
  BOOST_TEST(total(31936, 128) == 32000);
  BOOST_TEST(refused({100}, padding{total_multiple_of<>{128}, fixed_total<>{31936}}) ==
             "fixed_total is 31936: it must be a multiple of 128, the total multiple");
}

BOOST_AUTO_TEST_CASE(case_51_a_length_that_does_not_fit_is_refused) {
  BOOST_TEST(refused({4, 7}, no_padding{}, context_parallel<2>{}) ==
             "padded length of lengths[1] is 7: it must be a multiple of 4, what the sharding "
             "divides by");
  BOOST_TEST(refused({4, 7}, no_padding{}, seqpack::context_parallel{2, striped{}}) ==
             "padded length of lengths[1] is 7: it must be a multiple of 2, what the sharding "
             "divides by");
  BOOST_TEST(refused({4, 8}, no_padding{}, context_parallel<2>{}) == "accepted");
}

BOOST_AUTO_TEST_CASE(case_55_max_seqlen_includes_the_tail) {
  const auto ghost = make_layout(lengths{3}, padding{fixed_total<16>{}, ghost_tail{}});
  BOOST_TEST(padded(ghost) == (bounds{0, 3, 16}));
  BOOST_TEST(ghost.max_seqlen() == 13);
  const auto absorbed = make_layout(lengths{3}, padding{fixed_total<16>{}});
  BOOST_TEST(padded(absorbed) == (bounds{0, 16}));
  BOOST_TEST(absorbed.max_seqlen() == 16);
}

BOOST_AUTO_TEST_CASE(case_56_max_seqlen_is_a_host_integer) {
  const auto l = make_layout(lengths{5, 3}, padding{each_multiple_of<4>{}});
  static_assert(std::same_as<decltype(l.max_seqlen()), offset_t>);
  BOOST_TEST(l.max_seqlen() == 8);
  BOOST_TEST(l.view().max_seqlen() == 8);
}

BOOST_AUTO_TEST_CASE(case_57_a_fixed_total_does_not_depend_on_the_lengths) {
  for (const lengths& lens : {lengths{1}, lengths{60, 4}, lengths{0, 0, 9}}) {
    const auto l = make_layout(lens, padding{fixed_total<64>{}}, context_parallel<2>{});
    BOOST_TEST(l.total_tokens() == 64);
    BOOST_TEST(l.shard_tokens() == 32);
  }
}

BOOST_AUTO_TEST_CASE(case_59_negative_lengths_are_named) {
  BOOST_TEST(refused({3, -1}) == "lengths[1] is -1: a length must be at least 0");
  BOOST_TEST(refused<std::int64_t>({std::numeric_limits<offset_t>::min(), 3}) ==
             "lengths[0] is -9223372036854775808: a length must be at least 0");
  const std::array<std::int8_t, 2> bytes{4, -128};
  BOOST_TEST(refusal([&] { make_layout(bytes); }) ==
             "lengths[1] is -128: a length must be at least 0");
  // Also where it would be hidden in the total.
  BOOST_TEST(refused({8, -1, 1}, padding{fixed_total<64>{}}) ==
             "lengths[1] is -1: a length must be at least 0");
}

BOOST_AUTO_TEST_CASE(case_60_totals_up_to_the_range_of_the_index) {
  const auto l = make_layout(lengths{int32_limit - 1, 1});
  BOOST_TEST(l.total_tokens() == 2147483647);
  BOOST_TEST(padded(l) == (bounds{0, 2147483646, 2147483647}));
  const std::string range = ": it must be at most 2147483647, the range of the type of cu_seqlens";
  BOOST_TEST(refused({int32_limit, 1}) == "sum of the padded lengths is 2147483648" + range);
  BOOST_TEST(refused({int32_limit + 1}) == "lengths[0] is 2147483648" + range);
  BOOST_TEST(refused({int32_limit}, padding{each_multiple_of<>{16}}) ==
             "sum of the padded lengths is 2147483648" + range);
  BOOST_TEST(make_layout<std::int64_t>(lengths{int32_limit, 1}).total_tokens() == 2147483648);
}

BOOST_AUTO_TEST_CASE(case_60_a_total_above_the_range_is_not_called_a_sum) {
  // One real token: what is too large is the total that the policy asks for.
  const std::string rounded = refused({1}, padding{total_multiple_of<>{offset_t{1} << 32}});
  BOOST_TEST(rounded.find("4294967296") != std::string::npos);
  BOOST_TEST(rounded.find("2147483647") != std::string::npos);
  BOOST_TEST(rounded.find("sum of the padded lengths") == std::string::npos);
  const std::string fixed = refused({1}, padding{fixed_total<>{offset_t{1} << 32}});
  BOOST_TEST(fixed.find("4294967296") != std::string::npos);
  BOOST_TEST(fixed.find("2147483647") != std::string::npos);
  BOOST_TEST(fixed.find("sum of the padded lengths") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(case_61_a_layout_of_more_than_two_to_the_31_tokens) {
  const offset_t half = offset_t{1} << 31;
  const auto l = make_layout<std::int64_t>(lengths{half, half - 3}, padding{each_multiple_of<16>{}},
                                           context_parallel<8>{});
  BOOST_TEST(l.total_tokens() == 2 * half);
  BOOST_TEST(l.shard_tokens() == half / 4);
  const auto view = l.view();
  const token_ref last = view.token_at(full_row, 2 * half - 4);
  BOOST_TEST(last.slot == 1);
  BOOST_TEST(last.index == half - 4);
  BOOST_TEST(last.real());
  BOOST_TEST(!view.token_at(full_row, 2 * half - 3).real());
  BOOST_TEST(view.row_of(shard{0}, 1, half - 1) == half / 4 - 1);
  BOOST_TEST(view.token_at(all_shards, half / 4 - 1).index == half - 1);
}

BOOST_AUTO_TEST_CASE(case_82_a_length_above_the_width_is_never_truncated) {
  const auto with_width = [](const lengths& lens, offset_t width) {
    return refused(lens, no_padding{}, no_context_parallel{}, layout_options{.width = width});
  };
  BOOST_TEST(with_width({4}, 3) ==
             "lengths[0] is 4: a length must be at most 3, the width of the batch");
  BOOST_TEST(with_width({3, 0, 9}, 3) ==
             "lengths[2] is 9: a length must be at most 3, the width of the batch");
  BOOST_TEST(with_width({3, 3}, 3) == "accepted");
  const std::string range = ": it must be from 0 to 281474976710656";
  BOOST_TEST(with_width({3}, -1) == "width is -1" + range);
  BOOST_TEST(with_width({3}, max_tokens) == "accepted");
  BOOST_TEST(with_width({3}, max_tokens + 1) == "width is 281474976710657" + range);
}

// The rules, one by one.

BOOST_AUTO_TEST_CASE(an_empty_batch_has_no_tokens) {
  const auto l = make_layout(lengths{});
  BOOST_TEST(real(l) == bounds{0});
  BOOST_TEST(padded(l) == bounds{0});
  BOOST_TEST(l.total_tokens() == 0);
  BOOST_TEST(l.max_seqlen() == 0);
  BOOST_TEST(!l.has_padding());
  BOOST_TEST(make_layout(lengths{}, padding{each_multiple_of<8>{}}, context_parallel<4>{})
                 .total_tokens() == 0);
}

BOOST_AUTO_TEST_CASE(an_empty_batch_and_a_total) {
  BOOST_TEST(refused({}, padding{fixed_total<8>{}}) ==
             "number of sequences is 0: it must be at least 1, so that one can absorb the tail of "
             "8 tokens (or use ghost_tail)");
  const auto multiple = make_layout(lengths{}, padding{total_multiple_of<8>{}});
  BOOST_TEST(padded(multiple) == bounds{0});
  const auto ghost = make_layout(lengths{}, padding{fixed_total<8>{}, ghost_tail{}});
  BOOST_TEST(real(ghost) == (bounds{0, 0}));
  BOOST_TEST(padded(ghost) == (bounds{0, 8}));
  BOOST_TEST(ghost.max_seqlen() == 8);
  BOOST_TEST(ghost.has_padding());
  BOOST_TEST(ghost.sequences() == 0);
}

BOOST_AUTO_TEST_CASE(a_ghost_makes_two_more_entries_whatever_the_lengths_are) {
  for (const lengths& lens : {lengths{}, lengths{8}, lengths{5, 3}, lengths{0, 0}, lengths{9, 0}}) {
    const auto entries = lens.size() + 2;
    const auto multiple = make_layout(lens, padding{total_multiple_of<8>{}, ghost_tail{}});
    BOOST_TEST(multiple.cu_seqlens().size() == entries);
    BOOST_TEST(multiple.cu_seqlens_padded().size() == entries);
    const auto fixed = make_layout(lens, padding{fixed_total<16>{}, ghost_tail{}});
    BOOST_TEST(fixed.cu_seqlens().size() == entries);
    BOOST_TEST(fixed.cu_seqlens_padded().size() == entries);
    BOOST_TEST(fixed.sequences() == static_cast<offset_t>(lens.size()));
  }
  // Without a total there is no tail, and so no ghost.
  BOOST_TEST(make_layout(lengths{5}, padding{ghost_tail{}}).cu_seqlens().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_ghost_leaves_the_real_sequences_as_they_are) {
  const auto l = make_layout(lengths{5, 3},
                             padding{each_multiple_of<4>{}, total_multiple_of<32>{}, ghost_tail{}},
                             context_parallel<2>{});
  BOOST_TEST(real(l) == (bounds{0, 5, 8, 8}));
  BOOST_TEST(padded(l) == (bounds{0, 8, 12, 32}));
  BOOST_TEST(l.max_seqlen() == 20);
}

BOOST_AUTO_TEST_CASE(an_empty_last_sequence_can_absorb_the_tail) {
  const auto l = make_layout(lengths{5, 0}, padding{fixed_total<16>{}});
  BOOST_TEST(real(l) == (bounds{0, 5, 5}));
  BOOST_TEST(padded(l) == (bounds{0, 5, 16}));
  BOOST_TEST(l.max_seqlen() == 11);
}

BOOST_AUTO_TEST_CASE(the_last_padded_length_need_not_be_a_multiple_of_each) {
  const auto l = make_layout(lengths{5, 3}, padding{each_multiple_of<8>{}, fixed_total<20>{}},
                             context_parallel<2>{});
  BOOST_TEST(padded(l) == (bounds{0, 8, 20}));
}

BOOST_AUTO_TEST_CASE(the_tail_must_fit_the_sharding) {
  const context_parallel<2> two;
  const std::string four = ": it must be a multiple of 4, what the sharding divides by";
  const padding absorbed{each_multiple_of<4>{}, total_multiple_of<3>{}};
  BOOST_TEST(refused({4, 4}, absorbed, two) == "padded length of lengths[1] is 5" + four);
  BOOST_TEST(refused({8, 4}, absorbed, two) == "accepted");
  const padding ghost{each_multiple_of<4>{}, total_multiple_of<3>{}, ghost_tail{}};
  BOOST_TEST(refused({4, 4}, ghost, two) == "padded length of the ghost sequence is 1" + four);
  BOOST_TEST(refused({8, 4}, ghost, two) == "accepted");
  // The tail may make the last length fit; under a ghost nothing does.
  BOOST_TEST(refused({4, 3}, padding{fixed_total<16>{}}, two) == "accepted");
  BOOST_TEST(refused({4, 3}, padding{fixed_total<16>{}, ghost_tail{}}, two) ==
             "padded length of lengths[1] is 3" + four);
}

BOOST_AUTO_TEST_CASE(policies_that_do_not_fit_are_refused_when_the_layout_is_made) {
  const seqpack::context_parallel four{4};
  BOOST_TEST(refused({8}, padding{each_multiple_of<>{12}}, four) ==
             "each_multiple_of is 12: it must be a multiple of 8, what the sharding divides by");
  BOOST_TEST(refused({8}, padding{fixed_total<>{12}}, four) ==
             "fixed_total is 12: it must be a multiple of 8, what the sharding divides by");
}

BOOST_AUTO_TEST_CASE(the_first_wrong_length_is_named_among_many) {
  lengths lens(20000, 8);
  lens[12345] = 6;
  lens[19999] = 5;
  BOOST_TEST(refused(lens, no_padding{}, context_parallel<2>{}) ==
             "padded length of lengths[12345] is 6: it must be a multiple of 4, what the sharding "
             "divides by");
  lens[15000] = -3;
  BOOST_TEST(refused(lens, padding{each_multiple_of<8>{}}, context_parallel<2>{}) ==
             "lengths[15000] is -3: a length must be at least 0");
}

BOOST_AUTO_TEST_CASE(sums_never_wrap) {
  // 16,384 lengths of 2^48 sum to 2^62; two of those sums would wrap.
  const lengths longest(40000, max_tokens);
  const std::string text = refused<std::int64_t>(longest);
  BOOST_TEST(text.starts_with("sum of the padded lengths is "));
  BOOST_TEST(text.find("281474976710656") != std::string::npos);
  const lengths ones(40000, 1);
  const std::string widened = refused<std::int64_t>(ones, padding{each_multiple_of<>{max_tokens}});
  BOOST_TEST(widened.starts_with("sum of the padded lengths is "));
  BOOST_TEST(refused(ones, padding{each_multiple_of<>{int32_limit}})
                 .starts_with("sum of the padded lengths is "));
  BOOST_TEST(make_layout<std::int64_t>(lengths{max_tokens}).total_tokens() == max_tokens);
}

BOOST_AUTO_TEST_CASE(the_whole_sum_is_named) {
  // More lengths than any block of a loop: 100,000 times 2^16, and all of it is above the range.
  const lengths lens(100000, 65536);
  BOOST_TEST(refused(lens) ==
             "sum of the padded lengths is 6553600000: it must be at most 2147483647, the range of "
             "the type of cu_seqlens");
}

BOOST_AUTO_TEST_CASE(unsigned_lengths_are_named_by_their_own_value) {
  const std::vector<std::uint64_t> lens{1, std::uint64_t{1} << 63};
  const std::string text = refusal([&] { make_layout<std::int64_t>(lens); });
  BOOST_TEST(text.starts_with("lengths[1] is 9223372036854775808: "));
  const std::vector<std::uint64_t> largest{std::numeric_limits<std::uint64_t>::max()};
  BOOST_TEST(
      refusal([&] { make_layout(largest); }).starts_with("lengths[0] is 18446744073709551615: "));
}

BOOST_AUTO_TEST_CASE(a_width_is_blamed_only_where_one_is_given) {
  const std::string text = refused<std::int64_t>({max_tokens + 1});
  BOOST_TEST(text.starts_with("lengths[0] is 281474976710657: "));
  BOOST_TEST(text.find("281474976710656") != std::string::npos);
  BOOST_TEST(text.find("width") == std::string::npos);
}

// Ranges of lengths.

BOOST_AUTO_TEST_CASE(any_range_of_integers) {
  const padding each_4{each_multiple_of<4>{}};
  const auto check = [&](const auto& lens) {
    BOOST_TEST(real(make_layout(lens, each_4)) == (bounds{0, 5, 5, 8}));
    BOOST_TEST(padded(make_layout(lens, each_4)) == (bounds{0, 8, 8, 12}));
    BOOST_TEST(padded(make_layout<std::int64_t>(lens, each_4)) == (bounds{0, 8, 8, 12}));
  };
  const std::vector<int> vector{5, 0, 3};
  check(vector);
  check(std::array<short, 3>{5, 0, 3});
  check(std::list<unsigned>{5, 0, 3});
  const std::vector<std::uint64_t> unsigned_numbers{5, 0, 3};
  check(std::span<const std::uint64_t>(unsigned_numbers));
  check(vector | std::views::transform([](int n) { return n; }));
  check(std::vector<std::int8_t>{5, 0, 3});
  const int plain_array[] = {5, 0, 3};
  check(plain_array);
}

BOOST_AUTO_TEST_CASE(a_list_of_lengths_names_its_entries_too) {
  BOOST_TEST(refusal([] { make_layout(std::list<int>{1, 2, -3}); }) ==
             "lengths[2] is -3: a length must be at least 0");
}

BOOST_AUTO_TEST_CASE(static_and_dynamic_policies_make_the_same_layout) {
  const lengths lens{5, 0, 3, 17};
  const auto same = [&](const auto& fixed, const auto& at_run_time) {
    BOOST_TEST(real(fixed) == real(at_run_time));
    BOOST_TEST(padded(fixed) == padded(at_run_time));
    BOOST_TEST(fixed.max_seqlen() == at_run_time.max_seqlen());
    BOOST_TEST(fixed.shard_tokens() == at_run_time.shard_tokens());
  };
  same(make_layout(lens, padding{each_multiple_of<8>{}}, context_parallel<4>{}),
       make_layout(lens, padding{each_multiple_of<>{8}}, seqpack::context_parallel{4}));
  same(make_layout(lens, padding{each_multiple_of<8>{}, total_multiple_of<64>{}, ghost_tail{}},
                   context_parallel<4, striped>{}),
       make_layout(lens, padding{each_multiple_of<>{8}, total_multiple_of<>{64}, ghost_tail{}},
                   seqpack::context_parallel{4, striped{}}));
  same(make_layout(lens, padding{each_multiple_of<8>{}, fixed_total<64>{}},
                   context_parallel<4, contiguous>{}),
       make_layout(lens, padding{each_multiple_of<>{8}, fixed_total<>{64}},
                   seqpack::context_parallel{4, contiguous{}}));
}

// Many sequences.

BOOST_AUTO_TEST_CASE(many_sequences) {
  for (const std::size_t batch : {std::size_t{65536}, std::size_t{1000000}}) {
    std::vector<int> lens(batch);
    for (std::size_t k = 0; k < batch; ++k) lens[k] = static_cast<int>(k % 7) + 1;
    const auto l = make_layout(lens, padding{each_multiple_of<4>{}}, context_parallel<2>{});
    offset_t content = 0;
    bool right = true;
    for (std::size_t k = 0; k < batch; ++k) {
      right = right && l.cu_seqlens_padded()[k] == content;
      content += oracle::next_multiple(lens[k], 4);
    }
    BOOST_TEST(right);
    BOOST_TEST(l.total_tokens() == content);
    BOOST_TEST(l.real_tokens() == std::accumulate(lens.begin(), lens.end(), offset_t{0}));
    BOOST_TEST(l.batch_size() == static_cast<offset_t>(batch));

    const auto view = l.view();
    const auto last = static_cast<offset_t>(batch) - 1;
    const auto length = static_cast<offset_t>(lens.back());
    BOOST_TEST(view.token_at(full_row, content - 1).slot == last);
    BOOST_TEST(view.token_at(full_row, view.begin_of(last)).real());
    BOOST_TEST(view.row_of(full_row, last, length - 1) == view.begin_of(last) + length - 1);
  }
}

// The core call, into memory of the caller.

namespace {

struct memory {
  std::vector<std::int32_t> cu;
  std::vector<std::int32_t> cu_padded;

  explicit memory(std::size_t entries) : cu(entries, -7), cu_padded(entries, -7) {}
  layout_storage<std::int32_t> storage() { return {cu, cu_padded}; }
  bool untouched() const {
    const auto is_old = [](std::int32_t entry) { return entry == -7; };
    return std::ranges::all_of(cu, is_old) && std::ranges::all_of(cu_padded, is_old);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(build_layout_uses_the_memory_that_it_is_given) {
  memory m(4);  // one more entry than needed
  const auto view = build_layout(lengths{5, 3}, padding{each_multiple_of<4>{}},
                                 context_parallel<2>{}, m.storage());
  BOOST_TEST(view.cu == m.cu.data());
  BOOST_TEST(view.cu_padded == m.cu_padded.data());
  BOOST_TEST(m.cu == (std::vector<std::int32_t>{0, 5, 8, -7}));
  BOOST_TEST(m.cu_padded == (std::vector<std::int32_t>{0, 8, 12, -7}));
  BOOST_TEST(view.total == 12);
}

BOOST_AUTO_TEST_CASE(build_layout_refuses_memory_that_is_too_small) {
  memory m(3);
  const auto build = [&](const lengths& lens, const auto& padding) {
    return refusal([&] { build_layout(lens, padding, no_context_parallel{}, m.storage()); });
  };
  BOOST_TEST(build({1, 2, 3}, no_padding{}) ==
             "size of cu_seqlens is 3: it must hold at least 4 entries");
  BOOST_TEST(build({1, 2}, padding{fixed_total<8>{}, ghost_tail{}}) ==
             "size of cu_seqlens is 3: it must hold at least 4 entries");
  m.cu.resize(4, -7);
  BOOST_TEST(build({1, 2, 3}, no_padding{}) ==
             "size of cu_seqlens_padded is 3: it must hold at least 4 entries");
  BOOST_TEST(m.untouched());
}

BOOST_AUTO_TEST_CASE(nothing_is_written_before_all_checks_have_passed) {
  memory m(3);
  const auto fails = [&](const lengths& lens, const auto& padding, const auto& cp,
                         const std::string& text) {
    BOOST_CHECK_EXCEPTION(build_layout(lens, padding, cp, m.storage()), invalid_input,
                          refused_as(text));
    BOOST_TEST(m.untouched());
  };
  const no_context_parallel one;
  fails({1, -1}, no_padding{}, one, "lengths[1] is -1: a length must be at least 0");
  fails({1, 2}, padding{fixed_total<2>{}}, one,
        "content is 3: the padded lengths must sum to at most 2, the fixed total");
  fails(
      {4, 3}, no_padding{}, context_parallel<2>{},
      "padded length of lengths[1] is 3: it must be a multiple of 4, what the sharding divides by");
  fails({int32_limit, 1}, no_padding{}, one,
        "sum of the padded lengths is 2147483648: it must be at most 2147483647, the range of the "
        "type of cu_seqlens");
  fails(
      {4, 4}, padding{total_multiple_of<3>{}}, context_parallel<2>{},
      "padded length of lengths[1] is 5: it must be a multiple of 4, what the sharding divides by");
  fails({8, 8}, padding{each_multiple_of<>{6}}, context_parallel<2>{},
        "each_multiple_of is 6: it must be a multiple of 4, what the sharding divides by");
}

BOOST_AUTO_TEST_CASE(more_sequences_than_bounds_can_count_are_refused) {
  memory m(1);
  const auto none = [](offset_t) { return 0; };
  const auto build = [&](offset_t count) {
    return refusal([&] {
      build_layout(std::views::iota(offset_t{0}, count) | std::views::transform(none), no_padding{},
                   no_context_parallel{}, m.storage());
    });
  };
  BOOST_TEST(build(2147483646) ==
             "number of sequences is 2147483646: it must be at most 2147483645");
  BOOST_TEST(m.untouched());
}

static_assert([] {
  constexpr std::array lens{5, 3};
  std::array<std::int32_t, 3> cu{};
  std::array<std::int32_t, 3> cu_padded{};
  const auto view = build_layout<std::int32_t>(lens, padding{each_multiple_of<4>{}},
                                               context_parallel<2>{}, {cu, cu_padded});
  return view.total == 12 && cu == std::array{0, 5, 8} && cu_padded == std::array{0, 8, 12} &&
         view.max_seqlen() == 8 && view.has_padding();
}());

// The owner.

BOOST_AUTO_TEST_CASE(copies_are_deep) {
  auto l = make_layout(lengths{5, 3}, padding{each_multiple_of<4>{}});
  const auto copy = l;
  const auto* const before = copy.view().cu;
  l = make_layout(lengths{1}, padding{each_multiple_of<4>{}});
  BOOST_TEST(copy.view().cu == before);
  BOOST_TEST(copy.view().cu != l.view().cu);
  BOOST_TEST(padded(copy) == (bounds{0, 8, 12}));
  BOOST_TEST(copy.total_tokens() == 12);
  BOOST_TEST(padded(l) == (bounds{0, 4}));
  BOOST_TEST(l.total_tokens() == 4);
  const auto moved = std::move(l);
  BOOST_TEST(padded(moved) == (bounds{0, 4}));
}

BOOST_AUTO_TEST_CASE(the_owner_says_what_the_view_says) {
  const auto l = make_layout(lengths{5, 3}, padding{each_multiple_of<>{4}, fixed_total<>{16}},
                             seqpack::context_parallel{2});
  const auto view = l.view();
  BOOST_TEST(l.batch_size() == view.batch_size());
  BOOST_TEST(l.total_tokens() == view.total_tokens());
  BOOST_TEST(l.shard_tokens() == view.shard_tokens());
  BOOST_TEST(l.max_seqlen() == view.max_seqlen());
  BOOST_TEST(l.max_length() == view.max_length());
  BOOST_TEST(l.has_padding() == view.has_padding());
  BOOST_TEST(!l.has_ghost());
  BOOST_TEST(make_layout(lengths{5}, padding{total_multiple_of<5>{}, ghost_tail{}}).has_ghost());
  BOOST_TEST(l.context_parallel().size() == 2);
}

BOOST_AUTO_TEST_CASE(layouts_of_all_paddings_are_one_type) {
  using owner = packed_layout<context_parallel<2>>;
  const context_parallel<2> cp;
  std::vector<owner> all{make_layout(lengths{4, 8}, no_padding{}, cp)};
  all.push_back(make_layout(lengths{4, 8}, padding{each_multiple_of<8>{}}, cp));
  all.push_back(make_layout(lengths{4, 8}, padding{fixed_total<>{16}, ghost_tail{}}, cp));
  all.push_back(from_cu_seqlens(std::vector{0, 4, 9}, std::vector{0, 4, 16}, 16, cp));
  all.push_back(from_position_ids(std::vector{0, 1, 2, 3}, cp));
  all.push_back(unpacked_layout(lengths{1, 2}, 4, cp));
  all.push_back(layout_part(all[1], 1, 1));
  const std::vector<std::int64_t> totals{12, 16, 16, 16, 4, 8, 8};
  for (std::size_t k = 0; k < all.size(); ++k) {
    BOOST_TEST(all[k].total_tokens() == totals[k]);
    BOOST_TEST(all[k].has_ghost() == (k == 2));
  }
  all[0] = all[3];
  BOOST_TEST(real(all[0]) == (bounds{0, 4, 9}));
}

BOOST_AUTO_TEST_CASE(a_static_policy_becomes_one_of_run_time) {
  using late = packed_layout<context_parallel<dynamic, any_sharding>>;
  const padding each{each_multiple_of<8>{}};
  const std::vector<offset_t> order{1, 0};
  const auto fixed = make_layout(lengths{5, 3}, each, context_parallel<2>{}, {.order = order});
  late layout = fixed;
  BOOST_TEST(real(layout) == real(fixed));
  BOOST_TEST(padded(layout) == padded(fixed));
  BOOST_TEST(layout.view().slot(0) == 1);
  BOOST_TEST(layout.context_parallel().size() == 2);
  const late::view_type view = fixed.view();
  for (const offset_t index : {0, 3, 4, 7}) {
    const auto token = fixed.view().token_at(shard{1}, index);
    BOOST_TEST(view.token_at(shard{1}, index).index == token.index);
    BOOST_TEST(layout.view().token_at(shard{1}, index).index == token.index);
  }
  layout = make_layout(lengths{5, 3}, each, context_parallel<4, striped>{});
  BOOST_TEST(layout.view().token_at(shard{1}, 1).index == 5);
  static_assert(!std::is_convertible_v<late, packed_layout<context_parallel<2>>>);
}
