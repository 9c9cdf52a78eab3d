// Layouts whose whole row is cut, as the definition has them. The map itself is compared with the
// oracle's in bijection.cpp.
#define BOOST_TEST_MODULE row_contiguous
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "seqpack/layout/adopt.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/layout_hash.hpp"
#include "seqpack/policy/any_padding.hpp"
#include "seqpack/policy/any_sharding.hpp"
#include "seqpack/tokens/counts.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using lengths = std::vector<int>;
constexpr context_parallel<2, row_contiguous> two;

std::string refused(const lengths& lens, const auto& how, const auto& cp) {
  return seqpack::testing::refusal([&] { make_layout(lens, how, cp); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_length_needs_a_divisor) {
  const auto layout = make_layout(lengths{37, 51, 40}, no_padding{}, two);
  BOOST_TEST(layout.total_tokens() == 128);
  BOOST_TEST(layout.shard_tokens() == 64);
  BOOST_TEST(!layout.has_padding());
  const auto view = layout.view();
  const offset_t first[] = {0, 37, 64, 64};
  const offset_t second[] = {0, 0, 24, 64};
  for (offset_t k = 0; k <= 3; ++k) {
    BOOST_TEST(view.shard_begin(shard{0}, k) == first[k]);
    BOOST_TEST(view.shard_begin(shard{1}, k) == second[k]);
  }
  const token_ref token = view.token_at(shard{1}, 0);
  BOOST_TEST(token.slot == 1);
  BOOST_TEST(token.index == 27);
  BOOST_TEST(view.row_of(shard{1}, 1, 27) == 0);
  BOOST_TEST(view.row_of(shard{0}, 1, 27) == -1);
  BOOST_TEST(view.row_of(all_shards, 1, 27) == 64);
}

BOOST_AUTO_TEST_CASE(eight_ranks_share_sixteen_tokens) {
  const auto layout =
      make_layout(lengths{7, 7, 2}, no_padding{}, context_parallel<8, row_contiguous>{});
  BOOST_TEST(layout.shard_tokens() == 2);
  BOOST_TEST(real_tokens(layout, shard{3}) == 2);
  BOOST_TEST(real_tokens(layout.view(), shard{3}, 0) == 1);
  BOOST_TEST(real_tokens(layout.view(), shard{3}, 1) == 1);
  BOOST_TEST(real_tokens(layout.view(), shard{3}, 2) == 0);
}

BOOST_AUTO_TEST_CASE(a_total_that_the_ranks_cannot_share_is_refused) {
  const std::string hint =
      ": it must be a multiple of 2, what the sharding divides the row by (total_multiple_of pads "
      "it)";
  BOOST_TEST(refused({5}, no_padding{}, two) == "total is 5" + hint);
  BOOST_TEST(refused({5}, no_padding{}, context_parallel{2, any_sharding{row_contiguous{}}}) ==
             "total is 5" + hint);
  BOOST_TEST(refused({5, 4}, padding{each_multiple_of<3>{}, ghost_tail{}}, two) ==
             "accepted");  // 6 + 6
  BOOST_TEST(refused({5}, any_padding{padding{each_multiple_of<>{3}, total_multiple_of<>{9}}},
                     two) == "total is 9" + hint);
  BOOST_TEST(refused({5}, padding{total_multiple_of<2>{}}, two) == "accepted");
  BOOST_TEST(refused({5}, padding{total_multiple_of<3>{}}, two) == "accepted");  // 6
  BOOST_TEST(refused({5}, padding{fixed_total<>{9}}, two) ==
             "fixed_total is 9: it must be a multiple of 2, what the sharding divides by");
  BOOST_TEST(refused({5}, no_padding{}, context_parallel<1, row_contiguous>{}) == "accepted");
}

BOOST_AUTO_TEST_CASE(adopted_bounds_are_held_to_the_same_rule) {
  const std::vector<int> cu{0, 5, 9};
  BOOST_TEST(seqpack::testing::refusal([&] { from_cu_seqlens(cu, 9, two); }) ==
             "total is 9: it must be a multiple of 2, what the sharding divides the row by "
             "(total_multiple_of pads it)");
  const auto adopted = from_cu_seqlens(std::vector<int>{0, 5, 10}, 10, two);
  BOOST_TEST(layout_hash(adopted) == layout_hash(make_layout(lengths{5, 5}, no_padding{}, two)));
}

BOOST_AUTO_TEST_CASE(a_batch_that_is_not_packed_is_not_cut_as_a_row) {
  const context_parallel cp{2, row_contiguous{}};
  BOOST_TEST(
      seqpack::testing::refusal([&] { unpacked_layout(lengths{3, 4}, 4, cp); }) ==
      "sharding is of the whole row: a batch that is not packed is cut sequence by sequence");
  const auto layout = make_layout(lengths{3, 5}, no_padding{}, cp);
  BOOST_TEST(seqpack::testing::refusal([&] { layout_part(layout, 0, 1); }) ==
             "sharding is of the whole row: a part of the row would be cut elsewhere");
}

BOOST_AUTO_TEST_CASE(its_hash_is_its_own) {
  const auto hash = [](const auto& cp) {
    return layout_hash(make_layout(lengths{8, 8, 16}, no_padding{}, cp));
  };
  BOOST_TEST(hash(two) != hash(context_parallel<2, contiguous>{}));
  BOOST_TEST(hash(two) != hash(context_parallel<2>{}));
  BOOST_TEST(hash(two) == hash(context_parallel{2, any_sharding{row_contiguous{}}}));
  BOOST_TEST(hash(context_parallel<1, row_contiguous>{}) == hash(no_context_parallel{}));
  // One sequence that is the whole row is cut in the same way by both, and still they differ: with
  // other lengths they would not agree.
  const auto one = [](const auto& cp) {
    return layout_hash(make_layout(lengths{8}, no_padding{}, cp));
  };
  BOOST_TEST(one(two) != one(context_parallel<2, contiguous>{}));
}

BOOST_AUTO_TEST_CASE(bounds_of_sixty_four_bits) {
  const offset_t length = (offset_t{1} << 33) + 1;
  const auto layout =
      make_layout<std::int64_t>(std::vector<offset_t>{length, length}, no_padding{}, two);
  const auto view = layout.view();
  BOOST_TEST(view.shard_begin(shard{1}, 1) == 0);
  BOOST_TEST(view.token_at(shard{1}, 5).slot == 1);
  BOOST_TEST(view.row_of(all_shards, 1, 5) == length + 5);
}
