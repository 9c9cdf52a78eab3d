#define BOOST_TEST_MODULE gathered_keys
#include "seqpack/tokens/gathered_keys.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <vector>

#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout.hpp"
#include "support/as_device.hpp"
#include "support/layouts.hpp"
#include "support/oracle.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using bounds = std::vector<std::int32_t>;

struct written {
  bounds q, kv, rows;
  offset_t max_q, max_kv;
};

template <class Executor, class Layout>
written params(const Executor& where, const Layout& layout, offset_t rank) {
  const auto entries = static_cast<std::size_t>(layout.view().segments + 1);
  written w{bounds(entries, -1), bounds(entries, -1), bounds(2, -1), 0, 0};
  const auto made = make_gathered_key_params(where, layout, shard{rank}, std::span(w.q),
                                             std::span(w.kv), std::span(w.rows));
  BOOST_TEST(made.cu_seqlens_q.data() == w.q.data());
  BOOST_TEST(made.cu_seqlens_kv.data() == w.kv.data());
  BOOST_TEST(made.key_rows.data() == w.rows.data());
  w.max_q = made.max_seqlen_q;
  w.max_kv = made.max_seqlen_kv;
  return w;
}

/// From the tokens of the row: which slots a rank has, and how many tokens of each it and its keys
/// have.
void compare(const auto& layout, const oracle::packed& expected, std::size_t rank) {
  const auto size = static_cast<oracle::number>(expected.shards[rank].size());
  const oracle::number first = static_cast<oracle::number>(rank) * size;
  const std::size_t slots = expected.lens.size();
  std::vector<oracle::number> q(slots, 0);
  std::vector<oracle::number> kv(slots, 0);
  for (oracle::number row = first; row < first + size; ++row) {
    ++q[oracle::at(expected.row[oracle::at(row)].slot)];
  }
  oracle::number begin = first;
  while (size > 0 && begin > 0 &&
         expected.row[oracle::at(begin - 1)].slot == expected.row[oracle::at(first)].slot) {
    --begin;
  }
  for (oracle::number row = begin; row < first + size; ++row) {
    ++kv[oracle::at(expected.row[oracle::at(row)].slot)];
  }
  const written w = params(host, layout, static_cast<offset_t>(rank));
  BOOST_TEST(w.rows[0] == begin);
  BOOST_TEST(w.rows[1] == first + size);
  BOOST_TEST(w.q[0] == 0);
  BOOST_TEST(w.kv[0] == 0);
  for (std::size_t k = 0; k < slots; ++k) {
    BOOST_TEST(w.q[k + 1] - w.q[k] == q[k]);
    BOOST_TEST(w.kv[k + 1] - w.kv[k] == kv[k]);
  }
  const auto most = [](const auto& of) {
    return of.empty() ? 0 : *std::max_element(of.begin(), of.end());
  };
  BOOST_TEST(w.max_q == most(q));
  BOOST_TEST(w.max_kv == most(kv));
  const row_shard described = describe_row_shard(layout, shard{static_cast<offset_t>(rank)});
  BOOST_TEST(described.first_key == begin);
  BOOST_TEST(described.end_key == first + size);
  BOOST_TEST(described.continues_before == (begin < first));
  const bool goes_on = size > 0 && first + size < expected.total &&
                       expected.row[oracle::at(first + size)].slot ==
                           expected.row[oracle::at(first + size - 1)].slot;
  BOOST_TEST(described.continues_after == goes_on);
}

}  // namespace

BOOST_AUTO_TEST_CASE(keys_begin_where_the_first_sequence_of_the_shard_does) {
  const auto layout =
      make_layout(std::vector{37, 51, 40}, no_padding{}, context_parallel<2, row_contiguous>{});
  const written first = params(host, layout, 0);
  BOOST_TEST(first.q == (bounds{0, 37, 64, 64}));
  BOOST_TEST(first.kv == (bounds{0, 37, 64, 64}));
  BOOST_TEST(first.rows == (bounds{0, 64}));
  const written second = params(host, layout, 1);
  BOOST_TEST(second.q == (bounds{0, 0, 24, 64}));
  BOOST_TEST(second.kv == (bounds{0, 0, 51, 91}));
  BOOST_TEST(second.rows == (bounds{37, 128}));
  BOOST_TEST(second.max_q == 40);
  BOOST_TEST(second.max_kv == 51);
  BOOST_TEST((describe_row_shard(layout, shard{0}) == row_shard{0, 64, 37, 37, false, true}));
  BOOST_TEST((describe_row_shard(layout, shard{1}) == row_shard{37, 128, 40, 51, true, false}));
}

BOOST_AUTO_TEST_CASE(the_ghost_has_a_segment_of_its_own) {
  const auto layout = make_layout(std::vector{4, 3}, padding{fixed_total<12>{}, ghost_tail{}},
                                  context_parallel<2, row_contiguous>{});
  const written w = params(host, layout, 1);
  BOOST_TEST(w.q == (bounds{0, 0, 1, 6}));
  BOOST_TEST(w.kv == (bounds{0, 0, 3, 8}));
  BOOST_TEST(w.rows == (bounds{4, 12}));
}

BOOST_AUTO_TEST_CASE(one_rank_has_all_queries_and_all_keys) {
  const auto layout = make_layout(std::vector{4, 0, 3});
  const written w = params(host, layout, 0);
  BOOST_TEST(w.q == (bounds{0, 4, 4, 7}));
  BOOST_TEST(w.kv == w.q);
}

BOOST_AUTO_TEST_CASE(a_row_of_nothing) {
  const auto layout =
      make_layout(std::vector{0, 0}, no_padding{}, context_parallel<2, row_contiguous>{});
  const written w = params(host, layout, 1);
  BOOST_TEST(w.q == (bounds{0, 0, 0}));
  BOOST_TEST(w.kv == (bounds{0, 0, 0}));
  BOOST_TEST((describe_row_shard(layout, shard{1}) == row_shard{}));
}

BOOST_AUTO_TEST_CASE(bounds_of_random_layouts) {
  for_random_layouts(
      57, [](const auto& layout, const oracle::packed& expected, const oracle::request& request) {
        if (request.sharding != oracle::kind::row_contiguous && request.cp > 1) return;
        for (std::size_t r = 0; r < expected.shards.size(); ++r) compare(layout, expected, r);
      });
}

BOOST_AUTO_TEST_CASE(one_entry_after_the_other_as_on_a_device) {
  const auto layout =
      make_layout(std::vector{37, 51, 40}, no_padding{}, context_parallel<2, row_contiguous>{});
  const written w = params(as_device{}, layout, 1);
  BOOST_TEST(w.q == (bounds{0, 0, 24, 64}));
  BOOST_TEST(w.kv == (bounds{0, 0, 51, 91}));
  BOOST_TEST(w.rows == (bounds{37, 128}));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const auto cut = make_layout(std::vector{8}, no_padding{}, context_parallel<2>{});
  const std::string of_sequences =
      "sharding is of each sequence: a shard of the whole row needs row_contiguous";
  BOOST_TEST(refusal([&] { describe_row_shard(cut, shard{0}); }) == of_sequences);
  bounds q(2, -1);
  bounds kv(2, -1);
  bounds rows(2, -1);
  const auto make = [&](const auto& layout, offset_t rank, std::span<std::int32_t> out) {
    return refusal([&] {
      make_gathered_key_params(host, layout, shard{rank}, out, std::span(kv), std::span(rows));
    });
  };
  BOOST_TEST(make(cut, 0, q) == of_sequences);
  const auto layout =
      make_layout(std::vector{8}, no_padding{}, context_parallel<2, row_contiguous>{});
  BOOST_TEST(make(layout, 2, q) ==
             "rank is 2: it must be from 0 to 1, the last context-parallel rank");
  BOOST_TEST(make(layout, 0, std::span(q).first(1)) ==
             "cu_seqlens_q is 1: it must be 2, the entries of cu_seqlens");
  BOOST_TEST(make(layout, 0, kv) ==
             "cu_seqlens_kv is in the memory of cu_seqlens_q: outputs must not alias");
  BOOST_TEST(kv == (bounds{-1, -1}));
  BOOST_TEST(rows == (bounds{-1, -1}));
}
