/// \file
/// The passes over rows of logits: one read that finds what a rank's columns tell about a row, the
/// merge of what all ranks tell, and the gradient.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"
#include "seqpack/exec/team.hpp"
#include "seqpack/logprob/detail/softmax.hpp"
#include "seqpack/logprob/detail/softmax_host.hpp"
#include "seqpack/logprob/detail/softmax_team.hpp"
#include "seqpack/logprob/log_prob_state.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/tokens/targets.hpp"

namespace seqpack::detail {

template <class C>
inline constexpr C quiet_nan = std::numeric_limits<C>::quiet_NaN();

/// One row of one rank, as it travels: max, sum, the label's logit and, for the entropy, the
/// weighted sum.
template <bool Entropy>
inline constexpr offset_t row_part_size = Entropy ? 4 : 3;

/// Adds up what all ranks tell about a row, and writes its results.
template <bool Entropy, class C>
class row_merge {
 public:
  SEQPACK_HD void add(const softmax::part<C>& found, C label_logit) {
    all_ = softmax::merge(all_, found);
    label_logit_ += label_logit;
  }
  SEQPACK_HD void write(const label_log_prob_rows<C>& out, offset_t row, bool ignored) const {
    const C log_sum = ignored ? C{0} : std::log(all_.sum);
    // Near the largest logit the difference is exact; their distance to log(sum) would not be.
    *out.log_probs.at(row) = ignored ? C{0} : (label_logit_ - all_.max) - log_sum;
    *out.max.at(row) = ignored ? C{0} : all_.max;
    *out.sum.at(row) = ignored ? C{1} : all_.sum;
    if constexpr (Entropy) {
      *out.entropy.at(row) = ignored ? C{0} : log_sum - all_.weighted / all_.sum;
    }
  }

 private:
  softmax::part<C> all_{-softmax::infinity<C>, 0, 0};
  C label_logit_ = 0;
};

/// The first pass: everything that one rank's columns tell about a row. Where they are all columns
/// it is the last pass too.
template <bool Entropy, class T, class C>
struct log_prob_scan {
  matrix_view<const T> logits;
  column_range columns;
  const std::int64_t* labels;
  C* parts;  ///< null where there is nothing to merge with
  label_log_prob_rows<C> out;
  C scale;

  /// Enough without spilling, so few that enough threads run at once; exp of double needs more.
  static constexpr int registers = sizeof(C) == 8 ? 128 : Entropy ? 80 : 64;

  offset_t rows() const noexcept { return logits.rows; }
  offset_t row_bytes() const noexcept { return logits.columns * offset_t{sizeof(T)}; }
  offset_t row_work() const noexcept { return row_bytes(); }

  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) {
      const bool ignored = labels[first] == ignored_label;
      store(first,
            ignored ? softmax::part<C>{}
                    : softmax::scan_row<Entropy>(logits.at(first), logits.columns, scale),
            label_logit(first));
    }
  }
  template <team Team>
  SEQPACK_HD void operator()(const Team& team, offset_t row) const {
    // Loaded before the row, not behind it, where nothing would hide how long that takes.
    const C at_label = team.rank() == 0 ? label_logit(row) : C{0};
    softmax::part<C> found{};
    if (labels[row] != ignored_label) {
      found = softmax::scan_row<Entropy>(team, logits.at(row), logits.columns, scale);
    }
    if (team.rank() == 0) store(row, found, at_label);
  }

 private:
  SEQPACK_HD void store(offset_t row, const softmax::part<C>& found, C at_label) const {
    if (parts == nullptr) {
      row_merge<Entropy, C> merge;
      merge.add(found, at_label);
      merge.write(out, row, labels[row] == ignored_label);
      return;
    }
    C* const to = parts + row * row_part_size<Entropy>;
    to[0] = found.max;
    to[1] = found.sum;
    to[2] = at_label;
    if constexpr (Entropy) to[3] = found.weighted;
  }
  /// 0 on the ranks that do not hold it; they are added up.
  SEQPACK_HD C label_logit(offset_t row) const {
    const offset_t label = labels[row];
    if (columns.contains(label)) {
      return static_cast<C>(logits.at(row)[label - columns.first]) * scale;
    }
    // On the host such a label has been refused.
    const bool known = label == ignored_label || (label >= 0 && label < columns.total);
    return known ? C{0} : quiet_nan<C>;
  }
};

/// The second pass: the parts of all ranks, [TP, rows, row_part_size].
template <bool Entropy, class C>
struct log_prob_merge {
  const C* parts;
  offset_t ranks;
  const std::int64_t* labels;
  label_log_prob_rows<C> out;

  offset_t rows() const noexcept { return out.log_probs.rows; }
  offset_t row_bytes() const noexcept { return 4 * offset_t{sizeof(C)}; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t row) const {
    row_merge<Entropy, C> merge;
    for (offset_t r = 0; r < ranks; ++r) {
      const C* const part = parts + (r * out.log_probs.rows + row) * row_part_size<Entropy>;
      merge.add({part[0], part[1], Entropy ? part[row_part_size<Entropy> - 1] : C{0}}, part[2]);
    }
    merge.write(out, row, labels[row] == ignored_label);
  }
};

/// d loss / d logit = derivative * (1 at the label - probability) / temperature.
template <class T, class G, class C>
struct log_prob_backward {
  matrix_view<const T> logits;
  column_range columns;
  const std::int64_t* labels;
  label_log_prob_rows<const C> forward;
  const C* derivatives;
  matrix_view<G> gradient;
  offset_t width;  ///< what is written of a row: its columns, and then 0
  C scale;

  static constexpr int registers = sizeof(C) == 8 ? 128 : 64;

  offset_t rows() const noexcept { return logits.rows; }
  offset_t row_bytes() const noexcept { return width * offset_t{sizeof(G)}; }
  offset_t row_work() const noexcept { return logits.columns * max_of(sizeof(T), sizeof(G)); }

  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) {
      G* const out = gradient.at(first);
      // Rows without a share in the loss are not read: anything may stand there.
      if (skipped(labels[first], derivatives[first])) {
        std::fill_n(out, width, static_cast<G>(0.0F));
        continue;
      }
      const C factor = derivatives[first] * scale;
      const C share = factor / *forward.sum.at(first);
      const C max = *forward.max.at(first);
      const offset_t label = labels[first] - columns.first;
      const bool here = columns.contains(labels[first]);
      const C at_label =
          here ? factor + softmax::gradient_of(logits.at(first)[label], scale, max, share) : C{0};
      softmax::gradient_row(logits.at(first), out, logits.columns, scale, max, share);
      if (here) out[label] = static_cast<G>(at_label);
      std::fill_n(out + logits.columns, width - logits.columns, static_cast<G>(0.0F));
    }
  }
  // Each element is read before it is written, also where the gradient overwrites the logits.
  template <team Team>
  SEQPACK_HD void operator()(const Team& team, offset_t row) const {
    const offset_t label = labels[row];
    const C derivative = derivatives[row];
    G* const out = gradient.at(row);
    if (skipped(label, derivative)) {  // anything may stand there
      // A call of its own: of one with a beginning that varies, nvcc 13 made stores of single elements.
      return team.fill_row(out, width, static_cast<G>(0.0F));
    }
    team.rewrite_row(logits.at(row), out, logits.columns, function_of(row, label, derivative));
    if (logits.columns < width) {
      team.fill_row(out + logits.columns, width - logits.columns, static_cast<G>(0.0F));
    }
  }

 private:
  SEQPACK_HD static bool skipped(offset_t label, C derivative) {
    return label == ignored_label || derivative == C{0};
  }
  /// The gradient of the logit x of column first + k.
  SEQPACK_HD auto function_of(offset_t row, offset_t label, C derivative) const {
    const C factor = derivative * scale;
    const C share = factor / *forward.sum.at(row);
    return [factor, share, max = *forward.max.at(row), at = label - columns.first, scale = scale](
               offset_t first, int k, const T& x) {
      const C others = softmax::gradient_of(x, scale, max, share);
      return static_cast<G>(at - first == k ? factor + others : others);
    };
  }
};

/// Both passes and, between them, one all-gather where tp has several ranks.
template <bool Entropy, class E, class TP, class T, class C>
void log_prob_forward(const E& where, TP& tp, const matrix_view<const T>& logits,
                      const column_range& columns, const std::int64_t* labels,
                      const label_log_prob_rows<C>& out, C scale) {
  const offset_t size = tp.size() == 1 ? 0 : logits.rows * row_part_size<Entropy>;
  const executor_array<C> mine(where, size);
  const executor_array<C> all(where, size * tp.size());
  execute(where, log_prob_scan<Entropy, T, C>{logits, columns, labels, mine.data(), out, scale});
  if (tp.size() == 1) return;
  keeping(tp, {mine.owner(), all.owner()}, [&] { tp.all_gather(mine.data(), all.data(), size); });
  execute(where, log_prob_merge<Entropy, C>{all.data(), tp.size(), labels, out});
}

}  // namespace seqpack::detail
