/// \file
/// The pass of a loss on log-probabilities: a tuple at a time, for hosts and devices.
#pragma once

#include <cstddef>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/team.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/loss/detail/loss_source.hpp"
#include "seqpack/loss/detail/sequence_team.hpp"
#include "seqpack/loss/detail/tuple_rows.hpp"
#include "seqpack/loss/detail/tuple_tokens.hpp"
#include "seqpack/loss/loss.hpp"
#include "seqpack/loss/sequence.hpp"
#include "seqpack/tokens/detail/targets.hpp"

namespace seqpack::detail {

/// A loss on log-probabilities: one tuple per row of work. On a device the team that evaluates it
/// for a tuple shares the targets out among its threads. A tuple that the layout leaves out gives 0
/// and records nothing.
template <class View, class Fields, class L, class C>
struct log_prob_loss_operation {
  loss_source<View, Fields> from;
  L loss;
  const C* log_probs;  ///< of all shards, rank after rank; of one tuple, of its tokens
  C* derivatives;      ///< of this rank's rows, or those of the tuple, 0 so far; or null
  shard mine;
  double factor;                         ///< what a derivative of the plain sum is multiplied by
  double* results;                       ///< of all tuples
  tuple_tokens<tuple_size<L>> one = {};  ///< or all tuples

  static constexpr offset_t tuple = sequences_per_tuple<L>;

  offset_t rows() const noexcept {
    return one.number < 0 ? divide(from.view.batch, tuple) : offset_t{1};
  }
  offset_t row_bytes() const noexcept {
    return divide(from.view.total, max_of(rows(), 1)) * offset_t{sizeof(C)};
  }
  /// The same for every batch, so that the same number of threads adds up a sequence, in the same
  /// order, whatever else is in its batch and however that is padded: those for a few thousand
  /// tokens.
  offset_t row_work() const noexcept { return offset_t{64} * 1024; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(single_thread{}, first);
  }
  template <team Team>
  SEQPACK_HD void operator()(const Team& team, offset_t row) const {
    const offset_t n = one.number < 0 ? row : one.number;
    using metrics = typename L::metrics;
    double found[tuple_row_size<L>];  // by this thread; the value, by the first one
    clear_tuple_row(found, metrics{});
    const bool is_packed = from.view.slot(n * tuple) >= 0;
    const double weight = is_packed ? sample_weight(from.fields, n * tuple) : 0;
    if (weight != 0) {
      bool inside = false;
      const sequence_team<Team> all(team, inside);
      const auto sequence = [&](std::size_t k) {
        return log_prob_sequence<View, Fields, metrics, C, Team>(
            from, n * tuple + static_cast<offset_t>(k), found + 1, weight, log_probs, all,
            one.number < 0 ? nullptr : log_probs + one.begin[k]);
      };
      const auto term = call_loss(loss, sequence, std::make_index_sequence<tuple_size<L>>{});
      found[0] = weight * term.value;
      inside = true;
      if (derivatives != nullptr && factor != 0) write(team, n * tuple, weight * factor, term);
      gather_recorded(team, found, metrics{});
    }
    if (team.rank() > 0) return;
    for (offset_t k = 0; k < tuple_row_size<L>; ++k) results[n * tuple_row_size<L> + k] = found[k];
  }

 private:
  template <class Team>
  SEQPACK_HD void write(const Team&, offset_t, double, const differentiable_t<>&) const {}
  template <class Team, class Term>
  SEQPACK_HD void write(const Team& team, offset_t b, double scale, const Term& term) const {
    constexpr std::size_t k = tuple_size<L> - Term::sequences;
    const offset_t shift = one.number < 0 ? 0 : one.own[k] - one.rows[k];
    const offset_t slot = from.view.slot(b);
    const offset_t length = slot < 0 ? 0 : from.view.length(slot);
    for (offset_t t = 1 + team.rank(); t < length; t += team.size()) {
      const offset_t row = from.view.row_of(mine, slot, t - 1);
      if (row < 0) continue;
      const double w = token_weight(from.fields, from.rule, b, t);
      if (w != 0) derivatives[row + shift] = static_cast<C>(scale * w * term.derivative(t));
    }
    write(team, b + 1, scale, term.rest);
  }
};

}  // namespace seqpack::detail
