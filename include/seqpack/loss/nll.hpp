/// \file
/// The negative log-likelihood of the targets.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/loss/loss.hpp"

namespace seqpack {

/// Cross entropy with the next token, per token:
///
///     -sum over b, s of w[b][s] * logp[b][s] / N_tok,    w = token_mask[b][s] * sample_mask[b]
struct nll {
  static constexpr auto input = loss_input::next_token_logprobs;
  static constexpr auto level = loss_level::token;
  using metrics = no_metrics;

  template <class Sequence>
  SEQPACK_HD auto operator()(const Sequence& sequence) const {
    return differentiable(-sequence.sum([&](offset_t t) { return sequence.logp(t); }),
                          [](offset_t) { return -1.0; });
  }
};

}  // namespace seqpack
