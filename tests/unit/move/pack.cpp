// pack against reference values and against the definitions.
#define BOOST_TEST_MODULE pack
#include "seqpack/move/pack.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "support/buffers.hpp"
#include "support/layouts.hpp"
#include "support/reference.hpp"
#include "support/refused.hpp"
#include "support/sharding_suite.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using oracle::numbers;

/// What pack writes for one element per token, with nothing written outside.
template <class Layout, class Place, class Source>
numbers packed(const Layout& layout, Place at, const Source& source, long long pad = 0) {
  poisoned_buffer<long long> out(layout.view().rows(at));
  pack(host, layout, at, field(source, row_view(out.span()), pad));
  BOOST_TEST(out.guards_intact());
  return out.values();
}

template <class Layout>
void require_same_shards(const Layout& a, const auto& b, const batch_view<const long long>& ids) {
  BOOST_REQUIRE(a.context_parallel().size() == b.context_parallel().size());
  BOOST_TEST(packed(a, full_row, ids) == packed(b, full_row, ids), per_element());
  BOOST_TEST(packed(a, all_shards, ids) == packed(b, all_shards, ids), per_element());
  for (offset_t r = 0; r < a.context_parallel().size(); ++r) {
    BOOST_TEST(packed(a, shard{r}, ids) == packed(b, shard{r}, ids), per_element());
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(reference_rows_and_shards) {
  const auto cases = golden::pack_cases();
  BOOST_TEST(cases.size() == 80);
  for (const golden::pack_case& c : cases) {
    BOOST_TEST_CONTEXT(c.name) {
      const numbers table = reference_table(c, -1);
      const batch_view ids(table.data(), static_cast<offset_t>(c.seq_lengths.size()), c.width);
      BOOST_TEST(c.shards.size() == static_cast<std::size_t>(c.cp_size));
      with_reference_layout(c, [&](const auto& layout) {
        BOOST_TEST(packed(layout, full_row, ids) == c.packed, per_element());
        BOOST_TEST(packed(layout, all_shards, ids) == gathered_shards(c), per_element());
        for (std::size_t r = 0; r < c.shards.size(); ++r) {
          BOOST_TEST(packed(layout, shard{static_cast<offset_t>(r)}, ids) == c.shards[r],
                     per_element());
        }
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(random_layouts_in_all_places) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    const int batch = round % 7;
    const numbers lens = random_lengths(random, batch, 30);
    const numbers order = round % 2 == 0 ? numbers{} : random_order(random, batch);
    const numbers table = id_table(lens, 33);
    const batch_view ids(table.data(), batch, 33);
    for_each_layout(lens, order, [&](const auto& layout, const auto& expected, const auto&) {
      for_each_place(expected, [&](auto place, const oracle::tokens& tokens) {
        BOOST_TEST(packed(layout, place, ids, -7) == oracle::values(tokens, oracle::id, -7),
                   per_element());
      });
    });
  }
}

BOOST_AUTO_TEST_CASE(tensors_of_different_types_payloads_and_pads_in_one_call) {
  const numbers lens{5, 0, 3};
  const oracle::packed expected = oracle::pack({.lens = lens, .each = 4, .cp = 2});
  const auto layout = make_layout(lens, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const numbers ids = id_table(lens, 6);
  std::vector<float> hidden(3 * 6 * 5);
  std::vector<std::int8_t> routes(3 * 6 * 3);
  std::vector<std::uint8_t> flags(3 * 6, 1);
  for (std::size_t k = 0; k < hidden.size(); ++k) hidden[k] = static_cast<float>(k) + 0.25F;
  for (std::size_t k = 0; k < routes.size(); ++k) routes[k] = static_cast<std::int8_t>(k + 10);

  for_each_place(expected, [&](auto place, const oracle::tokens& tokens) {
    const auto rows = static_cast<offset_t>(tokens.size());
    poisoned_buffer<long long> packed_ids(rows);
    poisoned_buffer<float> packed_hidden(rows * 5);
    poisoned_buffer<std::int8_t> packed_routes(rows * 3);
    poisoned_buffer<std::uint8_t> packed_flags(rows);
    pack(host, layout, place, field(batch_view(ids.data(), 3, 6), packed_ids.span()),
         field(batch_view(hidden.data(), 3, 6, 5), row_view(packed_hidden.data(), rows, 5), 0.5F),
         field(batch_view(routes.data(), 3, 6, 3), row_view(packed_routes.data(), rows, 3),
               [](offset_t column) { return column; }),
         field(batch_view(flags.data(), 3, 6), packed_flags.span()));

    BOOST_TEST(packed_ids.values() == oracle::values(tokens, oracle::id, 0), per_element());
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const auto& token = tokens[t];
      const auto source = static_cast<std::size_t>(token.row * 6 + token.position);
      for (std::size_t d = 0; d < 5; ++d) {
        BOOST_TEST(packed_hidden[t * 5 + d] == (token.real ? hidden[source * 5 + d] : 0.5F));
      }
      for (std::size_t d = 0; d < 3; ++d) {
        BOOST_TEST(int{packed_routes[t * 3 + d]} ==
                   (token.real ? int{routes[source * 3 + d]} : static_cast<int>(d)));
      }
      BOOST_TEST(int{packed_flags[t]} == (token.real ? 1 : 0));
    }
    BOOST_TEST(packed_ids.guards_intact());
    BOOST_TEST(packed_hidden.guards_intact());
    BOOST_TEST(packed_routes.guards_intact());
    BOOST_TEST(packed_flags.guards_intact());
  });
}

BOOST_AUTO_TEST_CASE(static_and_dynamic_policies_agree) {
  const numbers lens{5, 0, 3, 17};
  const numbers table = id_table(lens, 17);
  const batch_view<const long long> ids(table.data(), 4, 17);
  const each_multiple_of<> each{8};
  require_same_shards(make_layout(lens, padding{each_multiple_of<8>{}}, context_parallel<4>{}),
                      make_layout(lens, padding{each}, context_parallel{4}), ids);
  require_same_shards(
      make_layout(lens, padding{each_multiple_of<8>{}, fixed_total<64>{}},
                  context_parallel<2, striped>{}),
      make_layout(lens, padding{each, fixed_total<>{64}}, context_parallel{2, striped{}}), ids);
  require_same_shards(
      make_layout(lens, padding{each_multiple_of<8>{}, total_multiple_of<48>{}, ghost_tail{}},
                  context_parallel<2, contiguous>{}),
      make_layout(lens, padding{each, total_multiple_of<>{48}, ghost_tail{}},
                  context_parallel{2, contiguous{}}),
      ids);
  require_same_shards(make_layout<std::int64_t>(lens), make_layout<std::int32_t>(lens), ids);
}

BOOST_AUTO_TEST_CASE(sharding_of_ones_own) {
  const numbers lens{5, 0, 9};
  const numbers table = id_table(lens, 9);
  const batch_view ids(table.data(), 3, 9);
  const auto layout =
      make_layout(lens, padding{each_multiple_of<3>{}}, context_parallel{3, reversed_contiguous{}});
  const auto expected =
      oracle::pack({.lens = lens, .each = 3, .cp = 3, .sharding = oracle::kind::contiguous});
  for (std::size_t r = 0; r < 3; ++r) {
    BOOST_TEST(packed(layout, shard{static_cast<offset_t>(r)}, ids) ==
                   oracle::values(expected.shards[2 - r], oracle::id, 0),
               per_element());
  }
}

BOOST_AUTO_TEST_CASE(no_sequences) {
  const numbers none;
  const batch_view<const long long> ids(nullptr, 0, 5);
  const auto empty = make_layout(none, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  BOOST_TEST(packed(empty, full_row, ids).empty());
  BOOST_TEST(packed(empty, shard{1}, ids).empty());
  BOOST_TEST(packed(empty, all_shards, ids).empty());
  const auto ghost =
      make_layout(none, padding{fixed_total<8>{}, ghost_tail{}}, context_parallel<2>{});
  BOOST_TEST(packed(ghost, full_row, ids, 9) == numbers(8, 9), per_element());
  BOOST_TEST(packed(ghost, shard{1}, ids, 9) == numbers(4, 9), per_element());
}

BOOST_AUTO_TEST_CASE(width_of_the_source_may_be_the_longest_length) {
  const numbers lens{2, 3};
  const numbers table = id_table(lens, 3);
  BOOST_TEST(packed(make_layout(lens), full_row, batch_view(table.data(), 2, 3)) ==
                 (numbers{100, 101, 200, 201, 202}),
             per_element());
}

BOOST_AUTO_TEST_CASE(order_chooses_and_permutes) {
  const numbers lens{2, 3, 1, 4};
  const numbers table = id_table(lens, 4);
  const std::vector<offset_t> order{3, 0};
  const auto layout =
      make_layout(lens, padding{each_multiple_of<2>{}}, context_parallel<1>{}, {.order = order});
  BOOST_TEST(packed(layout, full_row, batch_view(table.data(), 4, 4)) ==
                 (numbers{400, 401, 402, 403, 100, 101}),
             per_element());
}

BOOST_AUTO_TEST_CASE(view_of_a_layout_packs_as_its_owner) {
  const numbers lens{2, 3};
  const numbers table = id_table(lens, 3);
  const batch_view ids(table.data(), 2, 3);
  const auto layout = make_layout(lens, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  BOOST_TEST(packed(layout.view(), shard{1}, ids) == (numbers{101, 0, 201, 202}), per_element());
}

BOOST_AUTO_TEST_CASE(padding_of_the_source_is_never_read) {
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> source{1, not_a_number, not_a_number, 2, 3, not_a_number};
  const auto layout = make_layout(numbers{1, 2}, padding{each_multiple_of<2>{}});
  poisoned_buffer<double> out(4);
  pack(host, layout, full_row, field(batch_view(source.data(), 2, 3), out.span()));
  BOOST_TEST(out.values() == (std::vector<double>{1, 0, 2, 3}), per_element());
}

BOOST_AUTO_TEST_CASE(refused_sizes) {
  const numbers lens{4, 2};
  const auto layout = make_layout(lens, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const numbers table = id_table(lens, 4);
  const batch_view ids(table.data(), 2, 4);
  poisoned_buffer<long long> out(8);
  const auto refuse = [&](auto at, const auto& f, const auto& predicate) {
    BOOST_CHECK_EXCEPTION(pack(host, layout, at, f), invalid_input, predicate);
    BOOST_TEST(out.untouched());
  };
  const row_view whole(out.data(), 8);
  refuse(shard{2}, field(ids, row_view(out.data(), 4)), refused("rank", "2", "0 to 1"));
  refuse(shard{-1}, field(ids, row_view(out.data(), 4)), refused("rank", "-1", "0 to 1"));
  refuse(full_row, field(ids, row_view(out.data(), 7)), refused("field 0's target rows", "7", "8"));
  refuse(shard{0}, field(ids, whole), refused("field 0's target rows", "8", "4"));
  refuse(all_shards, field(ids, row_view(out.data(), 4)),
         refused("field 0's target rows", "4", "8"));
  refuse(full_row, field(ids, row_view(out.data(), 8, 2)),
         refused("field 0's target payload", "2", "1"));
  refuse(full_row, field(batch_view(table.data(), 1, 4), whole),
         refused("field 0's source rows", "1", "2"));
  refuse(full_row, field(batch_view(table.data(), 2, 3), whole),
         refused("field 0's source width", "3", "4"));
  refuse(full_row, field(ids, row_view<long long>(nullptr, 8)),
         refused("field 0's target", "null", "8"));
}

BOOST_AUTO_TEST_CASE(second_field_is_named_and_the_first_not_written) {
  const numbers lens{4, 2};
  const auto layout = make_layout(lens);
  const numbers table = id_table(lens, 4);
  const batch_view ids(table.data(), 2, 4);
  poisoned_buffer<long long> first(6);
  poisoned_buffer<long long> second(5);
  BOOST_CHECK_EXCEPTION(
      pack(host, layout, full_row, field(ids, first.span()), field(ids, second.span())),
      invalid_input, refused("field 1's target rows", "5", "6"));
  BOOST_TEST(first.untouched());
  BOOST_TEST(second.untouched());
}

// More than 64 fields move in several operations of at most 64, over the same layout.
namespace {

/// Notes how many fields every operation had, by the bytes of a row of all of them.
struct counting_fields {
  std::vector<seqpack::offset_t>* bytes;
};

}  // namespace

template <>
struct seqpack::executor_traits<counting_fields> : seqpack::host_executor_traits {
  template <class Op>
  static void run(const counting_fields& where, const Op& op) {
    where.bytes->push_back(op.row_bytes());
    op.process(0, op.rows());
  }
};

BOOST_AUTO_TEST_CASE(many_fields_in_parts) {
  constexpr std::size_t count = 70;
  const std::vector<int> lengths{2, 0, 3};
  const auto layout = seqpack::make_layout(lengths);
  std::array<std::vector<std::uint8_t>, count> sources;
  std::array<std::vector<std::uint8_t>, count> targets;
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t n = 0; n < 9; ++n) sources[k].push_back(static_cast<std::uint8_t>(k + 10 * n));
    targets[k].assign(5, 255);
  }
  std::vector<seqpack::offset_t> bytes;
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    seqpack::pack(counting_fields{&bytes}, layout, seqpack::full_row,
                  seqpack::field(seqpack::batch_view(sources[K].data(), 3, 3), targets[K])...);
  }(std::make_index_sequence<count>{});
  BOOST_TEST((bytes == std::vector<seqpack::offset_t>{64, 6}));
  for (std::size_t k = 0; k < count; ++k) {
    const auto& s = sources[k];
    BOOST_TEST((targets[k] == std::vector<std::uint8_t>{s[0], s[1], s[6], s[7], s[8]}));
  }
}
