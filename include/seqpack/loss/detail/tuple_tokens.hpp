/// \file
/// The tokens of one tuple of sequences, wherever a layout has put them, one sequence after another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/team.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/tokens/detail/targets.hpp"

namespace seqpack::detail {

/// Consecutive rows of a shard.
struct shard_rows {
  offset_t first = 0;
  offset_t count = 0;
};

/// The rows of a shard that hold the tokens of a segment, its padding included: every sharding keeps
/// them together.
template <class View>
shard_rows rows_of_segment(const View& view, shard mine, offset_t segment) {
  const offset_t first = view.shard_begin(mine, segment);
  return {first, view.shard_begin(mine, segment + 1) - first};
}

/// The real tokens of K sequences one after another, and the rows of a shard that hold some of them.
/// Ranks have the same tokens, and each its own rows: any number, also none.
template <std::size_t K>
struct tuple_tokens {
  offset_t number = -1;        ///< of the tuple; -1 stands for all tuples of a layout
  offset_t slots[K] = {};      ///< of its sequences
  offset_t begin[K + 1] = {};  ///< of the tokens of each sequence; the last one is their number
  offset_t rows[K] = {};       ///< of the shard: the first one of each sequence
  offset_t own[K + 1] = {};    ///< of the rows of each sequence, as `begin` of its tokens

  SEQPACK_HD constexpr offset_t tokens() const noexcept { return begin[K]; }
  SEQPACK_HD constexpr offset_t own_rows() const noexcept { return own[K]; }
  SEQPACK_HD constexpr shard_rows rows_of(std::size_t k) const noexcept {
    return {rows[k], own[k + 1] - own[k]};
  }
  /// The sequence that entry n of a list with these beginnings is about.
  SEQPACK_HD static constexpr std::size_t sequence_at(const offset_t* beginnings,
                                                      offset_t n) noexcept {
    std::size_t k = 0;
    while (k + 1 < K && beginnings[k + 1] <= n) ++k;
    return k;
  }
};

/// \param view on the host, of a layout that has the tuple
template <std::size_t K, class View>
tuple_tokens<K> tokens_of_tuple(const View& view, shard mine, offset_t number) {
  tuple_tokens<K> tuple;
  tuple.number = number;
  for (std::size_t k = 0; k < K; ++k) {
    const offset_t slot = view.slot(number * offset_t{K} + static_cast<offset_t>(k));
    const shard_rows rows = rows_of_segment(view, mine, slot);
    tuple.slots[k] = slot;
    tuple.begin[k + 1] = tuple.begin[k] + view.length(slot);
    tuple.rows[k] = rows.first;
    tuple.own[k + 1] = tuple.own[k] + rows.count;
  }
  return tuple;
}

/// The labels of a rank's rows of a tuple.
template <class View, class Fields, std::size_t K>
struct tuple_labels_operation {
  View view;
  counted_label<Fields> label;
  tuple_tokens<K> tuple;
  shard mine;
  std::int64_t* labels;

  offset_t rows() const noexcept { return tuple.own_rows(); }
  offset_t row_bytes() const noexcept { return sizeof(std::int64_t); }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t n) const {
    const std::size_t k = tuple.sequence_at(tuple.own, n);
    labels[n] = label(view, view.token_at(mine, tuple.rows[k] + n - tuple.own[k]));
  }
};

/// Brings numbers of a rank's rows of a tuple to its tokens; those of padding go nowhere.
template <class View, class C, std::size_t K>
struct tuple_spread_operation {
  View view;
  tuple_tokens<K> tuple;
  shard mine;
  const C* of_rows;
  C* of_tokens;

  offset_t rows() const noexcept { return tuple.own_rows(); }
  offset_t row_bytes() const noexcept { return sizeof(C); }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t n) const {
    const std::size_t k = tuple.sequence_at(tuple.own, n);
    const token_ref token = view.token_at(mine, tuple.rows[k] + n - tuple.own[k]);
    if (token.real()) of_tokens[tuple.begin[k] + token.index] = of_rows[n];
  }
};

}  // namespace seqpack::detail
