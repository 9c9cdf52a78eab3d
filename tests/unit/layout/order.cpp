#define BOOST_TEST_MODULE order
#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "support/oracle.hpp"
#include "support/refused.hpp"

// An order maps the slots of the packed row to sequences of the batch.

using namespace seqpack;
using oracle::numbers;
using seqpack::testing::refusal;

namespace {

std::vector<offset_t> to_order(const numbers& order) {
  return {order.begin(), order.end()};
}

std::string refused(const numbers& lens, const numbers& order, offset_t width = max_tokens) {
  const auto entries = to_order(order);
  return refusal([&] {
    make_layout(lens, no_padding{}, no_context_parallel{}, {.width = width, .order = entries});
  });
}

/// The batch tokens of a place, row by row, as ids; 0 in padding.
template <class View, class Place>
numbers ids(const View& view, Place at) {
  numbers result;
  for (offset_t row = 0; row < view.rows(at); ++row) {
    const token_ref token = view.token_at(at, row);
    result.push_back(token.real() ? oracle::id(view.sequence_in(token.slot), token.index) : 0);
  }
  return result;
}

template <layout L>
void check_against(const L& l, const oracle::request& r) {
  const oracle::packed p = oracle::pack(r);
  const auto view = l.view();
  BOOST_TEST_REQUIRE((p.refused == oracle::refusal::none));
  BOOST_TEST(l.cu_seqlens() == p.cu, boost::test_tools::per_element());
  BOOST_TEST(l.cu_seqlens_padded() == p.cu_padded, boost::test_tools::per_element());
  BOOST_TEST(l.batch_size() == static_cast<offset_t>(r.lens.size()));
  BOOST_TEST(l.sequences() == static_cast<offset_t>(r.order.size()));
  BOOST_TEST(ids(view, full_row) == oracle::values(p.row, oracle::id, 0));
  BOOST_TEST(ids(view, all_shards) == oracle::values(p.all_shards, oracle::id, 0));
  for (offset_t b = 0; b < l.batch_size(); ++b) {
    const auto found = std::ranges::find(r.order, b);
    const bool packed = found != r.order.end();
    BOOST_TEST(view.slot(b) == (packed ? found - r.order.begin() : -1));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(case_52_order_of_three) {
  const std::vector<offset_t> order{2, 0, 1};
  const auto l =
      make_layout(std::array{2, 3, 1}, no_padding{}, no_context_parallel{}, {.order = order});
  BOOST_TEST(ids(l.view(), full_row) == (numbers{300, 100, 101, 200, 201, 202}));
  BOOST_TEST(l.view().slot(0) == 1);
  BOOST_TEST(l.view().slot(1) == 2);
  BOOST_TEST(l.view().slot(2) == 0);
}

BOOST_AUTO_TEST_CASE(case_53_sorted_by_length) {
  const std::array lens{2, 5, 1};
  std::vector<offset_t> order(3);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, std::greater{},
                    [&](offset_t b) { return lens[static_cast<std::size_t>(b)]; });
  const auto l = make_layout(lens, no_padding{}, no_context_parallel{}, {.order = order});
  BOOST_TEST(l.cu_seqlens() == (std::array{0, 5, 7, 8}), boost::test_tools::per_element());
  // In the caller's order, every row finds its own length.
  for (offset_t b = 0; b < 3; ++b) {
    BOOST_TEST(l.view().length(l.view().slot(b)) == lens[static_cast<std::size_t>(b)]);
  }
}

BOOST_AUTO_TEST_CASE(every_order_of_every_selection_of_four_rows) {
  const numbers lens{3, 0, 5, 2};
  std::size_t tried = 0;
  for (std::size_t chosen = 1; chosen <= 4; ++chosen) {
    numbers permutation{0, 1, 2, 3};
    do {
      const oracle::request r{.lens = lens,
                              .each = 4,
                              .total_multiple = 12,
                              .cp = 2,
                              .order = {permutation.begin(),
                                        permutation.begin() + static_cast<std::ptrdiff_t>(chosen)}};
      const auto order = to_order(r.order);
      check_against(make_layout(lens, padding{each_multiple_of<4>{}, total_multiple_of<12>{}},
                                context_parallel<2>{}, {.order = order}),
                    r);
      ++tried;
    } while (std::ranges::next_permutation(permutation).found);
  }
  BOOST_TEST(tried == 4U * 24U);
}

BOOST_AUTO_TEST_CASE(the_tail_belongs_to_the_last_slot) {
  const std::vector<offset_t> order{1, 0};
  const auto l = make_layout(std::array{3, 5}, padding{fixed_total<16>{}}, no_context_parallel{},
                             {.order = order});
  BOOST_TEST(l.cu_seqlens_padded() == (std::array{0, 5, 16}), boost::test_tools::per_element());
  BOOST_TEST(l.view().sequence_in(1) == 0);
  BOOST_TEST(l.max_seqlen() == 11);
}

BOOST_AUTO_TEST_CASE(rows_that_are_left_out_do_not_count) {
  const std::vector<offset_t> order{2};
  const auto l = make_layout(std::array{100, 100, 3}, padding{fixed_total<4>{}},
                             no_context_parallel{}, {.width = 3, .order = order});
  BOOST_TEST(l.batch_size() == 3);
  BOOST_TEST(l.sequences() == 1);
  BOOST_TEST(l.real_tokens() == 3);
  BOOST_TEST(l.max_length() == 3);
}

BOOST_AUTO_TEST_CASE(an_empty_order_packs_nothing) {
  const std::vector<offset_t> nobody;
  const auto l = make_layout(std::array{2, 3}, padding{total_multiple_of<4>{}},
                             no_context_parallel{}, {.order = nobody});
  BOOST_TEST(l.batch_size() == 2);
  BOOST_TEST(l.sequences() == 0);
  BOOST_TEST(l.total_tokens() == 0);
  BOOST_TEST(l.view().slot(0) == -1);
  BOOST_TEST(l.view().slot(1) == -1);
}

BOOST_AUTO_TEST_CASE(an_empty_order_and_a_total_leave_a_tail_of_no_sequence) {
  const std::vector<offset_t> nobody;
  const auto bounds = [](const auto& layout) {
    const auto padded = layout.cu_seqlens_padded();
    return std::vector<int>(padded.begin(), padded.end());
  };
  const auto check = [&](const auto& how, const std::vector<int>& lens, int total) {
    const auto l = make_layout(lens, how, context_parallel<2>{}, {.order = nobody});
    BOOST_TEST(bounds(l) == (std::vector<int>{0, total}), boost::test_tools::per_element());
    BOOST_TEST(l.cu_seqlens().back() == 0);
    BOOST_TEST(l.sequences() == 0);
    BOOST_TEST(l.batch_size() == static_cast<offset_t>(lens.size()));
    BOOST_TEST(l.max_seqlen() == total);
    BOOST_TEST(l.has_padding() == (total > 0));
    BOOST_TEST(l.has_ghost());
  };
  check(padding{fixed_total<16>{}}, {3, 4}, 16);
  check(padding{fixed_total<16>{}, ghost_tail{}}, {3, 4}, 16);
  check(padding{fixed_total<16>{}}, {}, 16);
  check(padding{total_multiple_of<8>{}}, {3, 4}, 0);
  // A total that the sharding does not divide is refused as ever.
  BOOST_TEST(refusal([&] {
               make_layout(std::array{2}, padding{fixed_total<6>{}}, context_parallel{2},
                           {.order = nobody});
             }).find("6") != std::string::npos);
  // Without an order nobody is there to absorb it.
  BOOST_TEST(refusal([&] { make_layout(std::vector<int>{}, padding{fixed_total<16>{}}); }) !=
             "accepted");
  std::array<std::int32_t, 2> real{9, 9};
  std::array<std::int32_t, 2> padded{9, 9};
  std::array<std::int32_t, 2> slot_of{9, 9};
  const auto built = build_layout<std::int32_t>(std::array{2, 3}, padding{fixed_total<16>{}},
                                                context_parallel<2>{}, {real, padded, {}, slot_of},
                                                {.order = nobody});
  BOOST_TEST(built.total == 16);
  BOOST_TEST(padded[1] == 16);
  BOOST_TEST(built.slot(1) == -1);
}

BOOST_AUTO_TEST_CASE(errors_name_the_row_of_the_batch) {
  BOOST_TEST(refused({1, 2, -3}, {2, 0, 1}) == "lengths[2] is -3: a length must be at least 0");
  BOOST_TEST(refused({1, 9, 3}, {2, 1}, 4) ==
             "lengths[1] is 9: a length must be at most 4, the width of the batch");
  const std::vector<offset_t> order{1, 0};
  BOOST_TEST(refusal([&] {
               make_layout(std::array{4, 7}, no_padding{}, context_parallel<2>{}, {.order = order});
             }) ==
             "padded length of lengths[1] is 7: it must be a multiple of 4, what the sharding "
             "divides by");
}

BOOST_AUTO_TEST_CASE(an_order_is_a_selection_of_batch_rows) {
  BOOST_TEST(refused({1, 2, 3}, {0, 3}) ==
             "order[1] is 3: it must be a sequence of the batch, from 0 to 2");
  BOOST_TEST(refused({1, 2, 3}, {-1}) ==
             "order[0] is -1: it must be a sequence of the batch, from 0 to 2");
  BOOST_TEST(refused({1, 2, 3}, {1, 0, 1}) ==
             "order[2] is 1: each sequence may be packed at most once");
  BOOST_TEST(refused({1, 2}, {0, 1, 2}) ==
             "order[2] is 2: it must be a sequence of the batch, from 0 to 1");
}

BOOST_AUTO_TEST_CASE(the_order_is_copied) {
  std::vector<offset_t> order{1, 0};
  const auto l =
      make_layout(std::array{3, 5}, no_padding{}, no_context_parallel{}, {.order = order});
  order = {0, 0};
  BOOST_TEST(l.view().sequence_in(0) == 1);
  const auto copy = l;
  BOOST_TEST(copy.view().order != l.view().order);
  BOOST_TEST(copy.view().sequence_in(0) == 1);
  BOOST_TEST(copy.view().slot(0) == 1);
}

BOOST_AUTO_TEST_CASE(an_order_in_memory_of_the_caller) {
  const std::vector<offset_t> order{2, 0};
  const std::array lens{4, 100, 3};
  std::array<std::int64_t, 3> cu{};
  std::array<std::int64_t, 3> cu_padded{};
  std::array<std::int64_t, 2> slots{-7, -7};
  std::array<std::int64_t, 3> rows{-7, -7, -7};
  const layout_options options{.order = order};
  const layout_storage<std::int64_t> whole{cu, cu_padded, slots, rows};
  const auto build = [&](const layout_storage<std::int64_t>& storage) {
    return build_layout(lens, no_padding{}, no_context_parallel{}, storage, options);
  };
  const layout_storage<std::int64_t> without{cu, cu_padded};
  BOOST_TEST(refusal([&] { build(without); }) ==
             "size of order is 0: it must hold at least 2 entries");
  const layout_storage<std::int64_t> short_rows{cu, cu_padded, slots, std::span(rows).first(2)};
  BOOST_TEST(refusal([&] { build(short_rows); }) ==
             "size of slot_of is 2: it must hold at least 3 entries");
  BOOST_TEST(slots[0] == -7);

  const auto view = build(whole);
  BOOST_TEST(view.order == slots.data());
  BOOST_TEST(slots == (std::array<std::int64_t, 2>{2, 0}), boost::test_tools::per_element());
  BOOST_TEST(rows == (std::array<std::int64_t, 3>{1, -1, 0}), boost::test_tools::per_element());
}
