// Losses and log-probabilities against their formulas in long double, and their gradients against
// central differences of those.
#define BOOST_TEST_MODULE derivatives
#include <boost/test/unit_test.hpp>
#include <utility>

#include "seqpack/logprob/next_token_logprobs.hpp"
#include "seqpack/loss/nll.hpp"
#include "support/derivatives.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

/// A user's loss on log-probabilities: the focal loss, a mean over each sequence.
struct focal {
  static constexpr auto input = loss_input::next_token_logprobs;
  static constexpr auto level = loss_level::sequence;
  using metrics = no_metrics;

  template <class Sequence>
  auto operator()(const Sequence& s) const {
    const double divisor = s.mean_divisor();
    const double value = s.mean([&](offset_t t) {
      const double rest = 1 - std::exp(s.logp(t));
      return -rest * rest * s.logp(t);
    });
    return differentiable(value, [s, divisor](offset_t t) {
      const double p = std::exp(s.logp(t));
      return (2 * (1 - p) * p * s.logp(t) - (1 - p) * (1 - p)) / divisor;
    });
  }
};

/// The probability of column v that a teacher gives behind a token.
double teacher(std::int64_t id, int v, int columns) {
  double all = 0;
  const auto share = [&](int column) {
    return 1.0 + static_cast<double>((7 * column + 3 * id) % 5);
  };
  for (int column = 0; column < columns; ++column) all += share(column);
  return share(v) / all;
}

/// A user's loss on logits: the cross entropy with a teacher's distributions.
struct distillation {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::token;
  using metrics = no_metrics;

  template <class Sequence>
  auto operator()(const Sequence& s) const {
    const double value = s.sum([&](offset_t t) {
      double sum = 0;
      for (offset_t v = 0; v < s.columns(); ++v) sum -= target(s, t, v) * log_prob(s, t, v);
      return sum;
    });
    return differentiable(value, [self = *this, s](offset_t t, double* out) {
      for (offset_t v = 0; v < s.columns(); ++v) out[v] = s.weight(t) * self.error(s, t, v);
    });
  }

  double error(const auto& s, offset_t t, offset_t v) const {
    return std::exp(log_prob(s, t, v)) - target(s, t, v);
  }
  double target(const auto& s, offset_t t, offset_t v) const {
    const auto id = static_cast<std::int64_t>(s.value(input_ids, t));
    return teacher(id, static_cast<int>(v), static_cast<int>(s.columns()));
  }
  double log_prob(const auto& s, offset_t t, offset_t v) const {
    double sum = 0;
    for (offset_t k = 0; k < s.columns(); ++k) sum += std::exp(s.logits(t)[k]);
    return s.logits(t)[v] - std::log(sum);
  }
};

/// A user's loss on a value head: the squared error of each value, with the advantages as returns.
struct value_error {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::token;
  using metrics = no_metrics;
  using fields = field_tags<advantages_t>;

  template <class Sequence>
  auto operator()(const Sequence& s) const {
    const auto error = [s](offset_t t) {
      return static_cast<double>(s.logits(t)[0]) - s.value(advantages, t);
    };
    const double value = s.sum([&](offset_t t) { return error(t) * error(t); });
    return differentiable(
        value, [s, error](offset_t t, double* out) { out[0] = 2 * s.weight(t) * error(t); });
  }
};

/// A user's loss on pairs: the score of a sequence is the value at its last token (Bradley-Terry).
struct score_margin {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::sequence;
  static constexpr std::size_t sequences = 2;
  static constexpr bool last_row = true;
  using metrics = no_metrics;

  template <class Sequence>
  auto operator()(const Sequence& chosen, const Sequence& rejected) const {
    const double slope = -1 / (1 + std::exp(score(chosen) - score(rejected)));
    const auto derivative = [](const Sequence& s, double d) {
      return [s, d](offset_t t, double* out) { out[0] = t == s.length() ? d : 0; };
    };
    return differentiable(std::log1p(std::exp(score(rejected) - score(chosen))),
                          derivative(chosen, slope), derivative(rejected, -slope));
  }

  static double score(const auto& s) {
    return s.length() == 0 ? 0 : static_cast<double>(s.logits(s.length())[0]);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(log_likelihood) {
  for_each_sample(1, 6, [](const loss_sample& c) {
    check_loss(c, nll{},
               [](const loss_sample& moved) { return nll_by_formula(moved, counts.tokens); });
  });
}

namespace {

template <reward_over Reward>
void check_preferences(unsigned seed) {
  const dpo_options all_options[] = {
      {.beta = 0.4},
      {.beta = 0.8, .preference_weight = 0.6, .sft_weight = 0.5},
      {.beta = 1.5, .preference_weight = 1.2, .sft_weight = 0.7, .sft_average = true}};
  for (const dpo_options& options : all_options) {
    for_each_sample(seed++, 5, [&](const loss_sample& c) {
      check_loss(c, dpo<Reward>(options), [&](const loss_sample& moved) {
        return dpo_by_formula(moved, options, Reward, counts.sequences);
      });
    });
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(preferences_over_sums) {
  check_preferences<reward_over::sum>(500);
}
BOOST_AUTO_TEST_CASE(preferences_over_means) {
  check_preferences<reward_over::mean>(600);
}

BOOST_AUTO_TEST_CASE(a_loss_of_ones_own_on_log_probabilities) {
  for_each_sample(700, 5, [](const loss_sample& c) {
    check_loss(c, focal{}, [](const loss_sample& moved) {
      loss_value result;
      for (int b = 0; b < moved.batch(); ++b) {
        const real sum = moved.sum(b, [&](int t) {
          const real logp = moved.logp(b, t);
          return -std::pow(1 - std::exp(logp), 2) * logp;
        });
        result.value +=
            moved.sample_weight(b) * sum / moved.mean_divisor(b) / real{counts.sequences};
      }
      return result;
    });
  });
}

BOOST_AUTO_TEST_CASE(a_loss_of_ones_own_on_logits) {
  for_each_sample(800, 4, [](const loss_sample& c) {
    check_loss(c, distillation{}, [](const loss_sample& moved) {
      loss_value result;
      for (int b = 0; b < moved.batch(); ++b) {
        result.value += moved.sample_weight(b) / real{counts.tokens} * moved.sum(b, [&](int t) {
          real sum = 0;
          for (int v = 0; v < moved.columns; ++v) {
            sum -= teacher(moved.ids[moved.at(b, t)], v, moved.columns) *
                   (moved.output(b, t - 1, v) - moved.log_sum(b, t - 1));
          }
          return sum;
        });
      }
      return result;
    });
  });
}

BOOST_AUTO_TEST_CASE(a_loss_on_values) {
  for_each_sample(900, 1, [](const loss_sample& c) {
    check_loss(c, value_error{}, [](const loss_sample& moved) {
      loss_value result;
      for (int b = 0; b < moved.batch(); ++b) {
        result.value += moved.sample_weight(b) / real{counts.tokens} * moved.sum(b, [&](int t) {
          return std::pow(moved.output(b, t - 1, 0) - moved.advantage[moved.at(b, t)], 2);
        });
      }
      return result;
    });
  });
}

BOOST_AUTO_TEST_CASE(a_loss_on_pairs_of_last_values) {
  for_each_sample(1000, 1, [](const loss_sample& c) {
    check_loss(c, score_margin{}, [](const loss_sample& moved) {
      const auto score = [&](int b) {
        return moved.length(b) == 0 ? 0 : moved.output(b, moved.length(b) - 1, 0);
      };
      loss_value result;
      for (int b = 0; b < moved.batch(); b += 2) {
        result.value += moved.sample_weight(b) * std::log(1 + std::exp(score(b + 1) - score(b))) /
                        (real{counts.sequences} / 2);
      }
      return result;
    });
  });
}

namespace {

/// The entropy of the distribution that a row is.
real entropy_of(const loss_sample& c, int b, int s) {
  real sum = 0;
  for (int v = 0; v < c.columns; ++v) {
    const real logp = c.output(b, s, v) - c.log_sum(b, s);
    sum -= std::exp(logp) * logp;
  }
  return sum;
}

/// Forward and backward with random derivatives.
void check_log_probs(const loss_sample& c, std::mt19937& random) {
  const auto layout = make_layout(c.lengths, padding{each_multiple_of<3>{}});
  const auto view = layout.view();
  const std::vector<double> outputs = packed_outputs(c, view);
  const matrix_view rows(outputs.data(), view.total_tokens(), offset_t{c.columns});
  const offset_t batch = c.batch();
  const offset_t width = c.width - 1;
  const auto table = [&](auto& values) { return batch_view(values.data(), batch, width); };
  const auto size = static_cast<std::size_t>(batch * width);
  std::vector<double> out(size, 7);
  std::vector<double> entropy(size, 7);
  self_communicator cp;
  self_communicator tp;
  const log_prob_options options{.temperature = c.temperature};
  const auto state =
      next_token_logprobs(host, layout, cp, tp, batch_view(c.ids.data(), batch, offset_t{c.width}),
                          rows, column_range(c.columns), table(out), options, table(entropy));

  // Entries without a token are not read.
  std::vector<double> derivatives(size, std::numeric_limits<double>::quiet_NaN());
  for (int b = 0; b < c.batch(); ++b) {
    for (int s = 0; s < c.width - 1; ++s) {
      const auto k = static_cast<std::size_t>(b * (c.width - 1) + s);
      const bool target = s + 1 < c.length(b);
      BOOST_TEST(is_near(out[k], target ? c.logp(b, s + 1) : 0, 1e-14L));
      BOOST_TEST(is_near(entropy[k], target ? entropy_of(c, b, s) : 0, 1e-14L));
      if (!target) continue;
      const bool none = random() % 4 == 0;
      derivatives[k] = none ? 0 : std::uniform_real_distribution<double>(-2, 2)(random);
    }
  }
  std::vector<double> gradient(outputs.size(), 12345);
  next_token_logprobs_backward(host, layout, shard{0}, state, rows, column_range(c.columns),
                               table(std::as_const(derivatives)),
                               matrix_view(gradient.data(), rows.rows, rows.columns), options);
  check_gradient(c, view, gradient, [&](const loss_sample& moved) {
    real sum = 0;
    for (int b = 0; b < moved.batch(); ++b) {
      for (int t = 1; t < moved.length(b); ++t) {
        sum += derivatives[static_cast<std::size_t>(b * (c.width - 1) + t - 1)] * moved.logp(b, t);
      }
    }
    return sum;
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(log_probabilities) {
  std::mt19937 random(1100);
  for_each_sample(1100, 5, [&](const loss_sample& c) { check_log_probs(c, random); });
}
