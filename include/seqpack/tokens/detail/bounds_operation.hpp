/// \file
/// Arrays that are made of the bounds of sequences, entry by entry.
#pragma once

#include <span>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/detail/exact.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/move/detail/checks.hpp"

namespace seqpack::detail {

/// One entry of an output per entry of an array of bounds.
template <class From, class To, class Function>
struct bounds_operation {
  const From* from;
  row_view<To> to;
  Function function;

  offset_t rows() const noexcept { return to.rows; }
  offset_t row_bytes() const noexcept { return sizeof(To); }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t k) const {
    *to.at(k) = static_cast<To>(function(static_cast<offset_t>(from[k])));
  }
};

/// The bounds of the segments in one shard.
template <class View, class To>
struct shard_bounds_operation {
  View view;
  shard at;
  row_view<To> to;

  offset_t rows() const noexcept { return to.rows; }
  offset_t row_bytes() const noexcept { return sizeof(To); }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t k) const {
    *to.at(k) = static_cast<To>(view.shard_begin(at, k));
  }
};

/// \throws invalid_input for a sharding whose ranks have different bounds.
template <class ContextParallel>
constexpr void require_equal_shards(const ContextParallel& cp) {
  if (cp.cuts_row()) {
    reject("sharding", "of the whole row", "every rank has bounds of its own: say of which shard");
  }
}

/// Where 64 bits do not hold the product, which the host refuses, it is the last number that they hold.
struct times {
  offset_t factor;
  offset_t most;  ///< the largest bound whose product is held

  SEQPACK_HD constexpr offset_t operator()(offset_t bound) const {
    if (bound < 0) return 0;
    return bound > most ? largest_whole<offset_t> : bound * factor;
  }
};

template <class From, class To>
void require_bounds(std::span<const From> from, const row_view<To>& to) {
  require_equal(alone, "bounds", to.rows, static_cast<offset_t>(from.size()),
                "the entries of cu_seqlens");
  require_memory(alone, "bounds", to.data, to.rows);
  regions<1, 1> memory;
  memory.read(bytes_of(from.data(), static_cast<offset_t>(from.size())), alone, "cu_seqlens");
  memory.write(to.touched(), alone, "bounds");
  memory.require_apart();
}

}  // namespace seqpack::detail
