// Failures of loss scaling, weighting and masking that training code in production really had, one
// test each. All ranks are one context-parallel group, unless a test says otherwise.
#define BOOST_TEST_MODULE mpi_train_cases
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "seqpack/seqpack.hpp"
#include "support/communicator_suite.hpp"
#include "support/mpi.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

struct losses_t {
  static constexpr std::string_view name = "losses";
};
inline constexpr losses_t token_losses{};

/// A batch that says what the loss of each token is.
struct priced_text : masked_text {
  std::vector<double> prices;  ///< [B, S]
  auto fields() const {
    return field_list(
        token_field(input_ids, table(ids)), token_field(token_mask, table(token_masks)),
        sequence_field(sample_mask, sample_masks), token_field(token_losses, table(prices)));
  }
};

struct price_metric {
  static constexpr std::string_view name = "price";
  static constexpr auto kind = metric_kind::mean;
  static constexpr auto over = count_of::tokens;
};

/// The prices. The derivative, 1 for each target, says where targets are.
template <loss_level Level>
struct priced {
  static constexpr auto input = loss_input::next_token_logprobs;
  static constexpr auto level = Level;
  using metrics = metric_list<price_metric>;
  using fields = field_tags<losses_t>;
  auto operator()(const auto& s) const {
    const auto price = [&](offset_t t) { return s.value(token_losses, t); };
    s.record(price_metric{}, s.sum(price));
    const double share = Level == loss_level::sequence ? 1 / s.mean_divisor() : 1;
    return differentiable(share * s.sum(price), [share](offset_t) { return share; });
  }
};
using per_token_price = priced<loss_level::token>;
using per_sequence_price = priced<loss_level::sequence>;

/// One sequence of so many targets, all of which count.
priced_text one_sequence(std::vector<double> prices) {
  const auto length = prices.size() + 1;
  priced_text text;
  text.lengths = {static_cast<int>(length)};
  text.width = static_cast<offset_t>(length);
  text.ids.assign(length, 1);
  text.token_masks.assign(length, 1);
  text.sample_masks = {1};
  text.prices = {not_a_number};
  text.prices.insert(text.prices.end(), prices.begin(), prices.end());
  return text;
}

struct frame {
  mpi_communicator cp = world();
  self_communicator tp;
  findings found = my_findings();
  offset_t size = cp.size();
  offset_t me = cp.rank().value;

  ~frame() { found.report(); }

  double sum(double mine) {
    double all = 0;
    cp.all_reduce(&mine, &all, 1, reduction::sum);
    return all;
  }
  auto setup() {
    return forward_setup(packed(padding{each_multiple_of<>{2 * size}}, context_parallel{size}),
                         &masked_text::lengths, cp, tp);
  }
  template <class Loss, class Text>
  auto step(const Text& text, const Loss& loss, const forward_options& options,
            table_model<>& model) {
    const std::vector<Text> batches{text};
    auto next = batches.begin();
    no_timer timer;
    return forward_step(host, timer, next, model, loss, setup(), options);
  }
  /// The sum of |gradient| of this rank, where the gradient is not NaN anywhere.
  double gradient_size(const std::vector<double>& gradient) {
    double total = 0;
    for (const double g : gradient) {
      found.check(!std::isnan(g), "a gradient is NaN");
      total += std::abs(g);
    }
    return total;
  }
};

}  // namespace

// The loss was off by the number of context-parallel ranks, depending on the version.
BOOST_FIXTURE_TEST_CASE(every_rank_returns_the_full_loss, frame) {
  const priced_text text = one_sequence({1, 2, 3, 4, 5, 6, 7, 8});
  for (const bool normalize : {true, false}) {
    table_model<> model;
    auto s =
        step(text, per_token_price{}, {.global_valid_toks = 8, .cp_normalize = normalize}, model);
    const auto result = s.loss(s.output.rows);
    found.equal(result.value(), normalize ? 4.5 / static_cast<double>(size) : 4.5, "loss");
    found.equal(sum(result.value()), normalize ? 4.5 : 4.5 * static_cast<double>(size),
                "sum of losses");
    found.equal(result.metrics()[price_metric{}], 4.5, "the metric, which nothing divides");
    // Each of the eight targets has derivative 1 / 8, of the sum over the ranks.
    double target_gradient = 0;
    for (std::size_t row = 0; row * 8 < model.logits.size(); ++row) {
      const double sum_of_row = [&] {
        double total = 0;
        for (std::size_t v = 0; v < 8; ++v) total += std::abs(model.logits[row * 8 + v]);
        return total;
      }();
      const double p = std::exp(table_logit(1, 1)) / [] {
        double all = 0;
        for (offset_t v = 0; v < 8; ++v) all += std::exp(table_logit(1, v));
        return all;
      }();
      target_gradient += sum_of_row / (2 * (1 - p));
    }
    found.check(
        std::abs(sum(target_gradient) - (normalize ? 1 : static_cast<double>(size))) < 1e-12,
        "derivatives of all targets");
  }
}

// Unequal masks across shards changed the objective.
BOOST_FIXTURE_TEST_CASE(one_valid_target_counts_the_same_on_any_number_of_ranks, frame) {
  priced_text text = one_sequence({3, 0, 0, 0, 0, 0, 0, 0});
  text.token_masks = {0, 1, 0, 0, 0, 0, 0, 0, 0};
  table_model<> model;
  auto s = step(text, per_token_price{}, {.global_valid_toks = 1}, model);
  found.equal(sum(s.loss().value()), 3.0, "sum of the losses");
}

// The token count was too large by the number of context-parallel ranks.
BOOST_FIXTURE_TEST_CASE(context_parallel_ranks_are_not_counted, frame) {
  const priced_text text = one_sequence({1, 1, 1, 1, 1, 1, 1, 1});
  self_communicator dp;
  const auto counts = sum_counts(dp, count_valid(host, text, &masked_text::lengths));
  found.check(counts == global_counts{8, 1}, "8 tokens of one sequence");
}

// Packing changed the weights of samples.
BOOST_FIXTURE_TEST_CASE(token_and_sequence_means_are_not_each_other, frame) {
  priced_text text;
  text.lengths = {8, 3};
  text.width = 8;
  text.ids.assign(16, 1);
  text.token_masks.assign(16, 1);
  text.sample_masks = {1, 1};
  text.prices.assign(16, 1);
  for (std::size_t k = 8; k < 16; ++k) text.prices[k] = 3;
  const forward_options options{
      .global_valid_toks = 9, .global_valid_seqs = 2, .cp_normalize = false};
  table_model<> model;
  auto by_token = step(text, per_token_price{}, options, model);
  found.check(std::abs(by_token.loss().value() - 13.0 / 9) < 1e-15, "13 / 9 in token mode");
  auto by_sequence = step(text, per_sequence_price{}, options, model);
  found.equal(by_sequence.loss().value(), 2.0, "2 in sequence mode");

  if (size == 1) {  // the same without packing
    table_model<attention_input::mask> unpacked;
    const std::vector<priced_text> batches{text, text};
    auto next = batches.begin();
    no_timer timer;
    const forward_setup as_it_is(not_packed{}, &masked_text::lengths);
    auto third = forward_step(host, timer, next, unpacked, per_token_price{}, as_it_is, options);
    auto fourth =
        forward_step(host, timer, next, unpacked, per_sequence_price{}, as_it_is, options);
    found.equal(third.loss().value(), by_token.loss().value(), "token mode, not packed");
    found.equal(fourth.loss().value(), 2.0, "sequence mode, not packed");
  }
}

// The length was taken from the first end-of-text token.
BOOST_FIXTURE_TEST_CASE(the_length_is_the_given_one, frame) {
  priced_text text;
  text.lengths = {4};
  text.width = 6;
  text.ids = {7, 2, 5, 2, 0, 0};  // 2 ends a text
  text.token_masks.assign(6, 1);
  text.sample_masks = {1};
  text.prices = {not_a_number, 1, 2, 3, not_a_number, not_a_number};
  table_model<> model;
  auto s = step(text, per_token_price{}, {.global_valid_toks = 3, .cp_normalize = false}, model);
  found.equal(s.loss().value(), 2.0, "the mean of three targets");
}

// NaN where every token of one rank was padding.
BOOST_FIXTURE_TEST_CASE(a_rank_that_holds_only_padding, frame) {
  priced_text text = one_sequence({5});  // 2 tokens, padded to 2 per rank and more
  table_model<> model;
  const std::vector<priced_text> batches{text};
  auto next = batches.begin();
  no_timer timer;
  const forward_setup wide(packed(padding{each_multiple_of<>{8 * size}}, context_parallel{size}),
                           &masked_text::lengths, cp, tp);
  auto s =
      forward_step(host, timer, next, model, per_token_price{}, wide, {.global_valid_toks = 1});
  // What the padding has computed is rubbish.
  for (offset_t row = 0; row < s.output.rows.rows; ++row) {
    const token_ref token = s.inputs.input().layout.token_at(shard{me}, row);
    if (token.real()) continue;
    for (offset_t v = 0; v < 8; ++v) s.output.rows.at(row)[v] = not_a_number;
  }
  const double value = s.loss(s.output.rows).value();
  found.equal(value, 5.0 / static_cast<double>(size), "the same finite loss on every rank");
  const double mine = gradient_size(model.logits);
  found.check(me == 0 ? mine > 0 : mine == 0, "only the rank with the target has a gradient");
}

// NaN losses and a division by zero where nothing was supervised.
BOOST_FIXTURE_TEST_CASE(no_valid_token_at_all, frame) {
  priced_text text = one_sequence({1, 2, 3});
  text.token_masks.assign(4, 0);
  for (const loss_pass pass : {loss_pass::fused, loss_pass::per_sequence}) {
    table_model<> model;
    auto s = step(text, per_token_price{},
                  {.global_valid_toks = 0, .global_valid_seqs = 0, .pass = pass}, model);
    for (double& x : model.logits) x = not_a_number;
    const auto result = s.loss(s.output.rows);
    found.equal(result.value(), 0.0, "loss");
    found.equal(result.metrics()[price_metric{}], 0.0, "metric");
    found.equal(gradient_size(model.logits), 0.0, "gradient");
    auto by_sequence = step(text, per_sequence_price{},
                            {.global_valid_toks = 0, .global_valid_seqs = 0, .pass = pass}, model);
    found.equal(by_sequence.loss().value(), 0.0, "loss per sequence");
  }
}

// NaN at the first step with a shifted loss: the only target belongs to a row of one rank.
BOOST_FIXTURE_TEST_CASE(only_token_6_is_a_target, frame) {
  priced_text text = one_sequence({1, 1, 1, 1, 1, 7, 1});
  text.token_masks = {0, 0, 0, 0, 0, 0, 1, 0};
  table_model<> model;
  auto s = step(text, per_token_price{}, {.global_valid_toks = 1}, model);
  // Row 5 predicts token 6.
  const bool mine = s.inputs.input().layout.row_of(shard{me}, 0, 5) >= 0;
  const double value = s.loss(s.output.rows).value();
  found.equal(value, 7.0 / static_cast<double>(size), "the loss, on every rank");
  found.equal(gradient_size(model.logits) > 0, mine, "the gradient, on the rank with row 5");
}

// The logged loss was the sum over ranks that all have the same one.
BOOST_FIXTURE_TEST_CASE(metrics_are_the_same_on_all_ranks, frame) {
  const priced_text text = one_sequence({1, 2, 3, 4, 5, 6, 7, 8});
  table_model<> model;
  auto s = step(text, per_token_price{}, {.global_valid_toks = 8}, model);
  const auto metrics = s.loss().metrics();
  found.equal(metrics[price_metric{}], 4.5, "metric of this rank");

  // Over data-parallel ranks, each with its own sequences, a mean adds up.
  std::vector<double> mine{8.0 * static_cast<double>(me + 1)};
  const metric_values<metric_list<price_metric>> part(mine.data(),
                                                      {8 * static_cast<double>(size), 1});
  const auto all = reduce_metrics(cp, part);
  const double expected = static_cast<double>(size + 1) / 2;
  found.check(std::abs(all[price_metric{}] - expected) < 1e-12, "mean over all ranks");
}

// The bits of a loss do not depend on how many ranks share the sequences.
BOOST_FIXTURE_TEST_CASE(a_loss_has_the_same_bits_alone, frame) {
  masked_text text;
  text.lengths = {13, 4, 0, 7};
  text.width = 13;
  for (int k = 0; k < 52; ++k) {
    text.ids.push_back(k * 5 % 8);
    text.token_masks.push_back(k % 3 != 0);
  }
  text.sample_masks = {1, 0.5F, 1, 1};
  const forward_options options{.global_valid_toks = 11, .cp_normalize = false};
  table_model<> model;
  const double shared = step(text, nll{}, options, model).loss().value();
  const std::vector<masked_text> batches{text};
  auto next = batches.begin();
  no_timer timer;
  table_model<> own;
  const double alone = forward_step(host, timer, next, own, nll{},
                                    forward_setup(packed{}, &masked_text::lengths), options)
                           .loss()
                           .value();
  found.equal(shared, alone, "loss");
}
