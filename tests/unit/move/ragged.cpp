// Ragged values and offsets, packed and unpacked without a [B, S] detour.
#define BOOST_TEST_MODULE ragged
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "support/as_device.hpp"
#include "support/buffers.hpp"
#include "support/layouts.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using oracle::numbers;

/// The real tokens of some rows, one after the other.
struct ragged_ids {
  explicit ragged_ids(const numbers& lens) {
    for (std::size_t b = 0; b < lens.size(); ++b) {
      for (long long s = 0; s < lens[b]; ++s) {
        values.push_back(oracle::id(static_cast<long long>(b), s));
      }
      offsets.push_back(static_cast<std::int32_t>(values.size()));
    }
  }
  auto view() const {
    return ragged_view(row_view(values), offsets.data(), static_cast<offset_t>(offsets.size()) - 1);
  }
  numbers values;
  std::vector<std::int32_t> offsets{0};
};

/// Lengths with 0 for the rows that an order leaves out.
numbers packed_lengths(const numbers& lens, const numbers& order) {
  if (order.empty()) return lens;
  numbers result(lens.size(), 0);
  for (const auto row : order) {
    result[static_cast<std::size_t>(row)] = lens[static_cast<std::size_t>(row)];
  }
  return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(packs_like_a_padded_batch) {
  for_random_layouts(41, [](const auto& layout, const auto& expected, const auto& request) {
    const ragged_ids ids(request.lens);
    for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
      poisoned_buffer<long long> out(static_cast<offset_t>(tokens.size()));
      pack(host, layout, at, field(ids.view(), out.span(), -7));
      BOOST_TEST(out.values() == oracle::values(tokens, oracle::id, -7), per_element());
      BOOST_TEST(out.guards_intact());
    });
  });
}

BOOST_AUTO_TEST_CASE(unpacks_to_the_real_tokens) {
  for_random_layouts(42, [](const auto& layout, const auto& expected, const auto& request) {
    const ragged_ids wanted(packed_lengths(request.lens, request.order));
    for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
      const numbers rows = oracle::values(tokens, oracle::id, -1);
      poisoned_buffer<long long> out(static_cast<offset_t>(wanted.values.size()));
      unpack(
          host, layout, at,
          field(rows, ragged_view(row_view(out.span()), wanted.offsets.data(), layout.batch_size()),
                -7));
      numbers held = wanted.values;
      for (long long& value : held) {
        // A shard of one rank leaves fill where it owns no token.
        if (std::find(rows.begin(), rows.end(), value) == rows.end()) value = -7;
      }
      BOOST_TEST(out.values() == held, per_element());
      BOOST_TEST(out.guards_intact());
    });
  });
}

BOOST_AUTO_TEST_CASE(own_tokens_alone) {
  const numbers lens{5, 0, 3};
  const auto layout = make_layout(lens, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const ragged_ids ids(lens);
  numbers out(8, -3);
  const numbers rank0{100, 101, -1, -1, 300, -1};
  unpack_own(host, layout, shard{0},
             field(rank0, ragged_view(row_view(out), ids.offsets.data(), 3)));
  BOOST_TEST(out == (numbers{100, 101, -3, -3, -3, 300, -3, -3}), per_element());
}

BOOST_AUTO_TEST_CASE(payload_and_wider_rows_of_the_source) {
  // Rows of a ragged source may hold more than the packed tokens, as rows of a batch may.
  const std::vector<float> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const std::vector<std::int64_t> offsets{0, 3, 5};
  const auto layout = make_layout(numbers{2, 1}, padding{each_multiple_of<2>{}});
  std::vector<float> out(8, 777);
  pack(host, layout, full_row,
       field(ragged_view(row_view(values.data(), 5, 2), offsets.data(), 2),
             row_view(out.data(), 4, 2)));
  BOOST_TEST(out == (std::vector<float>{1, 2, 3, 4, 7, 8, 0, 0}), per_element());
}

BOOST_AUTO_TEST_CASE(slice_of_a_larger_source) {
  const numbers values{-1, -1, 100, 101, 200, -1};
  const std::vector<std::int32_t> offsets{2, 4, 5};
  numbers out(3, 777);
  pack(host, make_layout(numbers{2, 1}), full_row,
       field(ragged_view(row_view(values), offsets.data(), 2), out));
  BOOST_TEST(out == (numbers{100, 101, 200}), per_element());
}

BOOST_AUTO_TEST_CASE(target_that_does_not_start_at_zero_is_refused_or_written_whole) {
  const numbers rows{100, 101, 200};
  const std::vector<std::int32_t> offsets{2, 4, 5};
  const auto layout = make_layout(numbers{2, 1});
  poisoned_buffer<long long> by_rows(5);
  poisoned_buffer<long long> by_tiles(5);
  const auto to = [&](auto& out) {
    return field(rows, ragged_view(row_view(out.span()), offsets.data(), 2), -7);
  };
  try {
    unpack(host, layout, full_row, to(by_rows));
  } catch (const invalid_input&) {
    BOOST_TEST(by_rows.untouched());
    return;
  }
  const auto move = detail::unpacking::make_operation<detail::unpacking::write::everything>(
      layout.view(), full_row, to(by_tiles));
  run_as_device(move);
  BOOST_TEST(by_rows.values() == (numbers{-7, -7, 100, 101, 200}), per_element());
  BOOST_TEST((by_tiles == by_rows));
}

BOOST_AUTO_TEST_CASE(refused_sources) {
  const auto layout = make_layout(numbers{2, 1});
  const numbers values(4, 5);
  poisoned_buffer<long long> out(3);
  const auto refuse = [&](const std::vector<std::int32_t>& offsets, const auto& predicate) {
    const auto rows = static_cast<offset_t>(offsets.size()) - 1;
    BOOST_CHECK_EXCEPTION(
        pack(host, layout, full_row,
             field(ragged_view(row_view(values), offsets.data(), rows), out.span())),
        invalid_input, predicate);
    BOOST_TEST(out.untouched());
  };
  refuse({0, 2}, refused("field 0's source rows", "1", "2"));
  refuse({0, 1, 2}, refused("field 0's source row 0 size", "1", "2"));
  refuse({0, 2, 2}, refused("field 0's source row 1 size", "0", "1"));
  refuse({0, 3, 2}, refused("field 0's source row 1 end", "2", "at least 3"));
}

BOOST_AUTO_TEST_CASE(offsets_outside_of_the_values_are_refused) {
  const auto layout = make_layout(numbers{2, 1});
  numbers memory(8, 5);
  const row_view values(memory.data() + 4, 2);
  const numbers rows(3, 9);
  poisoned_buffer<long long> out(3);
  const auto refuse = [&](const std::vector<std::int32_t>& offsets, const std::string& text) {
    const ragged_view ragged(values, offsets.data(), 2);
    BOOST_CHECK_EXCEPTION(pack(host, layout, full_row, field(ragged, out.span())), invalid_input,
                          refused_as("field 0's source " + text));
    BOOST_TEST(out.untouched());
    BOOST_CHECK_EXCEPTION(unpack(host, layout, full_row, field(rows, ragged)), invalid_input,
                          refused_as("field 0's target " + text));
    BOOST_TEST(memory == numbers(8, 5), per_element());
  };
  refuse({0, 2, 3}, "row 1 end is 3: it must be at most 2, the rows of the values");
  refuse({-1, 1, 2}, "row 0 begin is -1: it must be at least 0");
}

BOOST_AUTO_TEST_CASE(refused_targets) {
  const auto layout = make_layout(numbers{2, 1});
  const numbers rows(3, 5);
  poisoned_buffer<long long> out(4);
  const auto refuse = [&](const std::vector<std::int32_t>& offsets, offset_t values,
                          const auto& predicate) {
    BOOST_CHECK_EXCEPTION(
        unpack(host, layout, full_row,
               field(rows, ragged_view(row_view(out.data(), values), offsets.data(), 2))),
        invalid_input, predicate);
    BOOST_TEST(out.untouched());
  };
  refuse({0, 1, 2}, 2, refused("field 0's target row 0 size", "1", "2"));
  refuse({0, 3, 4}, 4, refused("field 0's target row 0 size", "3", "2"));
  refuse({0, 2, 4}, 4, refused("field 0's target row 1 size", "2", "1"));
  refuse({0, 2, 3}, 4, refused("field 0's target values", "4", "3"));
}

BOOST_AUTO_TEST_CASE(values_of_no_sequences_are_refused) {
  const auto layout = make_layout(numbers{});
  const numbers rows;
  poisoned_buffer<long long> out(2);
  const std::vector<std::int32_t> offsets{0};
  BOOST_CHECK_EXCEPTION(unpack(host, layout, full_row,
                               field(rows, ragged_view(row_view(out.span()), offsets.data(), 0))),
                        invalid_input, refused("field 0's target values", "2", "0"));
  BOOST_TEST(out.untouched());
  unpack(host, layout, full_row,
         field(rows, ragged_view(row_view(out.data(), 0), offsets.data(), 0)));
}
