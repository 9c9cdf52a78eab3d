/// \file
/// The results of a forward pass over rows of logits, and their memory.
#pragma once

#include <cstdint>
#include <memory>

#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"

namespace seqpack {

/// The results of each row of logits: as many elements each as there are rows, in float, or double
/// for double logits.
template <class C>
struct label_log_prob_rows {
  row_view<C> log_probs;  ///< of the label; 0 for an ignored one
  row_view<C> max;        ///< of y = logit / temperature, for the backward pass
  row_view<C> sum;        ///< of exp(y - max), for the backward pass
  row_view<C> entropy =
      {};  ///< of the row's distribution, in nats, 0 for an ignored label; optional
};

/// The results of the rows of one shard with their memory, O(T / CP): the labels, the
/// log-probabilities and what the backward pass needs.
template <class C>
class log_prob_state {
 public:
  log_prob_state() = default;
  /// Allocates memory for `rows` rows, with the entropy where asked.
  template <executor E>
  log_prob_state(const E& where, offset_t rows, bool with_entropy = false)
      : labels_(where, rows), numbers_(where, (with_entropy ? 4 : 3) * rows) {
    const auto part = [&](offset_t k) { return row_view<C>(numbers_.data() + k * rows, rows); };
    if (rows == 0) return;
    rows_ = {part(0), part(1), part(2)};
    if (with_entropy) rows_.entropy = part(3);
  }

  /// The label of each row.
  row_view<std::int64_t> labels() const { return labels_.rows(); }
  /// The results of each row.
  const label_log_prob_rows<C>& rows() const noexcept { return rows_; }
  /// What keeps the results alive.
  const std::shared_ptr<void>& owner() const noexcept { return numbers_.owner(); }

 private:
  executor_array<std::int64_t> labels_;
  executor_array<C> numbers_;
  label_log_prob_rows<C> rows_;
};

}  // namespace seqpack
