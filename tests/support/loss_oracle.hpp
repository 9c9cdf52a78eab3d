/// \file
/// Random batches for losses, and what the losses are by their formulas: plain loops in long double
/// that share no code with the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "seqpack/loss/clipped_policy_gradient.hpp"
#include "seqpack/loss/dpo.hpp"
#include "seqpack/tokens/batch_fields.hpp"

namespace seqpack::testing {

using real = long double;

/// A batch [B, width] with every field, and the rows of a model's output for each token.
struct loss_sample {
  std::vector<int> lengths;
  int width = 0;
  int columns = 0;
  double temperature = 1;
  std::vector<std::int64_t> ids;
  std::vector<double> token_weights;
  std::vector<double> sample_weights;
  std::vector<double> previous;
  std::vector<double> reference;
  std::vector<double> advantage;
  std::vector<std::vector<real>> outputs;  ///< [B * width][columns]

  int batch() const { return static_cast<int>(lengths.size()); }
  std::size_t at(int b, int s) const { return static_cast<std::size_t>(b * width + s); }
  int length(int b) const { return lengths[static_cast<std::size_t>(b)]; }

  auto fields() const {
    return field_list(
        token_field(input_ids, table(ids)), token_field(token_mask, table(token_weights)),
        sequence_field(sample_mask, sample_weights), token_field(prev_logprobs, table(previous)),
        token_field(reference_logprobs, table(reference)),
        token_field(advantages, table(advantage)));
  }

  // What the formulas are made of.

  real sample_weight(int b) const { return sample_weights[static_cast<std::size_t>(b)]; }
  real token_weight(int b, int t) const { return token_weights[at(b, t)]; }
  /// Of a row, divided by the temperature.
  real output(int b, int s, int v) const {
    return outputs[at(b, s)][static_cast<std::size_t>(v)] / temperature;
  }
  real log_sum(int b, int s) const {
    real sum = 0;
    for (int v = 0; v < columns; ++v) sum += std::exp(output(b, s, v));
    return std::log(sum);
  }
  /// The log-probability of token t, from the row of the token before it.
  real logp(int b, int t) const {
    return output(b, t - 1, static_cast<int>(ids[at(b, t)])) - log_sum(b, t - 1);
  }
  /// Sum of token_mask * f(t).
  template <class F>
  real sum(int b, const F& f) const {
    real total = 0;
    for (int t = 1; t < length(b); ++t) {
      if (token_weight(b, t) != 0) total += token_weight(b, t) * f(t);
    }
    return total;
  }
  real mean_divisor(int b) const {
    return std::max(real{1}, sum(b, [](int) { return real{1}; }));
  }

 private:
  template <class T>
  batch_view<const T> table(const std::vector<T>& values) const {
    return {values.data(), offset_t{batch()}, offset_t{width}};
  }
};

/// Lengths with an empty sequence and one of a single token among them; masks of 0, 1 and
/// fractions; NaN where nothing may look.
inline loss_sample random_sample(std::mt19937& random, int batch, int columns, double temperature) {
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const double weights[] = {0, 1, 1, 1, 0.25, 0.75};

  loss_sample c;
  c.width = 7;
  c.columns = columns;
  c.temperature = temperature;
  for (int b = 0; b < batch; ++b) c.lengths.push_back(b < 2 ? b : 2 + below(5));
  std::shuffle(c.lengths.begin(), c.lengths.end(), random);
  const auto positions = c.at(batch, 0);
  c.ids.assign(positions, 1'000'000);
  for (auto* table : {&c.token_weights, &c.previous, &c.reference, &c.advantage}) {
    table->assign(positions, not_a_number);
  }
  c.outputs.assign(positions, std::vector<real>(static_cast<std::size_t>(columns), not_a_number));
  for (int b = 0; b < batch; ++b) {
    c.sample_weights.push_back(b % 2 == 0 ? weights[1 + below(5)] : weights[below(6)]);
    for (int s = 0; s < c.length(b); ++s) {
      c.ids[c.at(b, s)] = below(columns);
      for (real& x : c.outputs[c.at(b, s)]) x = uniform(-2, 2);
      if (s == 0) continue;
      c.token_weights[c.at(b, s)] = weights[below(6)];
      const auto logp = static_cast<double>(c.logp(b, s));
      c.previous[c.at(b, s)] = logp + uniform(-0.6, 0.6);
      c.reference[c.at(b, s)] = logp + uniform(-1.5, 1.5);
      c.advantage[c.at(b, s)] = uniform(-1, 1);
    }
  }
  return c;
}

/// A loss by its formula. `nearest` is how near a ratio or a divergence is to where the loss has a
/// kink: central differences need some distance.
struct loss_value {
  real value = 0;
  std::map<std::string, real> metrics;
  real nearest = 1;
};

/// How often the branches of a clipped policy gradient were taken, over all tokens.
struct branch_counts {
  int clipped = 0;
  int dual = 0;
  int clamped_in = 0;
  int clamped_out = 0;
  int plain = 0;
};

inline loss_value nll_by_formula(const loss_sample& c, real tokens) {
  loss_value result;
  for (int b = 0; b < c.batch(); ++b) {
    result.value -= c.sample_weight(b) * c.sum(b, [&](int t) { return c.logp(b, t); }) / tokens;
  }
  return result;
}

inline real clamp_to(real x, real bound) {
  return std::min(std::max(x, -bound), bound);
}

/// One token of a clipped policy gradient.
class policy_term {
 public:
  policy_term(const clip_options& o, kl_estimate kl, loss_value& notes, branch_counts& branches)
      : o_(o), kl_(kl), notes_(notes), branches_(branches) {}

  real operator()(real a, real r, real reference, real logp) const {
    return surrogate(a, r) + (kl_ == kl_estimate::none ? 0 : penalty(reference - logp));
  }

 private:
  real surrogate(real a, real r) const {
    const real low = 1 - real{o_.low};
    const real high = 1 + real{o_.high};
    real pg = std::max(-a * r, -a * std::min(std::max(r, low), high));
    ++(pg == -a * r ? branches_.plain : branches_.clipped);
    near(r, low);
    near(r, high);
    if (o_.dual < std::numeric_limits<double>::infinity() && a < 0) {
      near(r, o_.dual);
      if (-a * o_.dual < pg) ++branches_.dual;
      pg = std::min(pg, -a * o_.dual);
    }
    return pg;
  }
  real penalty(real plain) const {
    const real e = clamp_to(plain, o_.kl_input_clamp);
    near(std::abs(plain), o_.kl_input_clamp);
    const real kl = kl_ == kl_estimate::k1   ? -e
                    : kl_ == kl_estimate::k2 ? e * e / 2
                                             : std::exp(e) - 1 - e;
    near(std::abs(kl), o_.kl_output_clamp);
    if (e != plain) ++branches_.clamped_in;
    if (std::abs(kl) > o_.kl_output_clamp) ++branches_.clamped_out;
    return o_.kl_penalty * clamp_to(kl, o_.kl_output_clamp);
  }
  void near(real x, real kink) const {
    notes_.nearest = std::min(notes_.nearest, std::abs(x - kink));
  }

  const clip_options& o_;
  kl_estimate kl_;
  loss_value& notes_;
  branch_counts& branches_;
};

inline loss_value policy_by_formula(const loss_sample& c, const clip_options& o, loss_level level,
                                    kl_estimate kl, ratio_level ratio, real tokens, real sequences,
                                    branch_counts& branches) {
  loss_value result;
  const policy_term term(o, kl, result, branches);
  real& mean = result.metrics["probs_ratio"];
  real& least = result.metrics["probs_ratio_min"];
  real& most = result.metrics["probs_ratio_max"];
  least = std::numeric_limits<real>::infinity();
  most = -least;
  for (int b = 0; b < c.batch(); ++b) {
    const real weight = c.sample_weight(b);
    if (weight == 0) continue;
    result.metrics["num_valid_samples"] += weight;
    const auto d = [&](int t) { return c.logp(b, t) - c.previous[c.at(b, t)]; };
    const real mean_d = c.sum(b, d) / c.mean_divisor(b);
    const auto r = [&](int t) { return std::exp(ratio == ratio_level::token ? d(t) : mean_d); };
    const real sum = c.sum(b, [&](int t) {
      least = std::min(least, r(t));
      most = std::max(most, r(t));
      return term(c.advantage[c.at(b, t)], r(t), c.reference[c.at(b, t)], c.logp(b, t));
    });
    mean += weight * c.sum(b, r) / tokens;
    result.value += level == loss_level::token ? weight * sum / tokens
                                               : weight * sum / c.mean_divisor(b) / sequences;
  }
  return result;
}

inline loss_value dpo_by_formula(const loss_sample& c, const dpo_options& o, reward_over reward,
                                 real sequences) {
  loss_value result;
  const auto x = [&](int b) {
    const real sum = c.sum(b, [&](int t) { return c.logp(b, t) - c.reference[c.at(b, t)]; });
    return reward == reward_over::mean ? sum / c.mean_divisor(b) : sum;
  };
  real& share = result.metrics["accuracy"];
  real& chosen = result.metrics["rewards_chosen_mean"];
  real& rejected = result.metrics["rewards_rejected_mean"];
  const real pairs = sequences / 2;
  for (int b = 0; b < c.batch(); b += 2) {
    const real weight = c.sample_weight(b);
    const real margin = o.beta * (x(b) - x(b + 1));
    real n = -weight * c.sum(b, [&](int t) { return c.logp(b, t); });
    const real w = weight * c.sum(b, [](int) { return real{1}; });
    if (o.sft_average) n /= std::max(real{1}, w);
    const real preference = std::log(1 + std::exp(-margin));
    result.value += weight * (o.preference_weight * preference + o.sft_weight * n) / pairs;
    share += weight * (x(b) > x(b + 1) ? 1 : 0) / pairs;
    chosen += weight * x(b) / pairs;
    rejected += weight * x(b + 1) / pairs;
  }
  return result;
}

}  // namespace seqpack::testing
