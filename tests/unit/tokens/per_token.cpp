// Position ids, sequence index, padding mask and gather indices, against the definitions.
#define BOOST_TEST_MODULE per_token
#include "seqpack/tokens/per_token.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <random>
#include <vector>

#include "seqpack/move/pack.hpp"
#include "support/buffers.hpp"
#include "support/layouts.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using oracle::numbers;

template <class Layout, class Place, class Array>
numbers written(const Layout& layout, Place at, Array array) {
  poisoned_buffer<long long> out(layout.view().rows(at));
  per_token(host, layout, at, array(out.span()));
  BOOST_TEST(out.guards_intact());
  return out.values();
}

/// An array of the user's own: the real tokens of the owner.
struct owner_length {
  template <class Executor, class View>
  void require(std::size_t, const View&) const {}
  template <class View>
  long long operator()(const View&, const token_ref& token) const {
    return token.length;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(positions_owners_and_padding_of_all_places) {
  for_random_layouts(11, [](const auto& layout, const auto& expected, const auto&) {
    for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
      BOOST_TEST(written(layout, at, [](auto out) { return position_ids(out); }) ==
                     oracle::position_ids(tokens),
                 per_element());
      BOOST_TEST(written(layout, at, [](auto out) { return sequence_index(out); }) ==
                     oracle::sequence_index(tokens),
                 per_element());
      BOOST_TEST(written(layout, at, [](auto out) { return padding_mask(out); }) ==
                     oracle::padding_mask(tokens),
                 per_element());
    });
  });
}

BOOST_AUTO_TEST_CASE(ghost_is_the_number_of_sequences) {
  const auto layout = make_layout(numbers{2, 0}, padding{fixed_total<5>{}, ghost_tail{}});
  BOOST_TEST(written(layout, full_row, [](auto out) { return sequence_index(out); }) ==
                 (numbers{0, 0, 2, 2, 2}),
             per_element());
  BOOST_TEST(written(layout, full_row, [](auto out) { return position_ids(out); }) ==
                 (numbers{0, 1, 0, 1, 2}),
             per_element());
}

BOOST_AUTO_TEST_CASE(batch_index_is_a_gather_that_packs) {
  for_random_layouts(12, [](const auto& layout, const auto& expected, const auto& request) {
    const numbers table = id_table(request.lens, 26);
    for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
      numbers gathered;
      for (const auto index : written(layout, at, [](auto out) { return batch_index(out, 26); })) {
        BOOST_REQUIRE(index >= -1);
        gathered.push_back(index < 0 ? -5 : table[static_cast<std::size_t>(index)]);
      }
      BOOST_TEST(gathered == oracle::values(tokens, oracle::id, -5), per_element());
    });
  });
}

BOOST_AUTO_TEST_CASE(row_index_is_a_gather_that_shards) {
  for_random_layouts(13, [](const auto& layout, const auto& expected, const auto&) {
    for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
      oracle::tokens gathered;
      for (const auto index : written(layout, at, [](auto out) { return row_index(out); })) {
        gathered.push_back(expected.row.at(static_cast<std::size_t>(index)));
      }
      BOOST_TEST((gathered == tokens));
    });
  });
}

BOOST_AUTO_TEST_CASE(several_arrays_of_different_types_in_one_call) {
  const numbers lens{5, 0, 2};
  const oracle::packed expected = oracle::pack({.lens = lens, .each = 4, .cp = 2});
  const auto layout = make_layout(lens, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const auto size = static_cast<offset_t>(expected.shards[1].size());
  poisoned_buffer<std::int32_t> positions(size);
  poisoned_buffer<std::int64_t> owners(size);
  poisoned_buffer<std::uint8_t> mask(size);
  poisoned_buffer<std::int16_t> rows(size);
  poisoned_buffer<long long> lengths(size);
  per_token(host, layout, shard{1}, position_ids(positions.span()), sequence_index(owners.span()),
            padding_mask(mask.span()), row_index(rows.span()),
            token_array<long long, owner_length>{row_view(lengths.span()), {}});
  for (std::size_t k = 0; k < expected.shards[1].size(); ++k) {
    const auto& token = expected.shards[1][k];
    BOOST_TEST(positions[k] == token.position);
    BOOST_TEST(owners[k] == token.slot);
    BOOST_TEST(int{mask[k]} == (token.real ? 0 : 1));
    BOOST_TEST((expected.row[static_cast<std::size_t>(rows[k])] == token));
    BOOST_TEST(lengths[k] == lens[static_cast<std::size_t>(token.slot)]);
  }
  BOOST_TEST((positions.guards_intact() && owners.guards_intact() && mask.guards_intact() &&
              rows.guards_intact() && lengths.guards_intact()));
}

BOOST_AUTO_TEST_CASE(mask_of_bool) {
  const auto layout = make_layout(numbers{1}, padding{each_multiple_of<3>{}});
  bool mask[3] = {true, false, false};
  per_token(host, layout, full_row, padding_mask(std::span(mask)));
  BOOST_TEST(!mask[0]);
  BOOST_TEST(mask[1]);
  BOOST_TEST(mask[2]);
}

BOOST_AUTO_TEST_CASE(element_types_that_cannot_hold_the_values) {
  const auto layout = make_layout(numbers{129, 200});
  poisoned_buffer<std::int8_t> small(329);
  const row_view out(small.span());
  BOOST_CHECK_EXCEPTION(per_token(host, layout, full_row, position_ids(out)), invalid_input,
                        refused("array 0's largest position id", "199", "127"));
  BOOST_CHECK_EXCEPTION(per_token(host, layout, full_row, row_index(out)), invalid_input,
                        refused("array 0's largest row", "328", "127"));
  BOOST_CHECK_EXCEPTION(per_token(host, layout, full_row, batch_index(out, 200)), invalid_input,
                        refused("array 0's largest batch position", "399", "127"));
  const auto many = make_layout(numbers(329, 1));
  BOOST_CHECK_EXCEPTION(per_token(host, many, full_row, sequence_index(out)), invalid_input,
                        refused("array 0's largest sequence index", "328", "127"));
  BOOST_TEST(small.untouched());
  per_token(host, make_layout(numbers{128, 1}), full_row,
            position_ids(row_view(small.data(), 129)));
  BOOST_TEST(int{small[127]} == 127);
}

BOOST_AUTO_TEST_CASE(position_ids_count_on_in_the_padding_of_the_longest_sequence) {
  const auto layout = make_layout(numbers{100}, padding{each_multiple_of<256>{}});
  poisoned_buffer<std::int8_t> small(256);
  BOOST_CHECK_EXCEPTION(
      per_token(host, layout, full_row, position_ids(small.span())), invalid_input,
      refused_as(
          "array 0's largest position id is 255: the element type of the array holds at most 127"));
  BOOST_TEST(small.untouched());
}

BOOST_AUTO_TEST_CASE(the_sequence_index_of_the_ghost_must_be_held_too) {
  const auto layout = make_layout(numbers(128, 1), padding{total_multiple_of<256>{}, ghost_tail{}});
  poisoned_buffer<std::int8_t> small(256);
  BOOST_CHECK_EXCEPTION(
      per_token(host, layout, full_row, sequence_index(small.span())), invalid_input,
      refused_as("array 0's largest sequence index is 128: the element type of the "
                 "array holds at most 127"));
  BOOST_TEST(small.untouched());
  per_token(host, make_layout(numbers(128, 1)), full_row,
            sequence_index(row_view(small.data(), 128)));
  BOOST_TEST(int{small[127]} == 127);
}

BOOST_AUTO_TEST_CASE(floating_point_arrays_count_as_far_as_they_are_exact) {
  const auto layout = make_layout(numbers{1});
  poisoned_buffer<float> out(1);
  BOOST_CHECK_EXCEPTION(
      per_token(host, layout, full_row, batch_index(out.span(), 16777218)), invalid_input,
      refused_as(
          "array 0's largest batch position is 16777217: the element type of the array counts to "
          "at most 2^24"));
  BOOST_TEST(out.untouched());
  per_token(host, layout, full_row, batch_index(out.span(), 16777217));
  BOOST_TEST(out[0] == 0.0F);
}

BOOST_AUTO_TEST_CASE(batch_index_needs_a_type_that_holds_minus_one) {
  const auto layout = make_layout(numbers{1}, padding{each_multiple_of<2>{}});
  poisoned_buffer<std::uint32_t> out(2);
  BOOST_CHECK_EXCEPTION(
      per_token(host, layout, full_row, batch_index(out.span(), 4)), invalid_input,
      refused_as("array 0's element type is unsigned: it must hold -1, for padding"));
  BOOST_TEST(out.untouched());
}

BOOST_AUTO_TEST_CASE(batch_index_needs_the_width) {
  const auto layout = make_layout(numbers{2, 5});
  poisoned_buffer<std::int32_t> out(7);
  BOOST_CHECK_EXCEPTION(per_token(host, layout, full_row, batch_index(out.span(), 4)),
                        invalid_input, refused("array 0's width", "4", "5"));
  BOOST_TEST(out.untouched());
}

BOOST_AUTO_TEST_CASE(refused_sizes) {
  const auto layout =
      make_layout(numbers{4, 2}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  poisoned_buffer<std::int32_t> first(8);
  poisoned_buffer<std::int32_t> second(8);
  const auto refuse = [&](auto at, offset_t first_size, const row_view<std::int32_t>& other,
                          const auto& predicate) {
    BOOST_CHECK_EXCEPTION(
        per_token(host, layout, at, position_ids(row_view(first.data(), first_size)),
                  sequence_index(other)),
        invalid_input, predicate);
    BOOST_TEST(first.untouched());
    BOOST_TEST(second.untouched());
  };
  const row_view whole(second.data(), 8);
  refuse(full_row, 7, whole, refused("array 0's rows", "7", "8"));
  refuse(shard{0}, 4, whole, refused("array 1's rows", "8", "4"));
  refuse(all_shards, 8, row_view(second.data(), 4), refused("array 1's rows", "4", "8"));
  refuse(full_row, 8, row_view(second.data(), 8, 2), refused("array 1's payload", "2", "1"));
  refuse(full_row, 8, row_view<std::int32_t>(nullptr, 8),
         refused("array 1's elements", "null", "8"));
  refuse(shard{2}, 4, row_view(second.data(), 4), refused("rank", "2", "0 to 1"));
  refuse(shard{-1}, 4, row_view(second.data(), 4), refused("rank", "-1", "0 to 1"));
}

namespace {

/// An array of the user's own: how far a token is from the end of its sequence. It refuses nothing.
struct tokens_left {
  template <class View>
  SEQPACK_HD int operator()(const View&, const token_ref& token) const {
    return static_cast<int>(token.length - token.index);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_array_of_ones_own) {
  const auto layout = make_layout(numbers{3, 1}, padding{each_multiple_of<2>{}});
  std::vector<int> out(6, 777);
  per_token(host, layout, full_row, token_array<int, tokens_left>{row_view(out), {}});
  BOOST_TEST(out == (std::vector{3, 2, 1, 0, 1, 0}), per_element());
}
