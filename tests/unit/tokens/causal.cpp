// The causal mask, position ids and layout of a batch that is not packed, against their definitions
// for every query and key.
#define BOOST_TEST_MODULE causal
#include "seqpack/tokens/causal.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "support/oracle.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

constexpr int end_of_document = 9;
using numbers = std::vector<std::int64_t>;

/// Where the document of a token begins, by looking back from it.
offset_t start_of(const std::vector<int>& row, offset_t s) {
  while (s > 0 && row[static_cast<std::size_t>(s - 1)] != end_of_document) --s;
  return s;
}

/// The tokens of a row that one rank owns, in its order.
oracle::numbers queries_of(oracle::kind sharding, offset_t cp, offset_t rank, offset_t width) {
  return oracle::share(sharding, cp, rank, width);
}

struct text {
  std::vector<int> ids;
  offset_t batch;
  offset_t width;
  batch_view<const int> view() const { return {ids.data(), batch, width}; }
  std::vector<int> row(offset_t b) const {
    return {ids.begin() + b * width, ids.begin() + (b + 1) * width};
  }
};
const text two_rows{{1, 9, 2, 3, 9, 4, 5, 6,  //
                     9, 9, 1, 1, 0, 0, 0, 0},
                    2,
                    8};
const std::vector<int> two_lengths{8, 4};

template <class Sharding>
void check_masks(oracle::kind kind, Sharding how) {
  for (const offset_t size : {1, 2, 4}) {
    const auto layout = unpacked_layout(two_lengths, two_rows.width, context_parallel{size, how});
    const offset_t width = two_rows.width;
    const offset_t queries = width / size;
    std::vector<std::int64_t> starts(two_rows.ids.size());
    const row_view<std::int64_t> start_rows(starts.data(), two_rows.batch, width);
    document_starts(host, layout, two_rows.view(), end_of_document, start_rows);
    for (offset_t rank = 0; rank < size; ++rank) {
      const oracle::numbers share = queries_of(kind, size, rank, width);
      const auto one = std::make_unique<bool[]>(static_cast<std::size_t>(queries * width));
      const auto each = std::make_unique<bool[]>(static_cast<std::size_t>(2 * queries * width));
      causal_mask(host, layout, shard{rank}, {}, row_view<bool>(one.get(), queries, width));
      causal_mask(host, layout, shard{rank}, start_rows,
                  row_view<bool>(each.get(), 2 * queries, width));
      std::vector<int> positions(static_cast<std::size_t>(layout.shard_tokens()));
      per_token(host, layout, shard{rank}, document_position_ids(start_rows, positions));
      for (offset_t b = 0; b < 2; ++b) {
        for (offset_t q = 0; q < queries; ++q) {
          const offset_t query = share[static_cast<std::size_t>(q)];
          const offset_t start = start_of(two_rows.row(b), query);
          BOOST_TEST(positions[static_cast<std::size_t>(b * queries + q)] == query - start);
          for (offset_t key = 0; key < width; ++key) {
            BOOST_TEST(one[static_cast<std::size_t>(q * width + key)] == (key > query));
            BOOST_TEST(each[static_cast<std::size_t>((b * queries + q) * width + key)] ==
                       (key > query || key < start));
          }
        }
      }
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(masks_of_all_shardings) {
  check_masks(oracle::kind::zigzag, zigzag{});
  check_masks(oracle::kind::contiguous, contiguous{});
  check_masks(oracle::kind::striped, striped{});
}

BOOST_AUTO_TEST_CASE(documents_begin_behind_an_end) {
  const auto layout = unpacked_layout(two_lengths, 8);
  std::vector<std::int64_t> starts(16);
  document_starts(host, layout, two_rows.view(), end_of_document,
                  row_view<std::int64_t>(starts.data(), 2, 8));
  const numbers expected{0, 0, 2, 2, 2, 5, 5, 5, 0, 1, 2, 2, 2, 2, 2, 2};
  BOOST_TEST(starts == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(padding_ends_no_document) {
  const std::vector<int> ids{1, 9, 2, 9, 9, 9};
  std::vector<std::int64_t> starts(6);
  document_starts(host, unpacked_layout(std::vector<int>{3}, 6),
                  batch_view<const int>(ids.data(), 1, 6), end_of_document,
                  row_view<std::int64_t>(starts.data(), 1, 6));
  BOOST_TEST((starts == numbers{0, 0, 2, 2, 2, 2}));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const auto layout = unpacked_layout(std::vector<int>{3, 4}, 4);
  const auto mask = std::make_unique<bool[]>(32);
  BOOST_CHECK_EXCEPTION(causal_mask(host, layout, shard{0}, {}, row_view<bool>(mask.get(), 8, 4)),
                        invalid_input, refused("mask rows", "8", "it must be 4"));
  BOOST_CHECK_EXCEPTION(causal_mask(host, layout, shard{0}, {}, row_view<bool>(mask.get(), 4, 5)),
                        invalid_input, refused("mask columns", "5", "it must be 4"));
  BOOST_CHECK_EXCEPTION(causal_mask(host, layout, shard{1}, {}, row_view<bool>(mask.get(), 4, 4)),
                        invalid_input, refused("rank", "1", "from 0 to 0"));
  std::vector<std::int64_t> starts(7);
  BOOST_CHECK_EXCEPTION(document_starts(host, unpacked_layout(two_lengths, 8), two_rows.view(), 9,
                                        row_view<std::int64_t>(starts.data(), 1, 7)),
                        invalid_input, refused("document starts rows", "1", "it must be 2"));
}
