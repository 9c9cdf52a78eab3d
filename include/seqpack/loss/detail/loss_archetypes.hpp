/// \file
/// Sequences without a batch, for the check of a loss, and what a loss declares.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/loss/differentiable.hpp"
#include "seqpack/loss/loss_kind.hpp"
#include "seqpack/loss/metric.hpp"
#include "seqpack/tokens/batch_fields.hpp"

namespace seqpack::detail {

/// Whether a tag is one of a field_tags.
template <class Tag, class Tags>
inline constexpr bool is_among = false;
template <class Tag, class... Tags>
inline constexpr bool is_among<Tag, field_tags<Tags...>> = (std::is_same_v<Tag, Tags> || ...);

/// A sequence of a batch that has the fields that a loss asks for, for the check of a concept.
template <class L>
struct sequence_archetype {
  SEQPACK_HD offset_t length() const { return 0; }
  SEQPACK_HD offset_t index() const { return 0; }
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
using loss_archetype =
    std::conditional_t<L::input == loss_input::logits, logits_archetype<L>, log_prob_archetype<L>>;

/// How many sequences a loss takes together.
template <class L>
inline constexpr std::size_t tuple_size = 1;
template <class L>
  requires requires { L::sequences; }
inline constexpr std::size_t tuple_size<L> = L::sequences;

/// Whether a loss on logits looks at the output at the last token of a sequence too.
template <class L>
inline constexpr bool has_last_row = false;
template <class L>
  requires requires { L::last_row; }
inline constexpr bool has_last_row<L> = L::last_row;

/// Calls a loss with as many sequences as it takes together; make(k) gives the k-th.
template <class L, class Make, std::size_t... K>
SEQPACK_HD constexpr auto call_loss(const L& loss, const Make& make, std::index_sequence<K...>) {
  return loss(make(K)...);
}

/// What a loss returns for sequences of a type; never defined.
template <class L, class Sequence, std::size_t... K>
auto loss_returns(std::index_sequence<K...>)
    -> decltype(std::declval<const L&>()((static_cast<void>(K),
                                          std::declval<const Sequence&>())...));

/// Whether a result has so many derivatives, of the kind that the input of the loss wants.
template <loss_input Input, std::size_t Count, class T>
inline constexpr bool is_loss_result = false;
template <loss_input Input, std::size_t Count, class... D>
inline constexpr bool is_loss_result<Input, Count, differentiable_t<D...>> =
    sizeof...(D) == Count &&
    ((Input == loss_input::logits ? std::is_invocable_v<const D&, offset_t, double*>
                                  : std::is_invocable_r_v<double, const D&, offset_t>) &&
     ...);

}  // namespace seqpack::detail
