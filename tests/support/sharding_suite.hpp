/// \file
/// What every sharding must do. check_sharding is instantiated for each type that claims the concept,
/// those of users included.
#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <vector>

#include "seqpack/policy/sharding.hpp"

namespace seqpack::testing {

/// A user-defined sharding: the last rank owns the first chunk.
struct reversed_contiguous {
  static constexpr offset_t divisor(offset_t cp) { return cp; }
  static constexpr shard_position to_shard(offset_t token, offset_t length, offset_t cp) {
    const offset_t size = length / cp;
    return {cp - 1 - token / size, token % size};
  }
  static constexpr offset_t to_token(shard_position p, offset_t length, offset_t cp) {
    return (cp - 1 - p.rank) * (length / cp) + p.index;
  }
  static constexpr offset_t run(shard_position p, offset_t length, offset_t cp) {
    return length / cp - p.index;
  }
};

/// A bijection between the tokens of one sequence and the shares of the ranks.
template <context_parallel_policy C>
void check_bijection(const C& c, offset_t length) {
  const offset_t share = length / c.size();
  std::vector<int> owned(static_cast<std::size_t>(length));
  for (offset_t rank = 0; rank < c.size(); ++rank) {
    for (offset_t index = 0; index < share; ++index) {
      const offset_t token = c.to_token({rank, index}, length);
      BOOST_TEST_REQUIRE((token >= 0 && token < length));
      BOOST_TEST((c.to_shard(token, length) == shard_position{rank, index}));
      ++owned[static_cast<std::size_t>(token)];
    }
  }
  BOOST_TEST(std::ranges::count(owned, 1) == length);
}

/// run() says how many tokens follow each other both in the sequence and in the share: every one
/// that it promises does. `longest`: the one behind them does not.
template <context_parallel_policy C>
void check_runs(const C& c, offset_t length, bool longest) {
  const offset_t share = length / c.size();
  for (offset_t rank = 0; rank < c.size(); ++rank) {
    for (offset_t index = 0; index < share; ++index) {
      const offset_t run = c.run({rank, index}, length);
      const offset_t token = c.to_token({rank, index}, length);
      const auto follows = [&](offset_t k) {
        return index + k < share && c.to_token({rank, index + k}, length) == token + k;
      };
      BOOST_TEST(run >= 1);
      for (offset_t k = 0; k < run; ++k) BOOST_TEST(follows(k));
      if (longest) BOOST_TEST(!follows(run));
    }
  }
}

/// What the concept asks for in words, for 2 to 8 ranks and lengths up to a few times the divisor.
/// \param longest_runs whether the runs are as long as they can be
template <sharding S>
void check_sharding(const S& how, bool longest_runs) {
  for (offset_t cp = 2; cp <= 8; ++cp) {
    const context_parallel<dynamic, S> c{cp, how};
    BOOST_TEST(c.divisor() == how.divisor(cp));
    BOOST_TEST(c.total_divisor() % cp == 0);
    BOOST_TEST((c.cuts_row() ? c.divisor() == 1 : c.divisor() == c.total_divisor()));
    const offset_t step = c.total_divisor();
    for (offset_t length = step; length <= 5 * step; length += step) {
      check_bijection(c, length);
      check_runs(c, length, longest_runs);
    }
  }
}

}  // namespace seqpack::testing
