/// \file
/// The bounds of queries and keys of one shard of the row, entry by entry.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/place.hpp"

namespace seqpack::detail {

/// \throws invalid_input for a sharding that cuts each sequence.
template <class ContextParallel>
constexpr void require_row_cut(const ContextParallel& cp) {
  if (cp.size() > 1 && !cp.cuts_row()) {
    reject("sharding", "of each sequence", "a shard of the whole row needs row_contiguous");
  }
}

/// Where the first sequence of a shard begins in the full row.
template <class View>
SEQPACK_HD constexpr offset_t first_key_of(const View& view, shard at) {
  const offset_t first = at.rank * view.rows(at);
  return view.rows(at) == 0 ? first : view.begin_of(view.slot_at(first));
}

template <class View>
struct gathered_keys_operation {
  using index = typename View::index_type;

  View view;
  shard at;
  index* queries;
  index* keys;
  index* key_rows;

  offset_t rows() const noexcept { return view.segments + 1; }
  offset_t row_bytes() const noexcept { return 2 * sizeof(index); }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t k) const {
    const offset_t rows = view.rows(at);
    const offset_t begin = first_key_of(view, at);
    const offset_t end = at.rank * rows + rows;
    queries[k] = static_cast<index>(view.shard_begin(at, k));
    keys[k] = static_cast<index>(max_of(min_of(view.begin_of(k), end), begin) - begin);
    if (k > 0) return;
    key_rows[0] = static_cast<index>(begin);
    key_rows[1] = static_cast<index>(end);
  }
};

}  // namespace seqpack::detail
