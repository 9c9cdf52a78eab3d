// Which sequences of a step share a packed row, and which rank has which rows.
#pragma once

#include <algorithm>
#include <numeric>
#include <seqpack/plan/plan.hpp>
#include <seqpack/seqpack.hpp>
#include <span>
#include <utility>
#include <vector>

#include "batch.hpp"
#include "options.hpp"

namespace train_text {

/// Rows, one after the other, dealt to the ranks. The last step may have rows without sequences.
inline seqpack::step_plan dealt(const seqpack::row_plan& rows, offset_t ranks) {
  std::vector<offset_t> bounds(rows.bounds().begin(), rows.bounds().end());
  while ((static_cast<offset_t>(bounds.size()) - 1) % ranks != 0) bounds.push_back(bounds.back());
  return {
      {std::vector<offset_t>(rows.sequences().begin(), rows.sequences().end()), std::move(bounds)},
      ranks};
}

/// Rows of so many sequences each.
inline seqpack::row_plan rows_of(offset_t sequences, offset_t each) {
  std::vector<offset_t> all(to_size(sequences));
  std::iota(all.begin(), all.end(), offset_t{0});
  std::vector<offset_t> bounds{0};
  while (bounds.back() < sequences) bounds.push_back(std::min(bounds.back() + each, sequences));
  return {std::move(all), std::move(bounds)};
}

/// Plans steps by the policies that pack them.
template <class Padding, class ContextParallel>
struct planner {
  offset_t row;    ///< tokens
  offset_t batch;  ///< sequences of a row that is not planned
  Padding padding;
  ContextParallel cp;
  offset_t ranks;  ///< data-parallel

  seqpack::step_plan operator()(planning how, const std::vector<offset_t>& lengths) const {
    switch (how) {
      case planning::in_order:
        return dealt(seqpack::plan_rows(lengths, row, padding, cp,
                                        {.method = seqpack::plan_method::in_order}),
                     ranks);
      case planning::none:
        return dealt(rows_of(static_cast<offset_t>(lengths.size()), batch), ranks);
      case planning::balanced: break;
    }
    return seqpack::plan_steps(lengths, row, ranks, padding, cp);
  }
};

}  // namespace train_text
