/// \file
/// Checks of next-token log-probabilities, of one rank and of all.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_hash.hpp"
#include "seqpack/logprob/detail/log_prob_checks.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/parallel/together.hpp"

namespace seqpack::detail {

/// A batch that log-probabilities are unpacked to.
template <executor E, class View, class C>
void require_log_prob_table(const char* name, const View& predicting, const batch_view<C>& to) {
  require_table<E>(alone, name, predicting, to, false);
  require_equal(alone, (std::string(name) + " payload").c_str(), to.payload(), 1,
                "one number per token");
  require_distinct_positions(alone, to);
}

/// What all ranks must agree on.
template <executor E, class View>
std::uint64_t log_prob_mark(const View& view, bool with_entropy, double temperature,
                            offset_t vocabulary) {
  std::uint64_t hash = 0;
  if constexpr (host_executor<E>) hash = view.cu == nullptr ? 0 : layout_hash(view);
  return mark_of(hash, view.batch, view.total, with_entropy, temperature, vocabulary);
}

/// What the ranks of tp find wrong together, told to those of cp.
template <communicator TP, communicator CP>
void require_tiling_everywhere(TP& tp, CP& cp, const column_range& columns) {
  std::exception_ptr refused;
  try {
    require_tiling(tp, columns);
  } catch (const invalid_input&) {
    refused = std::current_exception();
  }
  together(tp, cp, "columns of log-probabilities", [&] {
    if (refused) std::rethrow_exception(refused);
  });
}

}  // namespace seqpack::detail
