/// \file
/// What every owner of a layout says about it, on the host, without touching its arrays.
#pragma once

#include <span>

#include "seqpack/core/config.hpp"
#include "seqpack/layout/layout_view.hpp"

namespace seqpack::detail {

/// The questions that all owners answer; an owner derives from it and offers view().
/// Nothing here synchronises, and the spans point to where the layout lives: host or device.
template <class Owner>
class layout_access {
 public:
  /// B, sequences of the batch.
  offset_t batch_size() const noexcept { return view().batch; }
  /// Packed sequences, which is the number of slots, the ghost not counted; B unless an order
  /// leaves sequences out.
  offset_t sequences() const noexcept { return view().sequences; }
  /// T, padding included.
  offset_t total_tokens() const noexcept { return view().total; }
  /// T / CP.
  offset_t shard_tokens() const noexcept { return view().shard_tokens(); }
  /// The largest padded length, the tail's included; a bound of it in a layout with a capacity.
  offset_t max_seqlen() const noexcept { return view().longest_padded; }
  /// The largest real length; a bound of it in a layout with a capacity.
  offset_t max_length() const noexcept { return view().longest; }
  /// Whether there is padding; whether there can be in a layout with a capacity.
  bool has_padding() const noexcept { return view().padded; }
  /// Whether the last segment is a ghost: padding that belongs to no sequence. It may be empty.
  bool has_ghost() const noexcept { return view().has_ghost(); }
  auto context_parallel() const noexcept { return view().cp; }
  /// The sequence in each slot, or no order; it can be given to another layout as it is.
  auto order() const noexcept { return view().slot_sequences(); }
  /// segments + 1 prefix sums of the real lengths.
  auto cu_seqlens() const noexcept { return view().cu_seqlens(); }
  /// segments + 1 prefix sums of the padded lengths; the last is T.
  auto cu_seqlens_padded() const noexcept { return view().cu_seqlens_padded(); }

 private:
  auto view() const noexcept { return static_cast<const Owner&>(*this).view(); }
};

}  // namespace seqpack::detail
