// layout_hash: the same for layouts that put every token into the same place, different for all
// others.
#define BOOST_TEST_MODULE layout_hash
#include "seqpack/layout/layout_hash.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "seqpack/layout/adopt.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/policy/any_padding.hpp"
#include "seqpack/policy/any_sharding.hpp"
#include "support/layouts.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using lengths = std::vector<int>;

const lengths lens{5, 0, 8, 3};

/// Says that it lives on a device; nothing can be read from it.
struct elsewhere {
  static constexpr bool on_device = true;
  using context_parallel_type = no_context_parallel;
  using index_type = std::int32_t;
  layout_view<no_context_parallel> view() const { return {.total = 8}; }
};
static_assert(layout<elsewhere>);

template <class L>
concept hashable = requires(const L& l) {
  layout_hash(l);
  fingerprint(l);
};
static_assert(hashable<packed_layout<no_context_parallel>>);
static_assert(hashable<layout_view<no_context_parallel>>);
static_assert(!hashable<elsewhere>);
static_assert(std::is_trivially_copyable_v<layout_fingerprint>);

/// The same numbers as each_multiple_of<4> up to 100 tokens, but not above.
struct odd_padding : padding<each_multiple_of<4>> {
  constexpr offset_t padded_length(offset_t length) const noexcept {
    return seqpack::round_up(length, offset_t{length > 100 ? 8 : 4});
  }
};
static_assert(padding_policy<odd_padding>);

/// What each_multiple_of<4> does, without a promise of it.
struct silent_padding : padding<each_multiple_of<4>> {
  static constexpr offset_t static_each = 1;
  constexpr offset_t each() const noexcept { return 1; }
};
static_assert(padding_policy<silent_padding>);

/// Rank r owns chunk CP - 1 - r.
struct backwards {
  static constexpr offset_t divisor(offset_t cp) { return cp; }
  static constexpr shard_position to_shard(offset_t token, offset_t length, offset_t cp) {
    const shard_position p = contiguous::to_shard(token, length, cp);
    return {cp - 1 - p.rank, p.index};
  }
  static constexpr offset_t to_token(shard_position p, offset_t length, offset_t cp) {
    return contiguous::to_token({cp - 1 - p.rank, p.index}, length, cp);
  }
  static constexpr offset_t run(shard_position p, offset_t length, offset_t cp) {
    return contiguous::run(p, length, cp);
  }
};
/// Contiguous for sequences below a length, else striped: it has a number of its own.
struct by_length {
  offset_t limit = 0;
  static constexpr offset_t divisor(offset_t cp) { return cp; }
  constexpr shard_position to_shard(offset_t token, offset_t length, offset_t cp) const {
    return length < limit ? contiguous::to_shard(token, length, cp)
                          : striped::to_shard(token, length, cp);
  }
  constexpr offset_t to_token(shard_position p, offset_t length, offset_t cp) const {
    return length < limit ? contiguous::to_token(p, length, cp) : striped::to_token(p, length, cp);
  }
  constexpr offset_t run(shard_position p, offset_t length, offset_t cp) const {
    return length < limit ? contiguous::run(p, length, cp) : striped::run(p, length, cp);
  }
};
static_assert(sharding<by_length>);
/// What contiguous does, under another name.
struct my_contiguous : contiguous {};
static_assert(sharding<backwards> && sharding<my_contiguous>);

}  // namespace

BOOST_AUTO_TEST_CASE(static_and_dynamic_numbers_are_alike) {
  const auto fixed = make_layout(lens, padding{each_multiple_of<8>{}, total_multiple_of<48>{}},
                                 context_parallel<4>{});
  const auto free = make_layout(lens, padding{each_multiple_of<>{8}, total_multiple_of<>{48}},
                                context_parallel{4});
  BOOST_TEST(layout_hash(fixed) == layout_hash(free));
  const auto fixed_row = make_layout(lens, padding{fixed_total<32>{}, ghost_tail{}});
  const auto free_row =
      make_layout(lens, padding{ghost_tail{}, fixed_total<>{32}}, context_parallel{1, striped{}});
  BOOST_TEST(layout_hash(fixed_row) == layout_hash(free_row));
}

BOOST_AUTO_TEST_CASE(index_types_are_alike) {
  const auto narrow = make_layout<std::int32_t>(lens, padding{each_multiple_of<8>{}});
  const auto wide = make_layout<std::int64_t>(lens, padding{each_multiple_of<8>{}});
  BOOST_TEST(layout_hash(narrow) == layout_hash(wide));
  const std::vector<offset_t> order{2, 0};
  BOOST_TEST(layout_hash(make_layout<std::int32_t>(lens, no_padding{}, {}, {.order = order})) ==
             layout_hash(make_layout<std::int64_t>(lens, no_padding{}, {}, {.order = order})));
}

BOOST_AUTO_TEST_CASE(order_that_changes_nothing_and_none_are_alike) {
  const std::vector<offset_t> order{0, 1, 2, 3};
  BOOST_TEST(layout_hash(make_layout(lens, no_padding{}, {}, {.order = order})) ==
             layout_hash(make_layout(lens)));
}

BOOST_AUTO_TEST_CASE(owner_and_view_are_alike) {
  const auto layout = make_layout(lens, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  BOOST_TEST(layout_hash(layout) == layout_hash(layout.view()));
}

BOOST_AUTO_TEST_CASE(shardings_go_by_what_they_compute) {
  const auto hash = [](auto how) {
    return layout_hash(
        make_layout(lengths{8, 8}, padding{each_multiple_of<8>{}}, context_parallel{4, how}));
  };
  BOOST_TEST(hash(contiguous{}) == hash(my_contiguous{}));
  BOOST_TEST(hash(contiguous{}) != hash(backwards{}));
  BOOST_TEST(hash(contiguous{}) != hash(striped{}));
  BOOST_TEST(hash(contiguous{}) != hash(zigzag{}));
  BOOST_TEST(hash(striped{}) != hash(zigzag{}));
}

BOOST_AUTO_TEST_CASE(shardings_count_at_the_lengths_that_occur) {
  const auto hash = [](offset_t limit) {
    return layout_hash(make_layout(lengths{2000, 4000}, padding{each_multiple_of<8>{}},
                                   context_parallel{4, by_length{limit}}));
  };
  BOOST_TEST(hash(1024) != hash(3000));  // the sequence of 2000 tokens is cut in another way
  BOOST_TEST(hash(3000) == hash(3500));  // both sequences are cut alike
}

BOOST_AUTO_TEST_CASE(paddings_that_make_the_same_bounds_are_alike) {
  const each_multiple_of<4> each;
  const context_parallel<2> cp;
  const auto plain = layout_hash(make_layout(lens, padding{each}, cp));
  const auto same = [&](const auto& how) {
    BOOST_TEST(layout_hash(make_layout(lens, how, cp)) == plain);
  };
  same(padding{each, ghost_tail{}});  // a tail that nothing makes
  same(silent_padding{});
  same(odd_padding{});  // another one for longer sequences
  same(padding{each, total_multiple_of<4>{}});
  same(padding{each, fixed_total<20>{}});
  same(any_padding(padding{each}));
  const auto adopted =
      from_cu_seqlens(std::vector{0, 5, 5, 13, 16}, std::vector{0, 8, 8, 16, 20}, 20, cp);
  BOOST_TEST(layout_hash(adopted) == plain);
  // An empty ghost is an entry of the bounds.
  BOOST_TEST(layout_hash(make_layout(lens, padding{each, total_multiple_of<4>{}, ghost_tail{}},
                                     cp)) != plain);
}

BOOST_AUTO_TEST_CASE(shardings_of_run_time_are_alike) {
  const auto compare = [](auto how) {
    const padding each{each_multiple_of<8>{}};
    const auto fixed = layout_hash(make_layout(lens, each, context_parallel<4, decltype(how)>{}));
    BOOST_TEST(layout_hash(make_layout(lens, each, context_parallel{4, any_sharding{how}})) ==
               fixed);
    const context_parallel<4, any_sharding> half_fixed{any_sharding{how}};
    BOOST_TEST(layout_hash(make_layout(lens, each, half_fixed)) == fixed);
  };
  compare(zigzag{});
  compare(contiguous{});
  compare(striped{});
}

BOOST_AUTO_TEST_CASE(every_number_counts) {
  std::map<std::uint64_t, std::string> seen;
  const auto see = [&](const char* what, const auto& layout) {
    const auto [place, is_new] = seen.emplace(layout_hash(layout), what);
    BOOST_TEST(is_new, what << " has the hash of " << place->second);
  };
  const each_multiple_of<4> each;
  const context_parallel<2> cp;
  const std::vector<offset_t> swapped{1, 0, 2, 3};
  const std::vector<offset_t> fewer{0, 2, 3};
  see("plain", make_layout(lens, padding{each}, cp));
  see("one length", make_layout(lengths{6, 0, 8, 3}, padding{each}, cp));
  see("another order of lengths", make_layout(lengths{0, 5, 8, 3}, padding{each}, cp));
  see("a sequence more", make_layout(lengths{5, 0, 8, 3, 0}, padding{each}, cp));
  see("an order", make_layout(lens, padding{each}, cp, {.order = swapped}));
  see("an empty row left out", make_layout(lens, padding{each}, cp, {.order = fewer}));
  see("a sequence more that the order leaves out",
      make_layout(lengths{5, 0, 8, 3, 0}, padding{each}, cp, {.order = fewer}));
  see("each", make_layout(lens, padding{each_multiple_of<8>{}}, cp));
  see("a tail", make_layout(lens, padding{each, total_multiple_of<48>{}}, cp));
  see("a ghost", make_layout(lens, padding{each, total_multiple_of<48>{}, ghost_tail{}}, cp));
  see("an empty ghost", make_layout(lens, padding{each, total_multiple_of<4>{}, ghost_tail{}}, cp));
  see("fixed total", make_layout(lens, padding{each, fixed_total<28>{}}, cp));
  see("CP size", make_layout(lens, padding{each}, context_parallel<1>{}));
  see("sharding", make_layout(lens, padding{each}, context_parallel<2, striped>{}));
  see("no padding", make_layout(lengths{8, 0, 8, 4}, no_padding{}, cp));
  BOOST_TEST(seen.size() == 15u);
}

BOOST_AUTO_TEST_CASE(both_bounds_count) {
  const auto hash = [&](std::vector<int> cu, std::vector<int> cu_padded) {
    return layout_hash(from_cu_seqlens(cu, cu_padded, 16));
  };
  const auto expected = hash({0, 5, 9}, {0, 8, 16});
  BOOST_TEST(hash({0, 5, 9}, {0, 8, 16}) == expected);
  BOOST_TEST(hash({0, 4, 9}, {0, 8, 16}) != expected);
  BOOST_TEST(hash({0, 5, 10}, {0, 8, 16}) != expected);
  BOOST_TEST(hash({0, 5, 9}, {0, 10, 16}) != expected);
}

BOOST_AUTO_TEST_CASE(random_layouts_collide_only_where_they_are_equal) {
  std::mt19937 random(11);
  std::map<std::uint64_t, std::array<oracle::numbers, 5>> seen;
  int layouts = 0;
  for (int round = 0; round < 40; ++round) {
    const int batch = round % 6;
    const oracle::numbers lens_here = random_lengths(random, batch, 12);
    const oracle::numbers order = round % 2 == 0 ? oracle::numbers{} : random_order(random, batch);
    for_each_layout(lens_here, order,
                    [&](const auto& layout, const auto& expected, const auto& request) {
                      ++layouts;
                      oracle::numbers rows;
                      for (const auto& token : expected.row) rows.push_back(token.row);
                      oracle::numbers shards;
                      for (const auto& token : expected.all_shards)
                        shards.push_back(token.position);
                      const std::array facts{expected.cu, expected.cu_padded,
                                             oracle::numbers{request.cp, batch}, rows, shards};
                      const auto [place, is_new] = seen.emplace(layout_hash(layout), facts);
                      BOOST_TEST((place->second == facts));
                    });
  }
  BOOST_TEST(layouts > 500);
  BOOST_TEST(seen.size() > 400u);
}

BOOST_AUTO_TEST_CASE(fingerprints_name_the_numbers) {
  const std::vector<offset_t> order{3, 0};
  const auto layout =
      make_layout(lens, padding{each_multiple_of<8>{}}, context_parallel<4>{}, {.order = order});
  const layout_fingerprint expected{layout_hash(layout), 4, 2, 16, 4};
  BOOST_TEST((fingerprint(layout) == expected));
  const layout_fingerprint sizes{0, 4, 2, 16, 4};
  BOOST_TEST((fingerprint_of_sizes(layout) == sizes));
  BOOST_TEST((fingerprint_of_sizes(elsewhere{}) == layout_fingerprint{0, 0, 0, 8, 1}));
}

BOOST_AUTO_TEST_CASE(dropped_tokens_count) {
  const auto layout = make_layout(lens, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const auto hash = [&](offset_t count) { return layout_hash(layout.view().without_last(count)); };
  BOOST_TEST(hash(0) == layout_hash(layout));
  BOOST_TEST(hash(1) != layout_hash(layout));
  BOOST_TEST(hash(2) != hash(1));
}

BOOST_AUTO_TEST_CASE(no_sequences) {
  BOOST_TEST(layout_hash(make_layout(lengths{})) ==
             layout_hash(layout_view<no_context_parallel>{}));
  BOOST_TEST(layout_hash(make_layout(lengths{})) != layout_hash(make_layout(lengths{0})));
}

BOOST_AUTO_TEST_CASE(layout_without_arrays_is_refused) {
  const layout_view<no_context_parallel> view{.sequences = 1, .segments = 1, .total = 4};
  BOOST_CHECK_EXCEPTION(
      layout_hash(view), invalid_input,
      refused("the layout's cu_seqlens", "null", "a layout of tokens needs its arrays"));
}

BOOST_AUTO_TEST_CASE(in_constant_expressions) {
  constexpr auto hash = [](int first) {
    const std::array<int, 2> two{first, 3};
    std::array<std::int32_t, 3> cu{};
    std::array<std::int32_t, 3> cu_padded{};
    return layout_hash(build_layout<std::int32_t>(two, padding{each_multiple_of<4>{}},
                                                  context_parallel<2>{}, {cu, cu_padded}));
  };
  static_assert(hash(5) != hash(6));
  BOOST_TEST(layout_hash(make_layout(lengths{5, 3}, padding{each_multiple_of<4>{}},
                                     context_parallel<2>{})) == hash(5));
}
