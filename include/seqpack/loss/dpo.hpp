/// \file
/// Direct preference optimisation over pairs of sequences.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/text.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/loss/global_counts.hpp"
#include "seqpack/loss/loss.hpp"

namespace seqpack {

/// The share of pairs whose chosen sequence has the larger reward.
struct accuracy {
  static constexpr std::string_view name = "accuracy";
  static constexpr auto kind = metric_kind::mean;
  static constexpr auto over = count_of::pairs;
};
/// x of the chosen sequences, without beta.
struct rewards_chosen_mean {
  static constexpr std::string_view name = "rewards_chosen_mean";
  static constexpr auto kind = metric_kind::mean;
  static constexpr auto over = count_of::pairs;
};
/// x of the rejected sequences, without beta.
struct rewards_rejected_mean {
  static constexpr std::string_view name = "rewards_rejected_mean";
  static constexpr auto kind = metric_kind::mean;
  static constexpr auto over = count_of::pairs;
};

/// How the log-probabilities of a sequence become its reward.
enum class reward_over { sum, mean };

/// The weights of a preference loss.
struct dpo_options {
  double beta = 0.1;
  double preference_weight = 1;
  double sft_weight = 0;     ///< of the negative log-likelihood of the chosen sequences
  bool sft_average = false;  ///< that, per token of its sequence
};

/// Direct preference optimisation (Rafailov et al., 2023). The chosen sequences are
/// 2k, the rejected ones 2k + 1:
///
///     x_b  = sum_s token_mask * (logp - reference_logprobs), or mean_b of it
///     n_b  = -sum_s w * logp, divided by max(1, sum_s w) with sft_average
///     loss = sum_k sample_mask[2k] * (preference_weight * -log sigmoid(beta * (x_2k - x_2k+1))
///                                     + sft_weight * n_2k) / (N_seq / 2)
///
/// \tparam Reward sum or mean
template <reward_over Reward = reward_over::sum>
class dpo {
 public:
  static constexpr auto input = loss_input::next_token_logprobs;
  static constexpr auto level = loss_level::sequence;
  static constexpr std::size_t sequences = 2;
  using metrics = metric_list<accuracy, rewards_chosen_mean, rewards_rejected_mean>;
  using fields = field_tags<reference_logprobs_t>;

  /// \throws invalid_input for a number that is not finite, or a beta below 0. With a beta of 0 the
  /// preference is log 2 and has no derivative.
  constexpr explicit dpo(const dpo_options& options = {}) : o_(options) {
    const auto require = [](bool fine, const char* name, double value, const char* must) {
      if (!fine) reject(name, detail::text_of(value), must);
    };
    const auto finite = [](double x) { return x - x == 0; };
    require(finite(o_.beta) && o_.beta >= 0, "beta", o_.beta, "it must be finite and at least 0");
    require(finite(o_.preference_weight), "preference_weight", o_.preference_weight,
            "it must be finite");
    require(finite(o_.sft_weight), "sft_weight", o_.sft_weight, "it must be finite");
  }

  constexpr const dpo_options& options() const noexcept { return o_; }

  template <class Sequence>
  SEQPACK_HD auto operator()(const Sequence& chosen, const Sequence& rejected) const {
    const double x_chosen = reward(chosen);
    const double x_rejected = reward(rejected);
    // Not 0 times what may be infinite.
    const double margin = o_.beta == 0 ? 0 : o_.beta * (x_chosen - x_rejected);

    // The weights in n are token_mask * sample_mask.
    const double sample = chosen.sample_weight();
    const double valid = sample * chosen.tokens();
    const double sft_share = sample * (o_.sft_average && valid > 1 ? 1 / valid : 1);
    double sft = 0;
    if (o_.sft_weight != 0) {
      sft = -sft_share * chosen.sum([&](offset_t t) { return chosen.logp(t); });
    }

    chosen.record(accuracy{}, x_chosen > x_rejected ? 1 : 0);
    chosen.record(rewards_chosen_mean{}, x_chosen);
    chosen.record(rewards_rejected_mean{}, x_rejected);

    // d(-log sigmoid(m)) / dm = -sigmoid(-m)
    const double strength = o_.preference_weight * o_.beta;
    const double slope = strength == 0 ? 0 : -strength * sigmoid(-margin);
    const double of_chosen = slope / reward_divisor(chosen) - o_.sft_weight * sft_share;
    const double of_rejected = -slope / reward_divisor(rejected);
    const double preference =
        o_.preference_weight == 0 ? 0 : o_.preference_weight * softplus(-margin);
    return differentiable(
        preference + o_.sft_weight * sft, [of_chosen](offset_t) { return of_chosen; },
        [of_rejected](offset_t) { return of_rejected; });
  }

 private:
  template <class Sequence>
  SEQPACK_HD static double reward_divisor(const Sequence& s) {
    return Reward == reward_over::mean ? s.mean_divisor() : 1;
  }
  template <class Sequence>
  SEQPACK_HD static double reward(const Sequence& s) {
    return s.sum([&](offset_t t) { return s.logp(t) - s.value(reference_logprobs, t); }) /
           reward_divisor(s);
  }
  /// log(1 + exp(x)) = -log sigmoid(-x), without overflow.
  SEQPACK_HD static double softplus(double x) {
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
  SEQPACK_HD static double sigmoid(double x) {
    return x > 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
  }

  dpo_options o_;
};

}  // namespace seqpack
