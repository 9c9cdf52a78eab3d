/// \file
/// What a loss is: a function of one sequence, or of a few that belong together, that gives a value
/// and its derivative.
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/team.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/loss/metrics.hpp"
#include "seqpack/tokens/batch_fields.hpp"
#include "seqpack/tokens/detail/targets.hpp"

namespace seqpack {

/// What a loss looks at.
enum class loss_input {
  next_token_logprobs,  ///< the log-probability of each token, given those before it
  logits                ///< whole rows of the model's output, which may be values too
};

/// What the library divides a loss by: a loss itself divides by no count.
enum class loss_level {
  token,    ///< N_tok, the global number of valid targets
  sequence  ///< N_seq, the global number of valid sequences, or of groups of them
};

/// A value and its derivatives, one function per sequence of the loss. They are called only where a
/// gradient is asked for, once for every target t (1 <= t < length, token_mask[t] not 0), and give
/// the derivative with respect to logp(t), divided by the weight of the token: the library
/// multiplies by what it weighed the token with in sum() and mean().
///
/// For a loss on logits a function takes (t, double* out) and writes the derivative with respect to
/// the row logits(t), with the weight of the token in it: columns() numbers, 0 before. It is called
/// for t = length too where the loss declares `last_row`.
template <class... Derivatives>
struct differentiable_t;

/// No sequence, no derivative.
template <>
struct differentiable_t<> {
  static constexpr std::size_t sequences = 0;
};
/// The derivative of one sequence, and the rest of them.
template <class D, class... Rest>
struct differentiable_t<D, Rest...> {
  static constexpr std::size_t sequences = 1 + sizeof...(Rest);
  double value;
  D derivative;
  differentiable_t<Rest...> rest;
};

/// Makes the result of a loss: `return differentiable(value, derivative_1, ...)`. The derivatives
/// are called when the loss has returned: they capture by value.
template <class... Derivatives>
SEQPACK_HD constexpr auto differentiable(double value, Derivatives... derivatives);

namespace detail::losses {

SEQPACK_HD constexpr differentiable_t<> chain(double) {
  return {};
}
template <class D, class... Rest>
SEQPACK_HD constexpr differentiable_t<D, Rest...> chain(double value, D first, Rest... rest) {
  return {value, first, chain(value, rest...)};
}

// A constant, because a device cannot call std::numeric_limits.
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Where the sequences of a loss come from.
template <class View, class Fields>
struct source {
  View view;
  Fields fields;
  detail::document_rule rule;
  offset_t first_row;  ///< the sequence of the batch in slot 0 of the layout
};

/// The threads that evaluate a loss together, as every copy of a sequence knows them. All of them
/// call the loss; where it visits targets, each visits some, and all get what comes of it. Inside
/// of a function of a target every thread has another target: what is visited there, each visits
/// alone.
template <team Group>
class sequence_team {
 public:
  /// \param inside of this thread, whether it is inside of a function of a target
  SEQPACK_HD sequence_team(const Group& group, bool& inside) : group_(&group), inside_(&inside) {}

  /// Whether it is this thread that records.
  SEQPACK_HD bool records() const { return *inside_ || group_->rank() == 0; }
  /// step(so far, t) for all targets t, from `neutral`. Thread k visits 1 + k, 1 + k + size, ...:
  /// what comes of it depends on the values and on the number of threads.
  template <class Step, class Combine>
  SEQPACK_HD double visit(offset_t length, double neutral, const Step& step,
                          const Combine& combine) const {
    const bool inside = *inside_;
    const offset_t first = inside ? 1 : 1 + group_->rank();
    const offset_t stride = inside ? 1 : group_->size();
    *inside_ = true;
    double result = neutral;
    for (offset_t t = first; t < length; t += stride) step(result, t);
    *inside_ = inside;
    return inside ? result : group_->reduce(result, combine);
  }

 private:
  const Group* group_;
  bool* inside_;
};

/// One thread visits the targets in their order.
template <>
class sequence_team<single_thread> {
 public:
  sequence_team() = default;
  SEQPACK_HD sequence_team(const single_thread&, bool&) {}

  SEQPACK_HD bool records() const { return true; }
  template <class Step, class Combine>
  SEQPACK_HD double visit(offset_t length, double neutral, const Step& step, const Combine&) const {
    double result = neutral;
    for (offset_t t = 1; t < length; ++t) step(result, t);
    return result;
  }
};

}  // namespace detail::losses

template <class... Derivatives>
SEQPACK_HD constexpr auto differentiable(double value, Derivatives... derivatives) {
  return detail::losses::chain(value, derivatives...);
}

/// One sequence as a loss sees it. A target is a token that something predicts: t from 1 up to, and
/// without, length(). Those with token_mask 0 are never visited, so that what stands in their rows,
/// NaN too, reaches nothing.
///
/// Everything here may be called on the device; all of it is O(1) but sum, mean, min and max, which
/// visit the targets and add up in double: the result depends on the values alone, not on padding
/// or sharding. On the host they are visited in their order.
///
/// On a device all threads of a block call the loss for the same sequences, and share the
/// targets out among them: each of sum, mean, min, max and tokens is O(length / threads), and gives
/// all threads the same bits. So a loss must not go its own way on different threads, which it
/// cannot unless it asks CUDA which one it is on. In a function that is given to one of them, and
/// in a derivative, every thread has a target of its own; a sum there is right, and O(length). What
/// else a loss does, every thread does: a loop of its own over all targets is not shared out.
template <class View, class Fields, class Metrics, class Group = single_thread>
class batch_sequence {
 public:
  SEQPACK_HD batch_sequence(const detail::losses::source<View, Fields>& from, offset_t row,
                            double* contributions, double weight,
                            const detail::losses::sequence_team<Group>& team = {})
      : from_(&from),
        row_(from.first_row + row),
        slot_(from.view.slot(row)),
        length_(slot_ < 0 ? 0 : from.view.length(slot_)),
        contributions_(contributions),
        group_weight_(weight),
        team_(team) {}

  /// Real tokens.
  SEQPACK_HD offset_t length() const { return length_; }
  /// The sequence.
  SEQPACK_HD offset_t row() const { return row_; }
  /// sample_mask of the sequence.
  SEQPACK_HD double sample_weight() const { return detail::sample_weight(from_->fields, row_); }
  /// token_mask of a target.
  SEQPACK_HD double weight(offset_t t) const {
    return detail::token_weight(from_->fields, from_->rule, row_, t);
  }
  /// A per-token field at token t, one that the loss names in its `fields`, or the ids.
  template <field_tag Tag>
  SEQPACK_HD double value([[maybe_unused]] Tag tag, [[maybe_unused]] offset_t t) const {
    static_assert(!has_sequence_field<Fields, Tag>,
                  "the field has a value for each sequence: value(tag), without a token");
    if constexpr (has_token_field<Fields, Tag>) {
      return detail::token_value<double>(tag, from_->fields, row_, t, detail::losses::not_a_number);
    } else {
      return detail::losses::not_a_number;  // does not compile: the batch lacks what the loss names
    }
  }
  /// A per-sequence field, one that the loss names in its `fields`.
  template <field_tag Tag>
  SEQPACK_HD double value([[maybe_unused]] Tag tag) const {
    static_assert(!has_token_field<Fields, Tag>,
                  "the field has a value for each token: value(tag, t)");
    if constexpr (has_sequence_field<Fields, Tag>) {
      return detail::sequence_value<double>(tag, from_->fields, row_);
    } else {
      return detail::losses::not_a_number;
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
                                                       summed ? group_weight_ * value : value);
    }
  }

 protected:
  SEQPACK_HD const detail::losses::source<View, Fields>& from() const { return *from_; }
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

  const detail::losses::source<View, Fields>* from_;
  offset_t row_;
  offset_t slot_;
  offset_t length_;
  double* contributions_;
  double group_weight_;
  detail::losses::sequence_team<Group> team_;
};

/// A sequence and the log-probabilities of its tokens.
template <class View, class Fields, class Metrics, class C, class Group = single_thread>
class log_prob_sequence : public batch_sequence<View, Fields, Metrics, Group> {
 public:
  SEQPACK_HD log_prob_sequence(const detail::losses::source<View, Fields>& from, offset_t row,
                               double* contributions, double weight, const C* log_probs,
                               const detail::losses::sequence_team<Group>& team = {})
      : batch_sequence<View, Fields, Metrics, Group>(from, row, contributions, weight, team),
        log_probs_(log_probs) {}

  /// The log-probability of token t, 1 <= t < length, given those before it.
  SEQPACK_HD double logp(offset_t t) const {
    return static_cast<double>(
        log_probs_[this->from().view.row_of(all_shards, this->slot(), t - 1)]);
  }

 private:
  const C* log_probs_;
};

/// A sequence and its rows of the model's output, of all columns.
template <class View, class Fields, class Metrics, class C>
class logits_sequence : public batch_sequence<View, Fields, Metrics> {
 public:
  SEQPACK_HD logits_sequence(const detail::losses::source<View, Fields>& from, offset_t row,
                             double* contributions, double weight, const C* logits,
                             offset_t columns)
      : batch_sequence<View, Fields, Metrics>(from, row, contributions, weight),
        logits_(logits),
        columns_(columns) {}

  /// The row that predicts token t, 1 <= t <= length: the output at token t - 1. With t = length it
  /// is the output at the last token, for a loss that declares `last_row`. Rows of targets that do
  /// not count are 0.
  SEQPACK_HD const C* logits(offset_t t) const {
    return logits_ + this->from().view.row_of(full_row, this->slot(), t - 1) * columns_;
  }
  /// V, or D of a value head.
  SEQPACK_HD offset_t columns() const { return columns_; }

 private:
  const C* logits_;
  offset_t columns_;
};

namespace detail::losses {

template <class Tag, class Tags>
inline constexpr bool is_among = false;
template <class Tag, class... Tags>
inline constexpr bool is_among<Tag, field_tags<Tags...>> = (std::is_same_v<Tag, Tags> || ...);

/// A sequence of a batch that has the fields that a loss asks for, for the check of a concept.
template <class L>
struct sequence_archetype {
  SEQPACK_HD offset_t length() const { return 0; }
  SEQPACK_HD offset_t row() const { return 0; }
  SEQPACK_HD double sample_weight() const { return 0; }
  SEQPACK_HD double weight(offset_t) const { return 0; }
  template <field_tag Tag>
    requires std::is_same_v<Tag, input_ids_t> || is_among<Tag, asked_fields<L>>
  SEQPACK_HD double value(Tag, offset_t) const {
    return 0;
  }
  template <field_tag Tag>
    requires is_among<Tag, asked_fields<L>>
  SEQPACK_HD double value(Tag) const {
    return 0;
  }
  SEQPACK_HD double tokens() const { return 0; }
  SEQPACK_HD double mean_divisor() const { return 1; }
  template <class F>
  SEQPACK_HD double sum(const F& f) const {
    return f(offset_t{1});
  }
  template <class F>
  SEQPACK_HD double mean(const F& f) const {
    return sum(f);
  }
  template <class F>
  SEQPACK_HD double min(const F& f) const {
    return sum(f);
  }
  template <class F>
  SEQPACK_HD double max(const F& f) const {
    return sum(f);
  }
  template <metric Metric>
    requires has_metric<typename L::metrics, Metric>
  SEQPACK_HD void record(Metric, double) const {}
};
template <class L>
struct log_prob_archetype : sequence_archetype<L> {
  SEQPACK_HD double logp(offset_t) const { return 0; }
};
template <class L>
struct logits_archetype : sequence_archetype<L> {
  SEQPACK_HD const float* logits(offset_t) const { return nullptr; }
  SEQPACK_HD offset_t columns() const { return 0; }
};
template <class L>
using archetype =
    std::conditional_t<L::input == loss_input::logits, logits_archetype<L>, log_prob_archetype<L>>;

template <class L>
inline constexpr std::size_t group_size = 1;
template <class L>
  requires requires { L::sequences; }
inline constexpr std::size_t group_size<L> = L::sequences;

/// Whether a loss on logits looks at the output at the last token of a sequence too.
template <class L>
inline constexpr bool has_last_row = false;
template <class L>
  requires requires { L::last_row; }
inline constexpr bool has_last_row<L> = L::last_row;

/// Calls a loss with as many sequences as it takes together; make(k) gives the k-th.
template <class L, class Make, std::size_t... K>
SEQPACK_HD constexpr auto call(const L& loss, const Make& make, std::index_sequence<K...>) {
  return loss(make(K)...);
}

template <class L, class Sequence, std::size_t... K>
auto result(std::index_sequence<K...>)
    -> decltype(std::declval<const L&>()((static_cast<void>(K),
                                          std::declval<const Sequence&>())...));

/// Whether a result has so many derivatives, of the kind that the input of the loss wants.
template <loss_input Input, std::size_t Count, class T>
inline constexpr bool is_result = false;
template <loss_input Input, std::size_t Count, class... D>
inline constexpr bool is_result<Input, Count, differentiable_t<D...>> =
    sizeof...(D) == Count &&
    ((Input == loss_input::logits ? std::is_invocable_v<const D&, offset_t, double*>
                                  : std::is_invocable_r_v<double, const D&, offset_t>) &&
     ...);

}  // namespace detail::losses

/// A loss: a small value type whose call operator takes one sequence, or `L::sequences` of them
/// that follow each other in the batch (a pair of a chosen and a rejected one), and returns
/// `differentiable(value, derivative...)` with a derivative for each. The library adds up the
/// values of all groups, each times the sample_mask of its first sequence, and divides by the
/// global count of the loss's level. It knows nothing of packing, padding, sharding or ranks.
///
/// - `L::input`: loss_input
/// - `L::level`: loss_level
/// - `L::metrics`: a metric_list; the call operator contributes with `record`
/// - `L::sequences`, if it is not 1
/// - `L::fields`, if it asks for fields beside input_ids: field_tags of those that a batch must
///   have
/// - `L::last_row`, of a loss on logits: true, if it looks at the output at the last token too
///
/// A loss for CUDA is callable on the device: SEQPACK_HD.
///
///     struct nll {
///       static constexpr auto input = loss_input::next_token_logprobs;
///       static constexpr auto level = loss_level::token;
///       using metrics = no_metrics;
///       SEQPACK_HD auto operator()(const auto& sequence) const {
///         return differentiable(-sequence.sum([&](offset_t t) { return sequence.logp(t); }),
///                               [](offset_t) { return -1.0; });
///       }
///     };
template <class L>
concept loss_function = std::is_trivially_copyable_v<L> && requires {
  requires std::same_as<std::remove_cv_t<decltype(L::input)>, loss_input>;
  requires std::same_as<std::remove_cv_t<decltype(L::level)>, loss_level>;
  { L::metrics::size } -> std::convertible_to<std::size_t>;
  requires detail::losses::group_size<L> >= 1;
  requires detail::losses::is_result<
      L::input, detail::losses::group_size<L>,
      decltype(detail::losses::result<L, detail::losses::archetype<L>>(
          std::make_index_sequence<detail::losses::group_size<L>>{}))>;
};

/// How many sequences a loss takes together.
template <class L>
inline constexpr auto sequences_per_group = static_cast<offset_t>(detail::losses::group_size<L>);

}  // namespace seqpack
