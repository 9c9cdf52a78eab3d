/// \file
/// Counting as a loss that looks at no log-probability.
#pragma once

#include <string_view>

#include "seqpack/core/config.hpp"
#include "seqpack/loss/differentiable.hpp"
#include "seqpack/loss/loss_kind.hpp"
#include "seqpack/loss/metric.hpp"

namespace seqpack::detail {

/// Sequences that count.
struct valid_sequences {
  static constexpr std::string_view name = "valid_sequences";
  static constexpr auto kind = metric_kind::sum;
};

/// Counting is a loss that looks at no log-probability.
struct valid_tokens {
  static constexpr auto input = loss_input::next_token_logprobs;
  static constexpr auto level = loss_level::token;
  using metrics = metric_list<valid_sequences>;

  template <class Sequence>
  SEQPACK_HD auto operator()(const Sequence& sequence) const {
    sequence.record(valid_sequences{}, 1);
    return differentiable(sequence.tokens(), [](offset_t) { return 0.0; });
  }
};

}  // namespace seqpack::detail
