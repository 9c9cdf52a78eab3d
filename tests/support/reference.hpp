/// \file
/// The layouts and batches of the reference cases in tests/data.
#pragma once

#include "seqpack/layout/layout.hpp"
#include "support/golden.hpp"

namespace seqpack::testing {

/// Calls f with the layout of a case. A fixed total is another policy type than none.
template <class F>
void with_reference_layout(const golden::pack_case& c, F&& f) {
  const each_multiple_of<> each{c.pad_each};
  const total_multiple_of<> multiple{c.pad_total_multiple};
  const context_parallel cp{c.cp_size};
  if (c.pad_total_to) {
    f(make_layout(c.seq_lengths, padding{each, multiple, fixed_total<>{*c.pad_total_to}}, cp));
  } else {
    f(make_layout(c.seq_lengths, padding{each, multiple}, cp));
  }
}

/// The [B, S] batch of a case; columns behind a length hold `behind`.
inline golden::numbers reference_table(const golden::pack_case& c, long long behind) {
  golden::numbers table;
  for (std::size_t b = 0; b < c.seq_lengths.size(); ++b) {
    for (long long s = 0; s < c.width; ++s) {
      const long long token = 1000 * (static_cast<long long>(b) + 1) + s;
      table.push_back(s < c.seq_lengths[b] ? token : behind);
    }
  }
  return table;
}

/// The shards of a case one after the other.
inline golden::numbers gathered_shards(const golden::pack_case& c) {
  golden::numbers all;
  for (const golden::numbers& shard : c.shards) all.insert(all.end(), shard.begin(), shard.end());
  return all;
}

}  // namespace seqpack::testing
