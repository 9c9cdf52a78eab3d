/// \file
/// A sequence as a loss sees it: its fields, its targets, and the output of the model for them.
#pragma once

#include <cstddef>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/team.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/loss/detail/loss_source.hpp"
#include "seqpack/loss/detail/metric_math.hpp"
#include "seqpack/loss/detail/sequence_team.hpp"
#include "seqpack/loss/metric.hpp"
#include "seqpack/tokens/batch_fields.hpp"
#include "seqpack/tokens/detail/targets.hpp"

namespace seqpack {

/// One sequence as a loss sees it. A target is a token that something predicts: t from 1 up to, and
/// without, length(). Those with token_mask 0 are never visited, so that what stands in their rows,
/// NaN too, reaches nothing.
///
/// Everything here may be called on the device; all of it is O(1) but sum, mean, min and max, which
/// visit the targets and add up in double: the result depends on the values alone, not on padding
/// or sharding. On the host they are visited in their order.
///
/// On a device all threads of a team call the loss for the same sequences, and share the
/// targets out among them: each of sum, mean, min, max and tokens is O(length / threads), and gives
/// all threads the same bits. So a loss must not go its own way on different threads, which it
/// cannot unless it asks CUDA which one it is on. In a function that is given to one of them, and
/// in a derivative, every thread has a target of its own; a sum there is right, and O(length). What
/// else a loss does, every thread does: a loop of its own over all targets is not shared out.
template <class View, class Fields, class Metrics, team Team = single_thread>
class batch_sequence {
 public:
  SEQPACK_HD batch_sequence(const detail::loss_source<View, Fields>& from, offset_t index,
                            double* contributions, double weight,
                            const detail::sequence_team<Team>& team = {})
      : from_(&from),
        index_(index),
        slot_(from.view.slot(index)),
        length_(slot_ < 0 ? 0 : from.view.length(slot_)),
        contributions_(contributions),
        tuple_weight_(weight),
        team_(team) {}

  /// Real tokens.
  SEQPACK_HD offset_t length() const { return length_; }
  /// Which sequence of the batch it is.
  SEQPACK_HD offset_t index() const { return index_; }
  /// sample_mask of the sequence.
  SEQPACK_HD double sample_weight() const { return detail::sample_weight(from_->fields, index_); }
  /// token_mask of a target.
  SEQPACK_HD double weight(offset_t t) const {
    return detail::token_weight(from_->fields, from_->rule, index_, t);
  }
  /// A per-token field at token t, one that the loss names in its `fields`, or the ids.
  template <field_tag Tag>
  SEQPACK_HD double value([[maybe_unused]] Tag tag, [[maybe_unused]] offset_t t) const {
    static_assert(!has_sequence_field<Fields, Tag>,
                  "the field has a value for each sequence: value(tag), without a token");
    if constexpr (has_token_field<Fields, Tag>) {
      return detail::token_value<double>(tag, from_->fields, index_, t, detail::not_a_number);
    } else {
      return detail::not_a_number;  // does not compile: the batch lacks what the loss names
    }
  }
  /// A per-sequence field, one that the loss names in its `fields`.
  template <field_tag Tag>
  SEQPACK_HD double value([[maybe_unused]] Tag tag) const {
    static_assert(!has_token_field<Fields, Tag>,
                  "the field has a value for each token: value(tag, t)");
    if constexpr (has_sequence_field<Fields, Tag>) {
      return detail::sequence_value<double>(tag, from_->fields, index_);
    } else {
      return detail::not_a_number;
    }
  }

  /// Sum of the targets' weights.
  SEQPACK_HD double tokens() const {
    return sum([](offset_t) { return 1.0; });
  }
  /// Sum of weight(t) * f(t).
  template <class F>
  SEQPACK_HD double sum(const F& f) const {
    const auto step = [&](double& total, offset_t t) {
      const double w = weight(t);
      if (w != 0) total += w * f(t);
    };
    return team_.visit(length_, 0, step, [](double a, double b) { return a + b; });
  }
  /// sum(f) / max(1, tokens()).
  template <class F>
  SEQPACK_HD double mean(const F& f) const {
    return sum(f) / mean_divisor();
  }
  /// What mean divides by; the derivative of a mean does too.
  SEQPACK_HD double mean_divisor() const {
    const double n = tokens();
    return n > 1 ? n : 1;
  }
  /// The smallest f(t), +infinity without a target.
  template <class F>
  SEQPACK_HD double min(const F& f) const {
    return extreme(metric_kind::min, f);
  }
  /// The largest f(t), -infinity without a target.
  template <class F>
  SEQPACK_HD double max(const F& f) const {
    return extreme(metric_kind::max, f);
  }

  /// Contributes to a metric of the loss: sums and means are weighted with the sample_mask of the
  /// (first) sequence, as the loss is. Once for all threads that call the loss together; in a
  /// function of a target, once for each target that it is called for.
  template <metric Metric>
  SEQPACK_HD void record(Metric, [[maybe_unused]] double value) const {
    if constexpr (has_metric<Metrics, Metric>) {  // or it does not compile, see checked_loss.hpp
      constexpr std::size_t k = detail::metric_math::index_of<Metric>(Metrics{});
      constexpr bool summed = Metric::kind == metric_kind::sum || Metric::kind == metric_kind::mean;
      if (!team_.records()) return;
      contributions_[k] = detail::metric_math::combine(Metric::kind, contributions_[k],
                                                       summed ? tuple_weight_ * value : value);
    }
  }

 protected:
  SEQPACK_HD const detail::loss_source<View, Fields>& from() const { return *from_; }
  SEQPACK_HD offset_t slot() const { return slot_; }

 private:
  template <class F>
  SEQPACK_HD double extreme(metric_kind kind, const F& f) const {
    const auto better = [kind](double a, double b) {
      return detail::metric_math::combine(kind, a, b);
    };
    const auto step = [&](double& best, offset_t t) {
      if (weight(t) != 0) best = better(best, f(t));
    };
    return team_.visit(length_, detail::metric_math::neutral(kind), step, better);
  }

  const detail::loss_source<View, Fields>* from_;
  offset_t index_;
  offset_t slot_;
  offset_t length_;
  double* contributions_;
  double tuple_weight_;
  detail::sequence_team<Team> team_;
};

/// A sequence and the log-probabilities of its tokens: by the map, those of all shards, or its own
/// alone, in the order of its tokens.
template <class View, class Fields, class Metrics, class C, team Team = single_thread>
class log_prob_sequence : public batch_sequence<View, Fields, Metrics, Team> {
 public:
  SEQPACK_HD log_prob_sequence(const detail::loss_source<View, Fields>& from, offset_t index,
                               double* contributions, double weight, const C* log_probs,
                               const detail::sequence_team<Team>& team = {}, const C* own = nullptr)
      : batch_sequence<View, Fields, Metrics, Team>(from, index, contributions, weight, team),
        log_probs_(log_probs),
        own_(own) {}

  /// The log-probability of token t, 1 <= t < length, given those before it.
  SEQPACK_HD double logp(offset_t t) const {
    if (own_ != nullptr) return static_cast<double>(own_[t - 1]);
    return static_cast<double>(
        log_probs_[this->from().view.row_of(all_shards, this->slot(), t - 1)]);
  }

 private:
  const C* log_probs_;
  const C* own_;
};

/// A sequence and its rows of the model's output, of all columns, in the order of its tokens.
template <class View, class Fields, class Metrics, class C>
class logits_sequence : public batch_sequence<View, Fields, Metrics> {
 public:
  SEQPACK_HD logits_sequence(const detail::loss_source<View, Fields>& from, offset_t index,
                             double* contributions, double weight, const C* logits,
                             offset_t columns)
      : batch_sequence<View, Fields, Metrics>(from, index, contributions, weight),
        logits_(logits),
        columns_(columns) {}

  /// The row that predicts token t, 1 <= t <= length: the output at token t - 1. With t = length it
  /// is the output at the last token, for a loss that declares `last_row`. Rows of targets that do
  /// not count are 0.
  SEQPACK_HD const C* logits(offset_t t) const { return logits_ + (t - 1) * columns_; }
  /// V, or D of a value head.
  SEQPACK_HD offset_t columns() const { return columns_; }

 private:
  const C* logits_;
  offset_t columns_;
};

}  // namespace seqpack
