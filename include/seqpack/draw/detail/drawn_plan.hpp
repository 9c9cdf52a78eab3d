/// \file
/// What the pictures of a plan show: rows, and what is in them as the layouts have it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/draw/detail/drawing.hpp"
#include "seqpack/draw/draw_options.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/plan/plan_summary.hpp"
#include "seqpack/plan/row_plan.hpp"
#include "seqpack/plan/step_plan.hpp"
#include "seqpack/plan/step_summary.hpp"
#include "seqpack/policy/padding.hpp"

namespace seqpack::detail::drawing {

/// Tokens of a row that lie side by side and are of one kind.
struct drawn_run {
  offset_t first;
  offset_t count;
  offset_t entry;  ///< of the plan, a sequence or a piece; -1: the ghost
  bool real;
};

struct drawn_row {
  std::vector<drawn_run> runs;
  offset_t tokens = 0;  ///< T
  bool empty = true;    ///< no sequences: no layout
};

struct drawn_plan {
  std::string summary;
  offset_t capacity = 0;
  offset_t ranks = 0;  ///< 0: rows, and no steps
  offset_t all_rows = 0;
  offset_t entries = 0;         ///< sequences or pieces of the plan
  std::vector<drawn_row> rows;  ///< those that are shown
  const char* entry = "sequence";
  bool padding = false;
  bool ghost = false;

  offset_t hidden_rows() const { return all_rows - static_cast<offset_t>(rows.size()); }
  std::string label(std::size_t k) const {
    const auto row = static_cast<offset_t>(k);
    return ranks == 0 ? join("row ", row) : join("step ", row / ranks, ", rank ", row % ranks);
  }
  /// Tokens that the picture is as wide as. A capacity that is far above all rows is not shown.
  offset_t width() const {
    offset_t longest = 1;
    for (const drawn_row& row : rows) longest = max_of(longest, row.tokens);
    return capacity / 4 > longest ? longest : max_of(capacity, longest);
  }
  bool shows_capacity() const { return width() >= capacity; }
};

/// "87.5 %", with a point in any locale.
inline std::string percent(double part) {
  const auto permille = static_cast<offset_t>(std::llround(part * 1000));
  return join(permille / 10, ".", permille % 10, " %");
}

/// "3 rows for 16 tokens: 7 sequences, 38 real tokens, 87.5 % full"
inline std::string fill_text(const plan_summary& s, offset_t capacity, const char* entry,
                             const std::string& rows) {
  return join(rows, " for ", count_of(capacity, "token"), ": ", count_of(s.sequences, entry), ", ",
              s.real_tokens, " real tokens, ", percent(s.fill), " full");
}

template <padding_policy P>
drawn_row row_as_laid_out(const std::vector<offset_t>& lengths, std::span<const offset_t> row,
                          const P& padding) {
  drawn_row drawn;
  if (row.empty()) return drawn;
  std::vector<offset_t> of_row;
  for (const offset_t entry : row) of_row.push_back(lengths[static_cast<std::size_t>(entry)]);
  const auto layout = make_layout<std::int64_t>(of_row, padding);
  const auto view = layout.view();
  drawn.empty = false;
  drawn.tokens = view.total;
  for_each_piece(view, full_row, [&](offset_t first, const token_run& run) {
    const bool ghost = run.first.slot >= view.sequences;
    drawn.runs.push_back({first, run.count,
                          ghost ? -1 : row[static_cast<std::size_t>(run.first.slot)],
                          run.first.real()});
  });
  return drawn;
}

/// \param shown rows that are drawn, at most
template <integer_range Lengths, padding_policy P>
drawn_plan drawn_rows(const row_plan& plan, const Lengths& lengths, offset_t capacity,
                      const P& padding, offset_t shown) {
  drawn_plan drawn;
  drawn.capacity = capacity == dynamic ? padding.fixed_total() : capacity;
  drawn.all_rows = plan.rows();
  drawn.entries = static_cast<offset_t>(plan.sequences().size());
  std::vector<offset_t> of_entries;
  if (plan.pieces().empty()) {
    for (const auto length : lengths) of_entries.push_back(static_cast<offset_t>(length));
  } else {
    of_entries = plan.piece_lengths();
    drawn.entry = "piece";
  }
  for (offset_t k = 0; k < min_of(plan.rows(), shown); ++k) {
    drawn.rows.push_back(row_as_laid_out(of_entries, plan.row(k), padding));
    for (const drawn_run& run : drawn.rows.back().runs) {
      drawn.padding = drawn.padding || (run.entry >= 0 && !run.real);
      drawn.ghost = drawn.ghost || run.entry < 0;
    }
  }
  return drawn;
}

template <integer_range Lengths, padding_policy P>
drawn_plan drawn(const row_plan& plan, const Lengths& lengths, offset_t capacity, const P& padding,
                 const draw_options& options) {
  const plan_summary summary = summary_of(plan, lengths, capacity, padding);
  drawn_plan result = drawn_rows(plan, lengths, capacity, padding, options.rows);
  result.summary =
      join(fill_text(summary, result.capacity, result.entry, count_of(summary.rows, "row")),
           "; at least ", count_of(summary.lower_bound, "row"));
  return result;
}

template <integer_range Lengths, padding_policy P>
drawn_plan drawn(const step_plan& plan, const Lengths& lengths, offset_t capacity, const P& padding,
                 const draw_options& options) {
  const step_summary summary = summary_of(plan, lengths, capacity, padding);
  drawn_plan result = drawn_rows(plan.micro_batches(), lengths, capacity, padding,
                                 options.rows - options.rows % plan.ranks());
  result.ranks = plan.ranks();
  result.summary = join(
      fill_text(summary.micro_batches, result.capacity, result.entry,
                join(count_of(summary.steps, "step"), " of ", count_of(summary.ranks, "rank"))),
      ", ", summary.empty, " empty; cost ", summary.cost, ", ", summary.mean_cost,
      " if no rank waited");
  return result;
}

}  // namespace seqpack::detail::drawing
