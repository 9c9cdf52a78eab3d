/// \file
/// count_valid: the global counts of a batch, from its masks.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/place_on.hpp"
#include "seqpack/loss/detail/log_prob_loss.hpp"
#include "seqpack/loss/detail/loss_checks.hpp"
#include "seqpack/loss/detail/tuple_rows.hpp"
#include "seqpack/loss/detail/valid_tokens.hpp"
#include "seqpack/loss/global_counts.hpp"
#include "seqpack/tokens/batch_fields.hpp"
#include "seqpack/tokens/detail/targets.hpp"
#include "seqpack/tokens/targets.hpp"

namespace seqpack {

/// The valid targets and sequences of one batch: the sums, over its sequences, those of its order
/// where it has one, of
///
///     tokens:    sample_mask[b] * (sum over 1 <= s < length of token_mask[b][s])
///     sequences: sample_mask[b]
///
/// \param batch its masks live where the executor works; without one, everything counts
/// \param lengths finds the lengths in the batch
/// \param documents those of the not_packed that forward_step is given, as they leave out targets
/// \throws invalid_input for lengths, masks or an order that do not fit the batch.
///
/// Waits for the result on a stream. O(B * S); two launches, and that of place_on.
template <executor E, batch B, lengths_projection<B> Lengths>
global_counts count_valid(const E& where, const B& batch, const Lengths& lengths,
                          const document_options& documents = {}) {
  const auto layout =
      make_layout<std::int64_t>(std::invoke(lengths, batch), no_padding{}, no_context_parallel{},
                                {.order = detail::order_of(batch)});
  const auto placed = place_on(where, layout);
  const auto fields = batch.fields();
  using loss = detail::valid_tokens;
  detail::require_loss_batch<E, loss>(layout.view(), fields);

  const auto view = placed.view();
  constexpr offset_t size = detail::tuple_row_size<loss>;
  const executor_array<double> results(where, view.batch * size);
  const executor_array<double> totals(where, size);
  using view_type = std::remove_const_t<decltype(view)>;
  using fields_type = std::remove_const_t<decltype(fields)>;
  execute(
      where,
      detail::log_prob_loss_operation<view_type, fields_type, loss, float>{
          {view, fields, detail::rule_of(documents)}, {}, nullptr, nullptr, {}, 0, results.data()});
  execute(where, detail::loss_total_operation<loss>{results.data(), view.batch, totals.data()});
  double values[size];
  read_back(where, values, totals.data(), size);
  return {.tokens = values[0], .sequences = values[1]};
}

/// The counts of a global batch, on every rank: the sum over the **data-parallel** ranks of what
/// each has counted in all of its micro-batches. Context- and tensor-parallel ranks have the same
/// sequences and are not counted again: they are not in the group.
///
///     global_counts counts;
///     for (const auto& batch : batches) counts += count_valid(host, batch, &text::lengths);
///     counts = sum_counts(dp_group, counts);
///
/// Of a plan over one batch, each sequence of this rank once, in one pass:
///
///     counts = sum_counts(dp_group, count_valid(host, parts.all(), &text::lengths));   // micro_batches
///
/// **Collective**: one exchange of a record of fixed size; the host waits for it. The same bits on
/// all ranks.
/// \throws collective_mismatch where ranks call something else, or a count is negative or not finite.
template <communicator DP>
global_counts sum_counts(DP& group, const global_counts& mine) {
  global_counts sum;
  for (const auto& counts : detail::exchange_records(group, "sum_counts", mine)) {
    sum += counts;
  }
  return sum;
}

namespace detail::records {

template <>
struct traits<global_counts> {
  static void write(writer& to, const global_counts& counts) {
    to.put(counts.tokens);
    to.put(counts.sequences);
  }
  static global_counts read(reader& from) {
    global_counts counts;
    counts.tokens = from.get<double>();
    counts.sequences = from.get<double>();
    require_counts(counts);
    return counts;
  }
};

}  // namespace detail::records

}  // namespace seqpack
