// A user-defined loss: the focal loss, which counts what the model already knows for less.
#pragma once

#include <cmath>
#include <seqpack/seqpack.hpp>

/// The share of the probability that the targets have.
struct target_probability {
  static constexpr std::string_view name = "target_probability";
  static constexpr auto kind = seqpack::metric_kind::mean;
  static constexpr auto over = seqpack::count_of::tokens;
};

/// -(1 - p)^gamma log p of each target, per token.
struct focal_loss {
  static constexpr auto input = seqpack::loss_input::next_token_logprobs;
  static constexpr auto level = seqpack::loss_level::token;
  using metrics = seqpack::metric_list<target_probability>;
  double gamma = 2;

  template <class Sequence>
  SEQPACK_HD auto operator()(const Sequence& s) const {
    const auto p = [s](auto t) { return std::exp(s.logp(t)); };
    s.record(target_probability{}, s.sum(p));
    const auto value = [s, p, g = gamma](auto t) { return -std::pow(1 - p(t), g) * s.logp(t); };
    const auto derivative = [s, p, g = gamma](auto t) {
      const double rest = 1 - p(t);  // 0 for a certain target, which needs no change
      return rest > 0 ? std::pow(rest, g) * (g * p(t) * s.logp(t) / rest - 1) : 0;
    };
    return seqpack::differentiable(s.sum(value), derivative);
  }
};
