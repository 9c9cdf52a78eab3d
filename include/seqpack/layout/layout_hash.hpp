/// \file
/// A number that two layouts share where they pad by the same policy and put every token into the
/// same place, and what to say where they do not: how ranks find out that their layouts differ.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/move/field.hpp"

namespace seqpack {

namespace detail {

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

/// By what it computes, so that static and dynamic numbers are the same.
template <padding_policy P>
constexpr void add_padding(hasher& hash, P padding) {
  hash.add(padding.each());
  hash.add(padding.total_multiple());
  hash.add(P::has_fixed_total ? padding.fixed_total() : 0);
  hash.add(static_cast<offset_t>(P::tail_goes_to));
  for (const offset_t length : {1, 3, 17, 100, 4097, 65537}) {
    hash.add(padding.padded_length(length));
  }
}

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

}  // namespace detail

/// A hash of all that decides where a token is: the sizes, both bounds, the order, what the padding
/// computes, and every run of the shards of each padded length that occurs. Index types, and
/// whether numbers are static or dynamic, make no difference; neither do an order that changes
/// nothing and none. The same on every machine.
///
/// For layouts on the host; the sizes of a layout on a device are in `fingerprint_of_sizes`.
///
/// \throws invalid_input for a layout of tokens without arrays.
///
/// Allocates O(B). O(B log B), and O(runs) for each padded length that occurs: 2 * CP for zigzag,
/// CP for contiguous, the length for striped. Usable in constant expressions.
template <layout L>
  requires runs_on<host_t, L>
constexpr std::uint64_t layout_hash(const L& layout) {
  const auto view = layout.view();
  detail::hasher hash;
  hash.add(view.sequences);
  hash.add(view.segments);
  hash.add(view.batch);
  hash.add(view.total);
  hash.add(view.cp.size());
  hash.add(view.cp.divisor());
  if (view.dropped != 0) hash.add(view.dropped);
  detail::add_padding(hash, view.padding);
  if (view.cu == nullptr || view.cu_padded == nullptr) {
    detail::require_layout(view);
  } else {
    detail::add_sequences(hash, view);
    detail::add_sharding(hash, view);
  }
  return hash.value();
}

/// A layout in a few numbers, for messages between ranks. Trivially copyable.
struct layout_fingerprint {
  std::uint64_t hash = 0;
  offset_t batch = 0;         ///< B
  offset_t sequences = 0;     ///< slots, the ghost not counted
  offset_t total_tokens = 0;  ///< T
  offset_t cp_size = 0;       ///< CP

  friend constexpr bool operator==(const layout_fingerprint&, const layout_fingerprint&) = default;
};

/// What any layout says on the host without its arrays; the hash is 0. O(1).
template <layout L>
constexpr layout_fingerprint fingerprint_of_sizes(const L& layout) noexcept {
  const auto& view = layout.view();
  return {0, view.batch, view.sequences, view.total, view.cp.size()};
}

/// The fingerprint of a layout on the host; costs what layout_hash does.
/// \throws invalid_input as layout_hash does.
template <layout L>
  requires runs_on<host_t, L>
constexpr layout_fingerprint fingerprint(const L& layout) {
  layout_fingerprint result = fingerprint_of_sizes(layout);
  result.hash = layout_hash(layout);
  return result;
}

}  // namespace seqpack
