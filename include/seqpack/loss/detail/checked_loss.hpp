/// \file
/// Diagnoses a loss: one static_assert for each thing that is wrong, and no other error.
// For the folders above too.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/loss/detail/loss_archetypes.hpp"
#include "seqpack/loss/differentiable.hpp"
#include "seqpack/loss/loss_kind.hpp"
#include "seqpack/loss/metric.hpp"
#include "seqpack/tokens/batch_fields.hpp"

namespace seqpack::detail {

template <class Tags>
inline constexpr bool is_field_tags = false;
template <class... Tags>
inline constexpr bool is_field_tags<field_tags<Tags...>> = true;

/// A sequence of which a loss may ask anything. What it must not ask for is an error here, and
/// nowhere else: where a real sequence lacks something, it gives NaN.
template <class L>
struct asserting_archetype : loss_archetype<L> {
  template <field_tag Tag>
  SEQPACK_HD double value(Tag, offset_t) const {
    return named<Tag>();
  }
  template <field_tag Tag>
  SEQPACK_HD double value(Tag) const {
    return named<Tag>();
  }
  template <metric Metric>
  SEQPACK_HD void record(Metric, double) const {
    static_assert(has_metric<typename L::metrics, Metric>,
                  "a loss lists what it records in its `metrics`");
  }

 private:
  template <class Tag>
  SEQPACK_HD double named() const {
    static_assert(std::is_same_v<Tag, input_ids_t> || is_among<Tag, asked_fields<L>>,
                  "a loss names the fields that it reads: `using fields = field_tags<...>`");
    return 0;
  }
};

/// Takes the place of a loss with something wrong, so that nothing else is said about it.
template <class Metrics>
struct stand_in_loss {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::token;
  using metrics = Metrics;

  template <class Sequence>
  SEQPACK_HD auto operator()(const Sequence&) const {
    return differentiable(0, [](offset_t, double*) {});
  }
};

template <class L>
concept says_input =
    requires { requires std::is_same_v<std::remove_cv_t<decltype(L::input)>, loss_input>; };
template <class L>
concept says_level =
    requires { requires std::is_same_v<std::remove_cv_t<decltype(L::level)>, loss_level>; };
template <class L>
concept lists_metrics = requires { L::metrics::size + std::size_t{0}; };
template <class L>
concept takes_sequences = requires { requires tuple_size<L> >= 1; };
template <class L>
concept lists_fields = is_field_tags<asked_fields<L>>;

/// \returns whether all members are there
template <class L>
constexpr bool has_loss_members() {
  static_assert(std::is_trivially_copyable_v<L>,
                "a loss is trivially copyable, so that it can be sent to a device");
  static_assert(says_input<L>,
                "a loss says what it looks at: `static constexpr auto input`, a loss_input");
  static_assert(says_level<L>,
                "a loss says what it is divided by: `static constexpr auto level`, a loss_level");
  static_assert(lists_metrics<L>,
                "a loss lists its metrics: `using metrics`, a metric_list, or no_metrics");
  static_assert(takes_sequences<L>,
                "`sequences` of a loss is how many it takes together, at least 1");
  static_assert(lists_fields<L>, "`fields` of a loss is a field_tags");
  return std::is_trivially_copyable_v<L> && says_input<L> && says_level<L> && lists_metrics<L> &&
         takes_sequences<L> && lists_fields<L>;
}

/// What a loss with all members makes of sequences.
template <class L, std::size_t... K>
constexpr bool has_loss_result(std::index_sequence<K...> all) {
  using sequence = asserting_archetype<L>;
  constexpr bool called =
      requires(const L& loss, const sequence& s) { loss((static_cast<void>(K), s)...); };
  static_assert(called,
                "a loss is called with a sequence, or with as many as its `sequences` says, by a "
                "const operator()");
  if constexpr (called) {
    constexpr bool fits =
        is_loss_result<L::input, sizeof...(K), decltype(loss_returns<L, sequence>(all))>;
    static_assert(fits,
                  "a loss returns differentiable(value, derivative...), with a derivative for each "
                  "sequence: of (offset_t) that gives a double or, for a loss on logits, of "
                  "(offset_t, double*)");
    // Never called, but compiled: what the loss asks for is looked at whatever its return type.
    [[maybe_unused]] const auto ask = [](const L& loss, const sequence& s) {
      static_cast<void>(loss((static_cast<void>(K), s)...));
    };
    return fits;
  } else {
    return false;
  }
}

template <class L>
constexpr bool is_checked_loss() {
  if constexpr (has_loss_members<L>()) {
    return has_loss_result<L>(std::make_index_sequence<tuple_size<L>>{});
  } else {
    return false;
  }
}

/// The metrics of a loss that may have none.
template <class L>
struct loss_metrics {
  using type = no_metrics;
};
template <class L>
  requires lists_metrics<L>
struct loss_metrics<L> {
  using type = typename L::metrics;
};

/// The loss itself. Does not compile for one that is no loss_function, and says why.
template <class L>
constexpr auto checked_loss(const L& loss) {
  if constexpr (is_checked_loss<L>()) {
    return loss;
  } else {
    return stand_in_loss<typename loss_metrics<L>::type>{};
  }
}

}  // namespace seqpack::detail
