// Left-padded batches: row b starts at column starts[b].
#define BOOST_TEST_MODULE left_padded
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <random>
#include <vector>

#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "support/buffers.hpp"
#include "support/layouts.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using oracle::numbers;

constexpr long long width = 30;

/// A batch whose rows start anywhere that leaves them room.
struct shifted_ids {
  shifted_ids(const numbers& lens, std::mt19937& random) : table(lens.size() * width, -1) {
    for (std::size_t b = 0; b < lens.size(); ++b) {
      const long long room = width - lens[b];
      starts.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(room + 1)));
      for (long long s = 0; s < lens[b]; ++s) {
        table[b * width + static_cast<std::size_t>(starts[b] + s)] =
            oracle::id(static_cast<long long>(b), s);
      }
    }
  }
  template <class T>
  auto view(T* data) const {
    return left_padded_view(batch_view(data, static_cast<offset_t>(starts.size()), width),
                            starts.data());
  }
  numbers table;
  std::vector<std::int32_t> starts;
};

}  // namespace

BOOST_AUTO_TEST_CASE(packs_and_unpacks) {
  std::mt19937 random(51);
  for (int round = 0; round < 10; ++round) {
    const int batch = round % 6;
    const numbers lens = random_lengths(random, batch, 25);
    const numbers order = round % 2 == 0 ? numbers{} : random_order(random, batch);
    const shifted_ids ids(lens, random);
    for_each_layout(lens, order, [&](const auto& layout, const auto& expected, const auto&) {
      for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
        poisoned_buffer<long long> row(static_cast<offset_t>(tokens.size()));
        pack(host, layout, at, field(ids.view(ids.table.data()), row.span(), -7));
        BOOST_TEST(row.values() == oracle::values(tokens, oracle::id, -7), per_element());
        BOOST_TEST(row.guards_intact());

        poisoned_buffer<long long> back(batch * width);
        unpack(host, layout, at, field(row_view(row.span()), ids.view(back.data()), -9));
        numbers wanted(static_cast<std::size_t>(batch * width), -9);
        for (const auto& token : tokens) {
          if (!token.real) continue;
          const auto b = static_cast<std::size_t>(token.row);
          wanted[b * width + static_cast<std::size_t>(ids.starts[b] + token.position)] =
              oracle::id(token.row, token.position);
        }
        BOOST_TEST(back.values() == wanted, per_element());
        BOOST_TEST(back.guards_intact());
      });
    });
  }
}

BOOST_AUTO_TEST_CASE(own_tokens_alone) {
  const auto layout =
      make_layout(numbers{3}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const std::vector<std::int64_t> starts{2};
  const numbers rank1{101, 102};
  numbers out(6, -3);
  unpack_own(host, layout, shard{1},
             field(rank1, left_padded_view(batch_view(out.data(), 1, 6), starts.data())));
  BOOST_TEST(out == (numbers{-3, -3, -3, 101, 102, -3}), per_element());
}

BOOST_AUTO_TEST_CASE(refused_starts) {
  const auto layout = make_layout(numbers{2, 3});
  const numbers table(8, 5);
  poisoned_buffer<long long> row(5);
  poisoned_buffer<long long> back(8);
  const auto refuse = [&](const std::vector<std::int32_t>& starts, const std::string& entry,
                          const std::string& value, const std::string& limit) {
    const auto from = left_padded_view(batch_view(table.data(), 2, 4), starts.data());
    const auto to = left_padded_view(batch_view(back.data(), 2, 4), starts.data());
    BOOST_CHECK_EXCEPTION(pack(host, layout, full_row, field(from, row.span())), invalid_input,
                          refused("field 0's source" + entry, value, limit));
    BOOST_CHECK_EXCEPTION(unpack(host, layout, full_row, field(row_view(table.data(), 5), to)),
                          invalid_input, refused("field 0's target" + entry, value, limit));
    BOOST_TEST(row.untouched());
    BOOST_TEST(back.untouched());
  };
  refuse({-1, 0}, " row 0 start column", "-1", "0");
  refuse({2, 2}, " row 1 size", "2", "3");
  refuse({0, 5}, " row 1 start column", "5", "at most 4");
}

BOOST_AUTO_TEST_CASE(starts_of_empty_rows_may_be_the_width) {
  const auto layout = make_layout(numbers{0, 2});
  const numbers table{-1, -1, 200, 201};
  const std::vector<std::int32_t> starts{2, 0};
  numbers row(2, 777);
  pack(host, layout, full_row,
       field(left_padded_view(batch_view(table.data(), 2, 2), starts.data()), row));
  BOOST_TEST(row == (numbers{200, 201}), per_element());
}

BOOST_AUTO_TEST_CASE(overlapping_target_is_refused) {
  const auto layout = make_layout(numbers{2, 2});
  const numbers rows(4, 5);
  const std::vector<std::int32_t> starts{0, 0};
  poisoned_buffer<long long> out(4);
  BOOST_CHECK_EXCEPTION(
      unpack(host, layout, full_row,
             field(rows, left_padded_view(batch_view(out.data(), 2, 2, 1, 1, 1), starts.data()))),
      invalid_input, refused("field 0's target strides", "1 and 1", "overlap"));
  BOOST_TEST(out.untouched());
}
