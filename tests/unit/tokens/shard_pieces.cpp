#define BOOST_TEST_MODULE shard_pieces
#include "seqpack/tokens/shard_pieces.hpp"

#include <boost/test/unit_test.hpp>
#include <ostream>
#include <random>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "support/layouts.hpp"
#include "support/oracle.hpp"
#include "support/refused.hpp"

namespace seqpack {

std::ostream& operator<<(std::ostream& out, const shard_piece& p) {
  return out << "{" << p.sequence << ", " << p.first << ", " << p.count << "}";
}

}  // namespace seqpack

namespace {

using namespace seqpack;
using namespace seqpack::testing;

using pieces = std::vector<shard_piece>;

template <class Padding, class C>
pieces of(const std::vector<int>& lengths, const Padding& how, const C& cp, offset_t rank,
          const layout_options& options = {}) {
  return shard_pieces(make_layout(lengths, how, cp, options), shard{rank});
}

/// Tokens of a shard that go on where the one before ended, joined one by one.
pieces joined(const oracle::tokens& shard, offset_t batch) {
  pieces result;
  oracle::number slot = -1;
  for (const oracle::token& t : shard) {
    const bool follows = t.slot == slot && !result.empty() &&
                         t.position == result.back().first + result.back().count;
    if (follows) {
      ++result.back().count;
    } else {
      result.push_back({t.row < 0 ? batch : t.row, t.position, 1});
    }
    slot = t.slot;
  }
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_sequence_that_two_ranks_share_has_a_piece_on_each) {
  const std::vector<int> lengths{37, 51, 40};
  const context_parallel<2, row_contiguous> cp;
  BOOST_TEST(of(lengths, no_padding{}, cp, 0) == (pieces{{0, 0, 37}, {1, 0, 27}}));
  BOOST_TEST(of(lengths, no_padding{}, cp, 1) == (pieces{{1, 27, 24}, {2, 0, 40}}));
}

BOOST_AUTO_TEST_CASE(a_sequence_may_fill_several_ranks) {
  const std::vector<int> lengths{7, 7, 2};
  const context_parallel<8, row_contiguous> cp;
  BOOST_TEST(of(lengths, no_padding{}, cp, 0) == (pieces{{0, 0, 2}}));
  BOOST_TEST(of(lengths, no_padding{}, cp, 2) == (pieces{{0, 4, 2}}));
  BOOST_TEST(of(lengths, no_padding{}, cp, 3) == (pieces{{0, 6, 1}, {1, 0, 1}}));
  BOOST_TEST(of(lengths, no_padding{}, cp, 6) == (pieces{{1, 5, 2}}));
  BOOST_TEST(of(lengths, no_padding{}, cp, 7) == (pieces{{2, 0, 2}}));
}

BOOST_AUTO_TEST_CASE(padding_belongs_to_the_piece_of_its_sequence) {
  const padding how{each_multiple_of<4>{}, total_multiple_of<8>{}};
  const context_parallel<2, row_contiguous> cp;
  BOOST_TEST(of({5, 0, 1}, how, cp, 0) == (pieces{{0, 0, 8}}));
  BOOST_TEST(of({5, 0, 1}, how, cp, 1) == (pieces{{2, 0, 8}}));
}

BOOST_AUTO_TEST_CASE(the_ghost_is_the_sequence_behind_the_batch) {
  const padding how{fixed_total<12>{}, ghost_tail{}};
  const context_parallel<2, row_contiguous> cp;
  BOOST_TEST(of({4, 3}, how, cp, 1) == (pieces{{1, 2, 1}, {2, 0, 5}}));
}

BOOST_AUTO_TEST_CASE(pieces_name_the_sequences_of_the_batch) {
  const std::vector<offset_t> order{2, 0};
  const context_parallel<2, row_contiguous> cp;
  BOOST_TEST(of({4, 9, 2}, no_padding{}, cp, 0, {.order = order}) ==
             (pieces{{2, 0, 2}, {0, 0, 1}}));
  BOOST_TEST(of({4, 9, 2}, no_padding{}, cp, 1, {.order = order}) == (pieces{{0, 1, 3}}));
}

BOOST_AUTO_TEST_CASE(shardings_of_sequences_have_several_pieces_of_each) {
  const padding how{each_multiple_of<8>{}};
  BOOST_TEST(of({8, 8}, how, context_parallel<2>{}, 0) ==
             (pieces{{0, 0, 2}, {0, 6, 2}, {1, 0, 2}, {1, 6, 2}}));
  BOOST_TEST(of({2}, padding{each_multiple_of<4>{}}, context_parallel<2, striped>{}, 1) ==
             (pieces{{0, 1, 1}, {0, 3, 1}}));
}

BOOST_AUTO_TEST_CASE(nothing_has_no_pieces) {
  BOOST_TEST(of({}, no_padding{}, context_parallel<2, row_contiguous>{}, 1).empty());
  BOOST_TEST(of({0, 0}, no_padding{}, context_parallel<2, row_contiguous>{}, 0).empty());
}

BOOST_AUTO_TEST_CASE(pieces_of_random_layouts_are_the_joined_tokens) {
  for_random_layouts(31, [](const auto& layout, const oracle::packed& expected, const auto&) {
    for (std::size_t r = 0; r < expected.shards.size(); ++r) {
      BOOST_TEST(shard_pieces(layout, shard{static_cast<offset_t>(r)}) ==
                 joined(expected.shards[r], layout.batch_size()));
    }
  });
}

BOOST_AUTO_TEST_CASE(a_rank_out_of_range_is_refused) {
  const auto layout =
      make_layout(std::vector{4}, no_padding{}, context_parallel<2, row_contiguous>{});
  BOOST_TEST(refusal([&] { shard_pieces(layout, shard{2}); }) ==
             "rank is 2: it must be from 0 to 1, the last context-parallel rank");
}
