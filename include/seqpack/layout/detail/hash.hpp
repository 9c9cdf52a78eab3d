/// \file
/// The hash of numbers, and of what a layout puts where.
// For the folders above too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack::detail {

/// Takes numbers in their order. Every step is a bijection of the state for a given number and of
/// the number for a given state: lists that differ in one number never meet.
class hasher {
 public:
  constexpr void add(offset_t number) noexcept {
    state_ = (state_ ^ static_cast<std::uint64_t>(number)) * 0x9E37'79B9'7F4A'7C15u;
    state_ ^= state_ >> 32;
  }
  constexpr std::uint64_t value() const noexcept { return state_; }

 private:
  std::uint64_t state_ = 0x7365'7170'6163'6b01u;
};

/// The map of one padded sequence: every run of every shard.
template <context_parallel_policy C>
constexpr void add_shards(hasher& hash, C cp, offset_t length) {
  for (offset_t rank = 0; rank < cp.size(); ++rank) {
    const offset_t share = length / cp.size();
    for (offset_t index = 0; index < share;) {
      const shard_position p{rank, index};
      const offset_t run = cp.run(p, length);
      hash.add(cp.to_token(p, length));
      hash.add(run);
      index += run;
    }
  }
}

/// The sharding by what it does to the sequences of the layout: once for each padded length.
template <class View>
constexpr void add_sharding(hasher& hash, const View& view) {
  if (view.cp.cuts_row()) return;  // in one way only, which the sizes tell
  std::vector<offset_t> lengths(static_cast<std::size_t>(view.segments));
  for (offset_t s = 0; s < view.segments; ++s) {
    lengths[static_cast<std::size_t>(s)] = view.padded_length(s);
  }
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  for (const offset_t length : lengths) add_shards(hash, view.cp, length);
}

/// Bounds as numbers, whatever their index type is. The first is always 0.
template <class View>
constexpr void add_sequences(hasher& hash, const View& view) {
  for (offset_t s = 0; s < view.segments; ++s) {
    hash.add(static_cast<offset_t>(view.cu[s + 1]));
    hash.add(view.begin_of(s + 1));
  }
  for (offset_t s = 0; s < view.sequences; ++s) hash.add(view.sequence_in(s));
}

}  // namespace seqpack::detail
