/// \file
/// Checks of the batch, the logits and the options of a loss, and the counts that it needs.
// For the folders above too.
#pragma once

#include <string>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/logprob/detail/logits_checks.hpp"
#include "seqpack/logprob/detail/temperature.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/loss/global_counts.hpp"
#include "seqpack/loss/loss.hpp"
#include "seqpack/loss/loss_options.hpp"
#include "seqpack/loss/metric.hpp"
#include "seqpack/parallel/detail/group_execution.hpp"
#include "seqpack/tokens/batch_fields.hpp"
#include "seqpack/tokens/detail/targets.hpp"

namespace seqpack::detail {

/// Whether a loss or one of its metrics is divided by a count.
template <class L, metric... M>
constexpr bool is_divided_by(count_of what, metric_list<M...>) {
  [[maybe_unused]] const auto over = [&](auto m) {
    if constexpr (decltype(m)::kind == metric_kind::mean) {
      return decltype(m)::over == what;
    } else {
      return false;
    }
  };
  const bool by_level =
      what == (L::level == loss_level::token ? count_of::tokens : count_of::sequences);
  return by_level || (over(M{}) || ...);
}
/// Whether it needs N_tok, or N_seq.
template <class L>
inline constexpr bool needs_tokens = is_divided_by<L>(count_of::tokens, typename L::metrics{});
template <class L>
inline constexpr bool needs_sequences =
    is_divided_by<L>(count_of::sequences, typename L::metrics{}) ||
    is_divided_by<L>(count_of::pairs, typename L::metrics{});

/// \throws invalid_input for a field that the layout does not fit.
template <executor E, class View, class Fields, field_tag... Tags>
void require_loss_fields(const View& view, const Fields& fields, field_tags<Tags...>) {
  static_assert((has_field<Fields, Tags> && ...), "the batch lacks a field that the loss asks for");
  (require_batch_field<E>(Tags{}, view, fields), ...);
}

/// \throws invalid_input where an order has some sequences of a tuple, and leaves others out.
/// \param size how many sequences a tuple has
template <class View>
void require_whole_tuples(const View& view, offset_t size) {
  if (size == 1 || view.slot_of == nullptr) return;
  for (offset_t b = 0; b < view.batch; ++b) {
    const offset_t first = b - b % size;
    if ((view.slot(b) < 0) == (view.slot(first) < 0)) continue;
    const bool first_missing = view.slot(first) < 0;
    reject({"sequence ", first_missing ? first : b}, "left out of the order",
           {"the loss takes sequences ", first, " to ", first + size - 1,
            " together: the order must have all of them or none"});
  }
}

/// \param view of the layout on the host
/// \throws invalid_input for a batch that a loss cannot be evaluated on, on this rank.
template <executor E, class L, class View, class Fields>
void require_loss_batch(const View& view, const Fields& fields) {
  require_loss_fields<E>(view, fields, asked_fields<L>{});
  require_loss_fields<E>(view, fields, field_tags<input_ids_t>{});
  require_batch_field<E>(token_mask, view, fields);
  require_batch_field<E>(sample_mask, view, fields);
  if (view.batch % sequences_per_tuple<L> != 0) {
    reject("batch size", view.batch,
           "it must be a multiple of " + std::to_string(sequences_per_tuple<L>) +
               ", the sequences that the loss takes together");
  }
  require_whole_tuples(view, sequences_per_tuple<L>);
}

/// \throws invalid_input for targets that are not in the vocabulary, where they can be read.
template <executor E, class L, class View, class Fields>
void require_loss_targets(const View& view, const Fields& fields, const document_rule& rule,
                          offset_t vocabulary) {
  if constexpr (host_executor<E> && L::input == loss_input::next_token_logprobs) {
    require_known_targets(view, counted_label<Fields>{fields, rule, sequences_per_tuple<L>},
                          vocabulary);
  }
}

/// \throws invalid_input unless the groups send in the stream that computes.
template <class E, class CP, class TP>
void require_loss_streams(const E& where, const CP& cp, const TP& tp) {
  require_same_stream(where, cp);
  require_same_stream(where, tp);
}

/// \throws invalid_input for anything else that run_loss cannot take: counts, temperature, columns,
/// logits and gradient.
template <class View, class Fields, class CP, class TP, class T, class G>
void require_loss_logits(const View& view, const Fields& fields, const CP& cp, const TP& tp,
                         const matrix_view<T>& logits, const column_range& columns,
                         const matrix_view<G>& gradient, const loss_options& options) {
  require_counts(options.counts);
  reciprocal<compute_type<T>>(options.temperature.to_apply());
  reciprocal(options.temperature.applied());
  require_column_range(columns);
  if (tp.size() == 1 || options.replicated_columns) require_all_columns(columns);
  require_equal(alone, "context-parallel size of the layout", view.cp.size(), cp.size(),
                "the ranks of the group");
  require_equal(alone, "logits rows", logits.rows, view.shard_tokens(),
                "the tokens of the layout in one shard");
  require_equal(alone, "logits columns", logits.columns, columns.size(),
                "the columns of the vocabulary that they are");
  require_logits(logits);
  require_elements<compute_type<T>>("tokens of the layout * vocabulary", view.total, columns.total);
  if (gradient.data == nullptr && gradient.rows * gradient.columns == 0) return;
  const bool padded = options.zero_padded_columns;
  require_gradient(logits, gradient, padded);
  require_apart_from_batch("gradient", written_bytes(gradient, padded), view, fields);
}

}  // namespace seqpack::detail
