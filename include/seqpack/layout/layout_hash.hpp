/// \file
/// Hash and fingerprint of a layout, by which ranks find out whether their layouts are the same.
#pragma once

#include <cstdint>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/detail/checks.hpp"
#include "seqpack/layout/detail/hash.hpp"
#include "seqpack/layout/layout_view.hpp"

namespace seqpack {

/// A hash of all that decides where a token is: the sizes, both bounds, the order, and every run of
/// the shards of each padded length that occurs. Index types, whether policies are static or chosen
/// at run time, and by what padding the bounds were made, make no difference; neither do an order
/// that changes nothing and none. The same on every machine.
///
/// For layouts on the host; the sizes of a layout on a device are in `fingerprint_of_sizes`.
///
/// \throws invalid_input for a layout of tokens without arrays.
///
/// Allocates O(B). O(B log B), and O(runs) for each padded length that occurs: 2 * CP for zigzag,
/// CP for contiguous, the length for striped, none for row_contiguous. Usable in constant expressions.
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
  hash.add(view.cp.divisor());  // 1 where several ranks cut the row, and nowhere else
  if (view.dropped != 0) hash.add(view.dropped);
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
  offset_t sequences = 0;     ///< packed sequences, which is the number of slots
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
