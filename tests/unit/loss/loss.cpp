// What a loss is, what one sees of a sequence, and the options that shipped losses refuse.
#define BOOST_TEST_MODULE loss
#include "seqpack/loss/loss.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "seqpack/loss/clipped_policy_gradient.hpp"
#include "seqpack/loss/dpo.hpp"
#include "seqpack/loss/evaluate.hpp"
#include "seqpack/loss/nll.hpp"
#include "support/refused.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

static_assert(loss_function<nll> && loss_function<dpo<>> && loss_function<dpo<reward_over::mean>>);
static_assert(loss_function<clipped_policy_gradient<>>);
static_assert(loss_function<clipped_policy_gradient<loss_level::sequence, kl_estimate::k3,
                                                    ratio_level::sequence>>);
static_assert(sequences_per_tuple<nll> == 1 && sequences_per_tuple<dpo<>> == 2);

struct of_logits {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::sequence;
  using metrics = no_metrics;
  auto operator()(const auto& s) const {
    return differentiable(s.sum([&](offset_t t) { return s.logits(t)[0]; }),
                          [](offset_t, double* out) { out[0] = 1; });
  }
};
static_assert(loss_function<of_logits>);

struct triples {
  static constexpr auto input = loss_input::next_token_logprobs;
  static constexpr auto level = loss_level::sequence;
  static constexpr std::size_t sequences = 3;
  using metrics = no_metrics;
  auto operator()(const auto& a, const auto&, const auto&) const {
    const auto d = [](offset_t) { return 0.0; };
    return differentiable(a.tokens(), d, d, d);
  }
};
static_assert(loss_function<triples> && sequences_per_tuple<triples> == 3);

struct value_alone : nll {
  double operator()(const auto& s) const { return s.tokens(); }
};
struct one_derivative_of_two : triples {
  static constexpr std::size_t sequences = 2;
  auto operator()(const auto& a, const auto&) const {
    return differentiable(a.tokens(), [](offset_t) { return 0.0; });
  }
};
struct no_level {
  static constexpr auto input = loss_input::logits;
  using metrics = no_metrics;
  auto operator()(const auto& s) const {
    return differentiable(s.tokens(), [](offset_t) { return 0.0; });
  }
};
struct owns_memory : nll {
  std::vector<double> table;
};
static_assert(!loss_function<value_alone> && !loss_function<one_derivative_of_two> &&
              !loss_function<no_level> && !loss_function<owns_memory> && !loss_function<int>);

struct derivative_of_another_kind : nll {
  auto operator()(const auto& s) const {
    return differentiable(s.tokens(), [](offset_t, double* out) { out[0] = 0; });
  }
};
struct of_nobody : nll {
  static constexpr std::size_t sequences = 0;
};
/// Constrained, so that the concept says no and the compiler does not.
template <class S>
concept has_advantages = requires(const S& s) { s.value(advantages, offset_t{1}); };
struct undeclared_field {
  static constexpr auto input = loss_input::next_token_logprobs;
  static constexpr auto level = loss_level::token;
  using metrics = no_metrics;
  auto operator()(const has_advantages auto& s) const {
    return differentiable(s.tokens(), [](offset_t) { return 0.0; });
  }
};
struct declared_field {
  static constexpr auto input = loss_input::next_token_logprobs;
  static constexpr auto level = loss_level::token;
  using metrics = no_metrics;
  using fields = field_tags<advantages_t>;
  auto operator()(const has_advantages auto& s) const {
    return differentiable(s.tokens(), [](offset_t) { return 0.0; });
  }
};
static_assert(!loss_function<derivative_of_another_kind> && !loss_function<of_nobody>);
static_assert(!loss_function<undeclared_field> && loss_function<declared_field>);

struct total {
  static constexpr std::string_view name = "total";
  static constexpr auto kind = metric_kind::sum;
};
struct smallest {
  static constexpr std::string_view name = "smallest";
  static constexpr auto kind = metric_kind::min;
};
using recorded = metric_list<total, smallest>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_sequence_visits_its_targets_alone) {
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  const masked_text text{{2, 4}, 4, {1, 2, 0, 0, 3, 4, 5, 6}, {1, 1, 1, 1, 1, 2, 0, 3}, {1, 0.5F}};
  const auto layout = make_layout(text.lengths, padding{each_multiple_of<4>{}});
  const auto view = layout.view();
  const auto fields = text.fields();
  using view_type = std::remove_const_t<decltype(view)>;
  using fields_type = std::remove_const_t<decltype(fields)>;
  const detail::loss_source<view_type, fields_type> from{view, fields, {}};
  // Rows 4 to 7 are the second sequence's; its targets 1 and 3 are predicted by rows 4 and 6.
  std::vector<double> logp(8, not_a_number);
  logp[4] = -1;
  logp[6] = -5;
  double contributions[2] = {0, std::numeric_limits<double>::infinity()};
  const log_prob_sequence<view_type, fields_type, recorded, double> s(from, 1, contributions, 0.5,
                                                                      logp.data());
  BOOST_TEST(s.length() == 4);
  BOOST_TEST(s.index() == 1);
  BOOST_TEST(s.sample_weight() == 0.5);
  BOOST_TEST(s.weight(0) == 0);
  BOOST_TEST(s.weight(1) == 2);
  BOOST_TEST(s.weight(2) == 0);
  BOOST_TEST(s.value(input_ids, 2) == 5);
  BOOST_TEST(s.value(sample_mask) == 0.5);
  const auto log_prob = [&](offset_t t) { return s.logp(t); };
  BOOST_TEST(s.tokens() == 5);
  BOOST_TEST(s.sum(log_prob) == 2 * -1 + 3 * -5);
  BOOST_TEST(s.mean(log_prob) == -17.0 / 5);
  BOOST_TEST(s.min(log_prob) == -5);
  BOOST_TEST(s.max(log_prob) == -1);
  s.record(total{}, 8);
  s.record(total{}, 1);
  s.record(smallest{}, 3);
  BOOST_TEST(contributions[0] == 4.5);  // weighted with the sample mask, a minimum is not
  BOOST_TEST(contributions[1] == 3);
}

BOOST_AUTO_TEST_CASE(a_sequence_without_targets) {
  const plain_text text{{1, 0}, 1, {7, 7}};
  const auto layout = make_layout(text.lengths);
  const auto view = layout.view();
  const auto fields = text.fields();
  using view_type = std::remove_const_t<decltype(view)>;
  using fields_type = std::remove_const_t<decltype(fields)>;
  const detail::loss_source<view_type, fields_type> from{view, fields, {}};
  for (const offset_t b : {0, 1}) {
    const log_prob_sequence<view_type, fields_type, no_metrics, float> s(from, b, nullptr, 1,
                                                                         nullptr);
    const auto fails = [](offset_t) -> double { throw std::logic_error("visited"); };
    BOOST_TEST(s.tokens() == 0);
    BOOST_TEST(s.sum(fails) == 0);
    BOOST_TEST(s.mean(fails) == 0);
    BOOST_TEST(s.min(fails) == std::numeric_limits<double>::infinity());
    BOOST_TEST(s.max(fails) == -std::numeric_limits<double>::infinity());
  }
}

BOOST_AUTO_TEST_CASE(options_of_the_clipped_policy_gradient) {
  using loss = clipped_policy_gradient<loss_level::token, kl_estimate::k3>;
  const auto refuse = [](const clip_options& options, const char* entry, const char* value,
                         const char* limit) {
    BOOST_CHECK_EXCEPTION(loss{options}, invalid_input, refused(entry, value, limit));
  };
  refuse({.low = -0.1}, "clip low", "-0.100000", "from 0 to 1");
  refuse({.low = 1.5}, "clip low", "1.500000", "from 0 to 1");
  refuse({.high = -1}, "clip high", "-1.000000", "at least 0");
  refuse({.dual = 1}, "dual clip", "1.000000", "above 1");
  refuse({.kl_penalty = std::numeric_limits<double>::infinity()}, "kl_penalty", "inf", "finite");
  refuse({.kl_input_clamp = 0}, "kl_input_clamp", "0.000000", "above 0");
  refuse({.kl_output_clamp = -1}, "kl_output_clamp", "-1.000000", "above 0");
  refuse({.low = std::nan("")}, "clip low", "nan", "from 0 to 1");
  BOOST_CHECK_EXCEPTION(clipped_policy_gradient<>({.kl_penalty = 0.1}), invalid_input,
                        refused("kl_penalty", "0.100000", "without an estimate"));
  BOOST_TEST(loss({.low = 0.1, .high = 3}).options().high == 3);
}

BOOST_AUTO_TEST_CASE(options_of_dpo) {
  BOOST_CHECK_EXCEPTION(dpo<>({.beta = -1e-9}), invalid_input,
                        refused("beta", "-1e-09", "it must be finite and at least 0"));
  BOOST_CHECK_EXCEPTION(dpo<>({.beta = std::nan("")}), invalid_input,
                        refused("beta", "nan", "finite"));
  BOOST_CHECK_EXCEPTION(dpo<>({.sft_weight = std::numeric_limits<double>::infinity()}),
                        invalid_input, refused("sft_weight", "inf", "finite"));
  BOOST_TEST(dpo<>({.beta = 2}).options().beta == 2);
  BOOST_TEST(dpo<>({.beta = 0}).options().beta == 0);
}

namespace {

struct ragged_masks {
  std::vector<int> lengths{3};
  std::vector<int> ids{1, 2, 3};
  std::vector<float> masks{1, 2};  ///< one too few
  std::vector<int> offsets{0, 2};
  auto fields() const {
    return field_list(token_field(input_ids, batch_view(ids.data(), 1, 3)),
                      token_field(token_mask, ragged_view(row_view<const float>(masks),
                                                          offsets.data(), offset_t{1})));
  }
};

struct far_off {
  std::vector<int> lengths{2};
  std::vector<int> ids{1, 1};
  std::vector<double> zero{0, 0};
  std::vector<double> far{1e300, 1e300};
  auto fields() const {
    const batch_view<const double> near_by(zero.data(), 1, 2);
    const batch_view<const double> far_away(far.data(), 1, 2);
    return field_list(token_field(input_ids, batch_view(ids.data(), 1, 2)),
                      token_field(prev_logprobs, near_by), token_field(advantages, near_by),
                      token_field(reference_logprobs, far_away));
  }
};

}  // namespace

// A device cannot be asked for the bounds beforehand.
BOOST_AUTO_TEST_CASE(nothing_is_read_outside_of_a_row) {
  const ragged_masks text;
  const auto fields = text.fields();
  BOOST_TEST(detail::token_weight(fields, {}, 0, 1) == 2);
  BOOST_TEST(detail::token_weight(fields, {}, 0, 2) == 0);
  BOOST_TEST(
      std::isnan(detail::token_value<double>(token_mask, fields, 0, 2, detail::not_a_number)));
}

BOOST_AUTO_TEST_CASE(a_penalty_of_0_is_none) {
  const far_off batch;  // by an infinite divergence
  const auto layout = make_layout(batch.lengths);
  std::vector<double> logits(4);
  self_communicator one;
  const matrix_view<double> rows(logits.data(), 2, 2);
  const clipped_policy_gradient<loss_level::token, kl_estimate::k3> loss({.kl_penalty = 0});
  const auto result = evaluate_loss(host, layout, one, one, batch, loss, rows, column_range(2),
                                    {.counts = {1, 1}}, rows);
  BOOST_TEST(result.value() == 0);
  for (const double g : logits) BOOST_TEST(g == 0);
}
