/// \file
/// Values that must be the same on all ranks: which rank differs from what most ranks have, and in
/// what.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/layout/layout_hash.hpp"

namespace seqpack::detail {

/// A number of one rank beside what it must be.
struct difference {
  std::string name;
  std::string found;
  std::string expected;
};

/// The first rank of those that have what most ranks have; of equally many, the lowest.
template <class Value>
std::size_t most_common(const std::vector<Value>& values) {
  std::size_t best = 0;
  offset_t best_count = 0;
  for (std::size_t r = 0; r < values.size(); ++r) {
    const auto count = std::count(values.begin(), values.end(), values[r]);
    if (count <= best_count) continue;
    best = r;
    best_count = count;
  }
  return best;
}

/// \param describe the difference between two values that differ
/// \throws collective_mismatch about the first rank that is not with the majority, naming all.
template <class Value, class Describe>
void require_same(const group_members& members, const std::vector<Value>& values,
                  const Describe& describe) {
  if (std::count(values.begin(), values.end(), values.front()) == std::ssize(values)) return;
  const std::size_t expected = most_common(values);
  refuse(ranks_where(members.size(), [&](std::size_t r) { return values[r] != values[expected]; }),
         [&](group_rank r) {
           const difference d =
               describe(values[static_cast<std::size_t>(r.value)], values[expected]);
           const group_rank reference{static_cast<offset_t>(expected)};
           return collective_mismatch(
               r, d.name + " on " + rank_name(members, r), d.found,
               "it must be " + d.expected + ", as on " + rank_name(members, reference));
         });
}

/// The same for numbers.
template <class Number>
void require_same_number(const group_members& members, const std::vector<Number>& numbers,
                         const std::string& name) {
  require_same(members, numbers, [&](Number found, Number expected) {
    return difference{name, std::to_string(found), std::to_string(expected)};
  });
}

inline std::string hex(std::uint64_t hash) {
  std::string text = "0x";
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(hash >> shift) & 15];
  return text;
}

/// The first number in which two layouts differ, or else their hashes.
inline difference describe_layouts(const layout_fingerprint& found,
                                   const layout_fingerprint& expected) {
  struct number {
    const char* name;
    offset_t found;
    offset_t expected;
  };
  const std::array<number, 4> numbers{
      number{"batch size", found.batch, expected.batch},
      number{"number of sequences", found.sequences, expected.sequences},
      number{"total tokens", found.total_tokens, expected.total_tokens},
      number{"context-parallel size", found.cp_size, expected.cp_size}};
  for (const number& n : numbers) {
    if (n.found == n.expected) continue;
    return {n.name, std::to_string(n.found), std::to_string(n.expected)};
  }
  return {"layout hash", hex(found.hash), hex(expected.hash)};
}

}  // namespace seqpack::detail
