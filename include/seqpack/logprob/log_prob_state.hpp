/// \file
/// What a forward pass over the logits of one shard leaves, with its memory.
#pragma once

#include <cstdint>
#include <memory>

#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"
#include "seqpack/logprob/label_log_probs.hpp"

namespace seqpack {

/// What a forward pass over the rows of one shard leaves: the labels, the log-probabilities and
/// what the backward pass needs. O(T / CP) memory with an owner.
template <class C>
class log_prob_state {
 public:
  log_prob_state() = default;
  /// Room for `rows` rows; the entropy where asked.
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
  /// For callers that must keep the results.
  const std::shared_ptr<void>& owner() const noexcept { return numbers_.owner(); }

 private:
  workspace<std::int64_t> labels_;
  workspace<C> numbers_;
  label_log_prob_rows<C> rows_;
};

}  // namespace seqpack
