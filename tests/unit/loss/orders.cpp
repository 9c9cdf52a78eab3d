// Losses over layouts with an order: what they are for the batch of the packed sequences alone.
#define BOOST_TEST_MODULE orders
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "seqpack/loss/count_valid.hpp"
#include "seqpack/loss/nll.hpp"
#include "support/derivatives.hpp"
#include "support/refused.hpp"
#include "support/train_batch.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

using numbers = std::vector<offset_t>;

/// The sequences of an order as a batch of their own, in the order of the batch.
loss_sample picked(const loss_sample& c, numbers order) {
  std::sort(order.begin(), order.end());
  loss_sample p;
  p.width = c.width;
  p.columns = c.columns;
  p.temperature = c.temperature;
  for (const offset_t sequence : order) {
    const auto b = static_cast<std::size_t>(sequence);
    const auto row = [&](const auto& from, auto& to) {
      const auto width = static_cast<std::size_t>(c.width);
      for (std::size_t s = 0; s < width; ++s) to.push_back(from[b * width + s]);
    };
    p.lengths.push_back(c.lengths[b]);
    p.sample_weights.push_back(c.sample_weights[b]);
    row(c.ids, p.ids);
    row(c.token_weights, p.token_weights);
    row(c.previous, p.previous);
    row(c.reference, p.reference);
    row(c.advantage, p.advantage);
    row(c.outputs, p.outputs);
  }
  return p;
}

/// The same batch, in which the sequences that an order leaves out hold what must never come out.
loss_sample spoilt(loss_sample c, const numbers& order) {
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  for (int b = 0; b < c.batch(); ++b) {
    if (std::find(order.begin(), order.end(), b) != order.end()) continue;
    c.sample_weights[static_cast<std::size_t>(b)] = not_a_number;
    for (int s = 0; s < c.width; ++s) {
      c.ids[c.at(b, s)] = 1'000'000;
      c.token_weights[c.at(b, s)] = not_a_number;
    }
  }
  return c;
}

/// Orders of tuples of sequences, of which some are left out, in any slots: none, all, and others.
std::vector<numbers> orders_of(int batch, int tuple, std::mt19937& random) {
  std::vector<numbers> orders{{}};
  for (const int left_out : {0, 1, 1}) {
    numbers tuples(static_cast<std::size_t>(batch / tuple));
    std::iota(tuples.begin(), tuples.end(), 0);
    std::shuffle(tuples.begin(), tuples.end(), random);
    if (left_out > 0) tuples.resize(tuples.size() - random() % tuples.size());
    numbers order;
    for (const offset_t n : tuples) {
      for (int k = 0; k < tuple; ++k) order.push_back(n * tuple + k);
    }
    std::shuffle(order.begin(), order.end(), random);
    orders.push_back(order);
  }
  return orders;
}

/// A loss over every sample and order against its formula over the packed sequences.
template <class Loss, class Formula>
void check_orders(unsigned seed, int columns, const Loss& loss, const Formula& formula) {
  std::mt19937 random(seed);
  for_each_sample(seed, columns, [&](const loss_sample& c) {
    for (const numbers& order :
         orders_of(c.batch(), static_cast<int>(sequences_per_tuple<Loss>), random)) {
      check_loss(
          spoilt(c, order), loss,
          [&](const loss_sample& moved) { return formula(picked(moved, order)); }, order);
    }
  });
}

/// A loss on logits of pairs: the value at the last token, and the squares of the others.
struct last_and_squares {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::token;
  static constexpr std::size_t sequences = 2;
  static constexpr bool last_row = true;
  using metrics = no_metrics;

  template <class Sequence>
  auto operator()(const Sequence& a, const Sequence& b) const {
    const double both = last(a) * last(b);
    const auto derivative = [](const Sequence& s, double other) {
      return [s, other](offset_t t, double* out) {
        out[0] = t == s.length() ? other : 2 * s.weight(t) * s.logits(t)[0];
      };
    };
    return differentiable(both + squares(a) + squares(b), derivative(a, last(b)),
                          derivative(b, last(a)));
  }

  static double last(const auto& s) {
    return s.length() == 0 ? 0 : static_cast<double>(s.logits(s.length())[0]);
  }
  static double squares(const auto& s) {
    return s.sum([&](offset_t t) {
      return static_cast<double>(s.logits(t)[0]) * static_cast<double>(s.logits(t)[0]);
    });
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(log_likelihood) {
  check_orders(11, 4, nll{}, [](const loss_sample& c) { return nll_by_formula(c, counts.tokens); });
}

BOOST_AUTO_TEST_CASE(ratios_and_their_metrics) {
  const clip_options options{.low = 0.2, .high = 0.3, .dual = 1.4, .kl_penalty = 0.3};
  const clipped_policy_gradient<loss_level::sequence, kl_estimate::k3> loss(options);
  std::mt19937 random(3);
  for_each_sample(12, 3, [&](const loss_sample& c) {
    for (const numbers& order : orders_of(c.batch(), 1, random)) {
      branch_counts branches;
      const auto formula = [&](const loss_sample& moved) {
        loss_value of =
            policy_by_formula(picked(moved, order), options, loss_level::sequence, kl_estimate::k3,
                              ratio_level::token, counts.tokens, counts.sequences, branches);
        of.metrics["num_valid_samples"] += 0;  // also where nothing is packed
        return of;
      };
      if (formula(c).nearest < 1e-4L) continue;  // central differences need some distance
      check_loss(spoilt(c, order), loss, formula, order);
    }
  });
}

BOOST_AUTO_TEST_CASE(pairs_in_any_slots) {
  const dpo_options options{.beta = 0.8, .preference_weight = 0.6, .sft_weight = 0.5};
  check_orders(13, 4, dpo<>(options), [&](const loss_sample& c) {
    return dpo_by_formula(c, options, reward_over::sum, counts.sequences);
  });
}

BOOST_AUTO_TEST_CASE(pairs_of_a_loss_on_logits) {
  check_orders(14, 1, last_and_squares{}, [](const loss_sample& c) {
    loss_value result;
    for (int b = 0; b < c.batch(); b += 2) {
      real term = 1;
      for (const int k : {b, b + 1}) {
        term *= c.length(k) == 0 ? 0 : c.output(k, c.length(k) - 1, 0);
      }
      for (const int k : {b, b + 1}) {
        term += c.sum(k, [&](int t) { return c.output(k, t - 1, 0) * c.output(k, t - 1, 0); });
      }
      result.value += c.sample_weight(b) * term / real{counts.tokens};
    }
    return result;
  });
}

namespace {

struct evaluated {
  double value;
  std::vector<double> metrics;
  std::vector<double> gradient;  ///< of each token of the batch
};

template <class Loss>
evaluated evaluate(const loss_sample& c, const Loss& loss, loss_pass pass,
                   const slot_order& order) {
  const auto layout = make_layout(c.lengths, padding{each_multiple_of<4>{}}, no_context_parallel{},
                                  {.order = order});
  const auto view = layout.view();
  std::vector<double> rows = packed_outputs(c, view);
  self_communicator one;
  const matrix_view<double> logits(rows.data(), view.total, c.columns);
  const auto result =
      evaluate_loss(host, layout, one, one, c, loss, logits, column_range(c.columns),
                    {.counts = counts, .pass = pass}, logits);
  evaluated found{result.value(), {}, {}};
  result.metrics().for_each([&](auto, double x) { found.metrics.push_back(x); });
  for (int b = 0; b < c.batch(); ++b) {
    for (int s = 0; s < c.length(b); ++s) {
      if (view.slot(b) < 0) continue;
      const double* const row = logits.at(view.row_of(full_row, view.slot(b), s));
      found.gradient.insert(found.gradient.end(), row, row + c.columns);
    }
  }
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_permutation_changes_no_bit) {
  std::mt19937 random(5);
  for_each_sample(15, 3, [&](const loss_sample& c) {
    numbers order(static_cast<std::size_t>(c.batch()));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    const auto check = [&](const auto& loss) {
      const evaluated wanted = evaluate(c, loss, loss_pass::fused, {});
      for (const auto pass : {loss_pass::fused, loss_pass::per_sequence}) {
        const evaluated found = evaluate(c, loss, pass, order);
        BOOST_TEST(found.value == wanted.value);
        BOOST_TEST(found.metrics == wanted.metrics, boost::test_tools::per_element());
        BOOST_TEST((found.gradient == wanted.gradient));
      }
    };
    check(nll{});
    check(dpo<>({.beta = 0.5, .sft_weight = 0.25}));
  });
}

BOOST_AUTO_TEST_CASE(rows_of_a_plan_add_up_to_the_whole) {
  std::mt19937 random(6);
  const loss_sample c = random_sample(random, 6, 4, 1);
  const numbers all{0, 1, 2, 3, 4, 5};
  const std::vector<numbers> plan{{5, 4}, {}, {1, 3, 0, 2}};
  for (const auto pass : {loss_pass::fused, loss_pass::per_sequence}) {
    double sum = 0;
    double of_pairs = 0;
    for (const numbers& row : plan) {
      const auto evaluate_row = [&](const auto& loss) {
        const auto layout = make_layout(c.lengths, padding{total_multiple_of<8>{}},
                                        no_context_parallel{}, {.order = row});
        std::vector<double> rows = packed_outputs(c, layout.view());
        self_communicator one;
        const matrix_view<double> logits(rows.data(), layout.total_tokens(), c.columns);
        return evaluate_loss(host, layout, one, one, c, loss, logits, column_range(c.columns),
                             {.counts = counts, .pass = pass}, logits)
            .value();
      };
      sum += evaluate_row(nll{});
      of_pairs += evaluate_row(dpo<>({.beta = 0.5}));
    }
    const real expected = nll_by_formula(c, counts.tokens).value;
    const real expected_pairs =
        dpo_by_formula(c, {.beta = 0.5}, reward_over::sum, counts.sequences).value;
    BOOST_TEST(is_near(sum, expected, 1e-13L));
    BOOST_TEST(is_near(of_pairs, expected_pairs, 1e-13L));
  }
}

BOOST_AUTO_TEST_CASE(rows_of_random_plans_add_up_to_the_whole) {
  std::mt19937 random(8);
  const dpo<> loss({.beta = 0.7, .sft_weight = 0.3});
  for (int round = 0; round < 40; ++round) {
    const loss_sample c = random_sample(random, 8, 3, 1);
    const evaluated whole = evaluate(c, loss, loss_pass::fused, {});
    std::vector<numbers> plan(1 + random() % 5);
    for (const offset_t pair : {3, 0, 2, 1}) {
      numbers& row = plan[random() % plan.size()];
      row.insert(row.begin() + static_cast<std::ptrdiff_t>(random() % (row.size() + 1)),
                 {2 * pair + 1, 2 * pair});
    }
    double sum = 0;
    std::vector<double> metrics(whole.metrics.size());
    double gradient = 0;
    for (const numbers& row : plan) {
      const auto pass = random() % 2 == 0 ? loss_pass::fused : loss_pass::per_sequence;
      const evaluated found = evaluate(c, loss, pass, row);
      sum += found.value;
      for (std::size_t k = 0; k < metrics.size(); ++k) metrics[k] += found.metrics[k];
      for (const double d : found.gradient) gradient += d * d;
    }
    double whole_gradient = 0;
    for (const double d : whole.gradient) whole_gradient += d * d;
    BOOST_TEST(is_near(sum, whole.value, 1e-13L));
    BOOST_TEST(is_near(gradient, whole_gradient, 1e-13L));
    for (std::size_t k = 0; k < metrics.size(); ++k) {
      BOOST_TEST(is_near(metrics[k], whole.metrics[k], 1e-13L));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_pair_is_packed_wholly_or_not_at_all) {
  std::mt19937 random(7);
  const loss_sample c = random_sample(random, 4, 3, 1);
  const auto refuse = [&](const numbers& order, const std::string& entry) {
    BOOST_CHECK_EXCEPTION(
        evaluate(c, dpo<>({.beta = 1}), loss_pass::fused, order), invalid_input,
        refused(entry, "left out of the order",
                "the loss takes sequences 2 to 3 together: the order must have all "
                "of them or none"));
  };
  refuse({0, 1, 2}, "sequence 3");
  refuse({3, 1, 0}, "sequence 2");
}

namespace {

struct ordered_text : masked_text {
  numbers packed;
  std::span<const offset_t> order() const { return packed; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(counts_are_those_of_the_packed_sequences) {
  ordered_text text;
  static_cast<masked_text&>(text) = {{3, 2, 4, 1},
                                     4,
                                     std::vector<std::int64_t>(16, 1),
                                     {1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0},
                                     {1, 0.5F, 2, 1}};
  static_assert(ordered_batch<ordered_text> && !ordered_batch<masked_text>);
  const auto count = [&](const numbers& order) {
    text.packed = order;
    return count_valid(host, text, &ordered_text::lengths);
  };
  BOOST_TEST((count({3, 2}) == global_counts{4, 3}));
  BOOST_TEST((count({1}) == global_counts{0.5, 0.5}));
  BOOST_TEST((count({}) == global_counts{0, 0}));
  BOOST_TEST((count({2, 0, 3, 1}) == global_counts{6.5, 4.5}));
  BOOST_CHECK_EXCEPTION(count({2, 2}), invalid_input, refused("order[1]", "2", "at most once"));
}

BOOST_AUTO_TEST_CASE(targets_that_are_left_out_are_not_looked_at) {
  const plain_text text{{2, 2}, 2, {1, 2, 1, 99}};
  self_communicator one;
  const auto run = [&](const numbers& order) {
    const auto layout =
        make_layout(text.lengths, no_padding{}, no_context_parallel{}, {.order = order});
    const std::vector<float> logits(static_cast<std::size_t>(layout.total_tokens() * 4), 0.5F);
    return evaluate_loss(host, layout, one, one, text, nll{},
                         matrix_view<const float>(logits.data(), layout.total_tokens(), 4),
                         column_range(4), {.counts = {.tokens = 1}})
        .value();
  };
  BOOST_TEST(std::abs(run({0}) - std::log(4.0)) < 1e-6);
  BOOST_CHECK_EXCEPTION(run({1, 0}), invalid_input,
                        refused("input_ids[1][1]", "99", "a target must be from 0 to 3"));
}
