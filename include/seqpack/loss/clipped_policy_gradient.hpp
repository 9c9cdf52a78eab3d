/// \file
/// The clipped policy gradient loss of PPO and its relatives.
#pragma once

#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/text.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/loss/global_counts.hpp"
#include "seqpack/loss/loss.hpp"

namespace seqpack {

/// Sum over the targets of w * ratio, over N_tok.
struct probs_ratio {
  static constexpr std::string_view name = "probs_ratio";
  static constexpr auto kind = metric_kind::mean;
  static constexpr auto over = count_of::tokens;
};
/// The smallest ratio of a target.
struct probs_ratio_min {
  static constexpr std::string_view name = "probs_ratio_min";
  static constexpr auto kind = metric_kind::min;
};
/// The largest ratio of a target.
struct probs_ratio_max {
  static constexpr std::string_view name = "probs_ratio_max";
  static constexpr auto kind = metric_kind::max;
};
/// Sequences that count.
struct num_valid_samples {
  static constexpr std::string_view name = "num_valid_samples";
  static constexpr auto kind = metric_kind::sum;
};

/// What the ratio of a token's probabilities is taken over.
enum class ratio_level {
  token,    ///< each token's own
  sequence  ///< the geometric mean over its sequence (Zheng et al.: GSPO, 2025)
};

/// The estimate of the divergence from the reference policy (Schulman: Approximating KL
/// divergence, 2020), of e = reference_logprobs - logp.
enum class kl_estimate {
  none,  ///< no penalty; reference_logprobs is not needed
  k1,    ///< -e
  k2,    ///< e * e / 2
  k3     ///< exp(e) - 1 - e
};

/// The bounds of a clipped policy gradient.
struct clip_options {
  double low = 0.2;   ///< the ratio counts from 1 - low
  double high = 0.2;  ///< to 1 + high
  /// The dual clip, above 1: where the advantage is negative, the term is at most -dual *
  /// advantage.
  double dual = std::numeric_limits<double>::infinity();
  double kl_penalty = 0;  ///< the weight of the divergence
  double kl_input_clamp = std::numeric_limits<double>::infinity();   ///< of e, to +- this
  double kl_output_clamp = std::numeric_limits<double>::infinity();  ///< of the estimate
};

/// The clipped surrogate of PPO (Schulman et al., 2017), with separate bounds (Yu et al.: DAPO,
/// 2025), a dual clip (Ye et al., 2020) and a penalty on the divergence from a reference policy.
/// With d = logp - prev_logprobs:
///
///     r    = exp(d), or exp(mean_b(d)) for every token of the sequence
///     pg   = max(-A r, -A clamp(r, 1 - low, 1 + high)), and where A < 0: min(pg, -A dual)
///     term = pg + kl_penalty * KL
///     loss = sum(w * term) / N_tok, or sum_b(sample_mask * mean_b(term)) / N_seq
///
/// A value that is clamped has derivative 0. A token with advantage 0 has pg 0 and derivative 0,
/// whatever its ratio is.
///
/// \tparam Level token or sequence: which of the two losses
/// \tparam Ratio of the token or of its sequence
/// \tparam Kl which estimate; with none, a batch needs no reference_logprobs
template <loss_level Level = loss_level::token, kl_estimate Kl = kl_estimate::none,
          ratio_level Ratio = ratio_level::token>
class clipped_policy_gradient {
 public:
  static constexpr auto input = loss_input::next_token_logprobs;
  static constexpr auto level = Level;
  using metrics = metric_list<probs_ratio, probs_ratio_min, probs_ratio_max, num_valid_samples>;
  using fields =
      std::conditional_t<Kl == kl_estimate::none, field_tags<prev_logprobs_t, advantages_t>,
                         field_tags<prev_logprobs_t, advantages_t, reference_logprobs_t>>;

  /// \throws invalid_input for bounds that are negative or not a number, a lower one above 1, a
  /// dual clip that is not above 1, a penalty that is not finite, or a penalty other than 0 without
  /// an estimate.
  constexpr explicit clipped_policy_gradient(const clip_options& options = {}) : o_(options) {
    const auto require = [](bool fine, const char* name, double value, const char* must) {
      if (!fine) reject(name, detail::text_of(value), must);
    };
    require(o_.low >= 0 && o_.low <= 1, "clip low", o_.low, "it must be from 0 to 1");
    require(o_.high >= 0, "clip high", o_.high, "it must be at least 0");
    require(o_.dual > 1, "dual clip", o_.dual, "it must be above 1");
    require(o_.kl_penalty - o_.kl_penalty == 0, "kl_penalty", o_.kl_penalty, "it must be finite");
    require(Kl != kl_estimate::none || o_.kl_penalty == 0, "kl_penalty", o_.kl_penalty,
            "it must be 0 for a loss without an estimate of the divergence");
    require(o_.kl_input_clamp > 0, "kl_input_clamp", o_.kl_input_clamp, "it must be above 0");
    require(o_.kl_output_clamp > 0, "kl_output_clamp", o_.kl_output_clamp, "it must be above 0");
  }

  constexpr const clip_options& options() const noexcept { return o_; }

  template <class Sequence>
  SEQPACK_HD auto operator()(const Sequence& s) const {
    const double divisor = s.mean_divisor();
    const double mean_log_ratio =
        Ratio == ratio_level::sequence
            ? s.sum([&](offset_t t) { return s.logp(t) - s.value(prev_logprobs, t); }) / divisor
            : 0;
    const auto ratio = [self = *this, s, mean_log_ratio](offset_t t) {
      return self.ratio_of(s, mean_log_ratio, t);
    };

    s.record(probs_ratio{}, s.sum(ratio));
    s.record(probs_ratio_min{}, s.min(ratio));
    s.record(probs_ratio_max{}, s.max(ratio));
    s.record(num_valid_samples{}, 1);

    const double share = Level == loss_level::sequence ? 1 / divisor : 1;
    const double value = s.sum([&](offset_t t) {
      return surrogate(s.value(advantages, t), ratio(t)).value +
             o_.kl_penalty * divergence(s, t).value;
    });
    // All ratios of a sequence are the same one, of which each token has an equal part.
    const double common = Ratio == ratio_level::sequence ? s.sum([&](offset_t t) {
      return surrogate(s.value(advantages, t), ratio(t)).derivative;
    }) / divisor
                                                         : 0;
    return differentiable(share * value, [self = *this, s, ratio, share, common](offset_t t) {
      const double through_ratio =
          Ratio == ratio_level::sequence
              ? common
              : self.surrogate(s.value(advantages, t), ratio(t)).derivative;
      return share * (through_ratio + self.o_.kl_penalty * self.divergence(s, t).derivative);
    });
  }

 private:
  struct term {
    double value;
    double derivative;
  };

  template <class Sequence>
  SEQPACK_HD double ratio_of(const Sequence& s, double mean_log_ratio, offset_t t) const {
    return std::exp(Ratio == ratio_level::sequence ? mean_log_ratio
                                                   : s.logp(t) - s.value(prev_logprobs, t));
  }

  /// pg as a function of the ratio's logarithm.
  SEQPACK_HD term surrogate(double advantage, double ratio) const {
    if (advantage == 0) return {0, 0};  // not 0 times what may be infinite
    const double low = 1 - o_.low;
    const double high = 1 + o_.high;
    const double plain = -advantage * ratio;
    const double clipped = -advantage * (ratio < low ? low : ratio > high ? high : ratio);
    term pg = clipped > plain ? term{clipped, 0} : term{plain, plain};
    if (advantage < 0 && pg.value > -advantage * o_.dual) pg = {-advantage * o_.dual, 0};
    return pg;
  }

  /// KL as a function of logp: the derivative of e is -1.
  template <class Sequence>
  SEQPACK_HD term divergence(const Sequence& s, offset_t t) const {
    if constexpr (Kl == kl_estimate::none) {
      return {0, 0};
    } else {
      if (o_.kl_penalty == 0) return {0, 0};  // not 0 times what may be infinite
      const double plain = s.value(reference_logprobs, t) - s.logp(t);
      const double e = clamp(plain, o_.kl_input_clamp);
      term kl{-e, 1};
      if constexpr (Kl == kl_estimate::k2) kl = {e * e / 2, -e};
      if constexpr (Kl == kl_estimate::k3) kl = {std::exp(e) - 1 - e, 1 - std::exp(e)};
      const double out = clamp(kl.value, o_.kl_output_clamp);
      return {out, e == plain && out == kl.value ? kl.derivative : 0};
    }
  }

  /// A NaN stays one.
  SEQPACK_HD static double clamp(double x, double bound) {
    return x > bound ? bound : x < -bound ? -bound : x;
  }

  clip_options o_;
};

}  // namespace seqpack
