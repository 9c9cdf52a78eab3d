/// \file
/// The passes of a loss on logits: whole rows are brought together for a tuple, and then the loss is
/// called once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/team.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/loss/detail/loss_source.hpp"
#include "seqpack/loss/detail/tuple_rows.hpp"
#include "seqpack/loss/detail/tuple_tokens.hpp"
#include "seqpack/loss/loss.hpp"
#include "seqpack/loss/sequence.hpp"
#include "seqpack/tokens/detail/targets.hpp"

namespace seqpack::detail {

/// The rows of a tuple with all columns, one for each of its tokens, from the ranks that have parts of
/// them: every rank writes its own and 0 elsewhere, and the sum over the ranks is exact. Rows of
/// targets that do not count stay 0.
template <class View, class Fields, class T, class C, std::size_t K>
struct assemble_logits_operation {
  loss_source<View, Fields> from;
  tuple_tokens<K> tuple;
  matrix_view<const T> logits;  ///< of this rank
  column_range columns;
  shard mine;
  C scale;
  bool last_row;    ///< whether the output at the last token is wanted
  row_view<C> out;  ///< of the tuple's tokens, all columns

  offset_t rows() const noexcept { return out.rows; }
  offset_t row_bytes() const noexcept { return out.payload * offset_t{sizeof(C)}; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(single_thread{}, first);
  }
  offset_t row_work() const noexcept { return row_bytes(); }
  template <team Team>
  SEQPACK_HD void operator()(const Team& team, offset_t row) const {
    C* const to = out.at(row);
    const T* const own = row_to_add(row);
    for (offset_t v = team.rank(); v < out.payload; v += team.size()) {
      to[v] = own != nullptr && columns.contains(v) ? static_cast<C>(own[v - columns.first]) * scale
                                                    : C{0};
    }
  }

 private:
  /// The logits that this rank has of a token; null where it has none, or they are not wanted.
  SEQPACK_HD const T* row_to_add(offset_t n) const {
    const std::size_t k = tuple.sequence_at(tuple.begin, n);
    const offset_t index = n - tuple.begin[k];
    const offset_t own = from.view.row_of(mine, tuple.slots[k], index);
    const bool wanted = n + 1 == tuple.begin[k + 1] ? last_row : counts(k, index + 1);
    return own < 0 || !wanted ? nullptr : logits.at(own);
  }
  SEQPACK_HD bool counts(std::size_t k, offset_t t) const {
    const offset_t b = from.view.sequence_in(tuple.slots[k]);
    return token_weight(from.fields, from.rule, b, t) != 0;
  }
};

/// Rows of a matrix that are 0.
template <class G>
struct zero_rows_operation {
  matrix_view<G> out;

  offset_t rows() const noexcept { return out.rows; }
  offset_t row_bytes() const noexcept { return out.columns * offset_t{sizeof(G)}; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) {
      std::fill_n(out.at(first), out.columns, static_cast<G>(0.0F));
    }
  }
  offset_t row_work() const noexcept { return row_bytes(); }
  template <team Team>
  SEQPACK_HD void operator()(const Team& team, offset_t row) const {
    team.fill_row(out.at(row), out.columns, static_cast<G>(0.0F));
  }
};

/// A loss on logits, for one tuple.
template <class View, class Fields, class L, class C, class G>
struct logits_loss_operation {
  loss_source<View, Fields> from;
  tuple_tokens<tuple_size<L>> tuple;
  L loss;
  row_view<const C> logits;  ///< of the tuple's tokens, all columns
  double* derivatives;       ///< one row of all columns, for the derivative to be written to
  matrix_view<G> gradient;   ///< of this rank's rows, those of the tuple 0 so far; or of nothing
  column_range columns;
  shard mine;
  double factor;
  double* results;  ///< of all tuples

  using sequence_type = logits_sequence<View, Fields, typename L::metrics, C>;

  offset_t rows() const noexcept { return 1; }
  offset_t row_bytes() const noexcept { return logits.rows * logits.payload * offset_t{sizeof(C)}; }
  void process(offset_t, offset_t) const { (*this)(0); }
  SEQPACK_HD void operator()(offset_t) const {
    double* const found = results + tuple.number * tuple_row_size<L>;
    clear_tuple_row(found, typename L::metrics{});
    const offset_t first = tuple.number * sequences_per_tuple<L>;
    const double weight = sample_weight(from.fields, first);
    if (weight == 0) return;
    const auto sequence = [&](std::size_t k) {
      return sequence_type(from, first + static_cast<offset_t>(k), found + 1, weight,
                           logits.data + tuple.begin[k] * logits.payload, logits.payload);
    };
    const auto term = call_loss(loss, sequence, std::make_index_sequence<tuple_size<L>>{});
    found[0] = weight * term.value;
    if (gradient.data != nullptr && factor != 0) write(first, weight * factor, term);
  }

 private:
  SEQPACK_HD void write(offset_t, double, const differentiable_t<>&) const {}
  template <class Term>
  SEQPACK_HD void write(offset_t b, double scale, const Term& term) const {
    const offset_t slot = from.view.slot(b);
    const offset_t length = from.view.length(slot);
    for (offset_t t = 1; t <= length; ++t) {
      const offset_t row = from.view.row_of(mine, slot, t - 1);
      if (row < 0 || !counts(b, t, length)) continue;
      for (offset_t v = 0; v < logits.payload; ++v) derivatives[v] = 0;
      term.derivative(t, derivatives);
      for (offset_t v = 0; v < columns.size(); ++v) {
        const double d = scale * derivatives[columns.first + v];
        gradient.at(row)[v] = static_cast<G>(static_cast<C>(d));
      }
    }
    write(b + 1, scale, term.rest);
  }
  SEQPACK_HD bool counts(offset_t b, offset_t t, offset_t length) const {
    if (t == length) return has_last_row<L>;
    return token_weight(from.fields, from.rule, b, t) != 0;
  }
};

}  // namespace seqpack::detail
