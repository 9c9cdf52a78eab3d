// Micro-batches: a batch and an order, and those of a plan, through the forward step.
#define BOOST_TEST_MODULE micro_batches
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "seqpack/loss/count_valid.hpp"
#include "seqpack/loss/dpo.hpp"
#include "seqpack/loss/nll.hpp"
#include "seqpack/plan/piece_view.hpp"
#include "seqpack/plan/plan_rows.hpp"
#include "seqpack/plan/step_plan.hpp"
#include "seqpack/step/forward_step.hpp"
#include "seqpack/step/micro_batch.hpp"
#include "support/refused.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using numbers = std::vector<offset_t>;
using boost::test_tools::per_element;

static_assert(planned_rows<plain_plan> && planned_rows<row_plan> && !planned_rows<numbers>);

/// Micro-batches of two ranks in turn.
struct steps_of_two {
  plain_plan all;
  offset_t steps() const { return all.rows() / 2; }
  offset_t ranks() const { return 2; }
  std::span<const offset_t> micro_batch(offset_t step, offset_t rank) const {
    return all.row(2 * step + rank);
  }
  const plain_plan& micro_batches() const { return all; }
};
static_assert(planned_steps<steps_of_two> && planned_steps<step_plan>);
static_assert(!planned_steps<plain_plan> && !planned_rows<step_plan>);

/// Copies are counted: micro-batches share one.
struct counted_text : masked_text {
  std::shared_ptr<int> copies = std::make_shared<int>(0);
  counted_text() = default;
  explicit counted_text(masked_text text) : masked_text(std::move(text)) {}
  counted_text(const counted_text& other) : masked_text(other), copies(other.copies) { ++*copies; }
  counted_text(counted_text&&) = default;
};

/// 1 2 3 | 4 5 | 6 | 7 1 2 6 | nothing
counted_text example() {
  return counted_text({{3, 2, 1, 4, 0},
                       4,
                       {1, 2, 3, 9, 4, 5, 9, 9, 6, 9, 9, 9, 7, 1, 2, 6, 9, 9, 9, 9},
                       {1, 1, 1, 9, 1, 1, 9, 9, 1, 9, 9, 9, 1, 1, 0, 1, 9, 9, 9, 9},
                       {1, 0.5F, 1, 2, 1}});
}
const plain_plan three_rows{{{3, 0}, {}, {4, 1, 2}}};

static_assert(batch<micro_batch<counted_text>> && ordered_batch<micro_batch<counted_text>>);
static_assert(lengths_projection<decltype(&masked_text::lengths), micro_batch<counted_text>>);
using iterator = micro_batches<counted_text>::iterator;
static_assert(std::forward_iterator<iterator>);

/// -log of a softmax over the 8 columns of table_logit, by its definition.
double table_nll(std::int64_t id, std::int64_t target) {
  double sum = 0;
  for (offset_t v = 0; v < 8; ++v) sum += std::exp(table_logit(id, v));
  return std::log(sum) - table_logit(id, target);
}
// Of the example's sequences 0, 1 and 3; the others have no target.
const double first = table_nll(1, 2) + table_nll(2, 3);
const double second = 0.5 * table_nll(4, 5);
const double fourth = 2 * (table_nll(7, 1) + table_nll(2, 6));
constexpr double tokens = 2 + 0.5 + 2 * 2;

template <class Next, class Setup, class Loss = nll>
auto run(Next& next, table_model<>& model, const Setup& setup, forward_options options = {},
         const Loss& loss = {}) {
  if (std::isnan(options.global_valid_toks)) options.global_valid_toks = tokens;
  options.global_valid_seqs = 4;
  return forward_step(host, no_timer{}, next, model, loss, setup, options);
}

template <class Padding>
auto setup_of(const Padding& how) {
  return forward_setup(packed(how), &masked_text::lengths);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_micro_batch_is_a_batch_and_an_order) {
  const micro_batch<counted_text> part(example(), numbers{3, 0});
  const std::vector parts{part};
  auto next = parts.begin();
  table_model<> model;
  auto step = run(next, model, setup_of(padding{each_multiple_of<4>{}}));
  BOOST_TEST(model.seen_ids == (std::vector<std::int64_t>{7, 1, 2, 6, 1, 2, 3, 0}), per_element());
  BOOST_TEST(model.seen_positions == (std::vector<std::int64_t>{0, 1, 2, 3, 0, 1, 2, 3}),
             per_element());
  BOOST_TEST(std::abs(step.loss().value() - (first + fourth) / tokens) < 1e-14);
  BOOST_TEST(step.loss.batch_data()->lengths.size() == 5);
  BOOST_TEST(&*step.loss.batch_data() == &*part);
}

BOOST_AUTO_TEST_CASE(rows_of_a_plan_add_up_to_the_whole) {
  for (const auto pass : {loss_pass::fused, loss_pass::per_sequence}) {
    const micro_batches parts(example(), three_rows);
    table_model<> model;
    auto next = parts.begin();
    const auto setup = setup_of(padding{each_multiple_of<4>{}, total_multiple_of<8>{}});
    std::vector<double> values;
    while (next != parts.end()) {
      auto step = run(next, model, setup, {.pass = pass});
      values.push_back(step.loss(step.output.rows).value());
    }
    BOOST_TEST(values.size() == 3);
    BOOST_TEST(std::abs(values[0] - (first + fourth) / tokens) < 1e-14);
    BOOST_TEST(values[1] == 0);
    BOOST_TEST(std::abs(values[2] - second / tokens) < 1e-14);
  }
}

BOOST_AUTO_TEST_CASE(an_empty_micro_batch_has_loss_and_gradient_0) {
  const auto check = [](const auto& how, offset_t total, const masked_text& text) {
    for (const auto pass : {loss_pass::fused, loss_pass::per_sequence}) {
      const micro_batches parts(counted_text(text), plain_plan{{{}}});
      auto next = parts.begin();
      table_model<> model;
      auto step = run(next, model, setup_of(how), {.pass = pass});
      BOOST_TEST(step.output.rows.rows == total);
      BOOST_TEST(step.loss.layout().sequences() == 0);
      std::vector<double> gradient(static_cast<std::size_t>(total * 8), 7);
      const auto result = step.loss(matrix_view<double>(gradient.data(), total, 8));
      BOOST_TEST(result.value() == 0);
      BOOST_TEST(gradient == std::vector<double>(gradient.size(), 0), per_element());
      BOOST_TEST((next == parts.end()));
    }
  };
  const masked_text none{{}, 4, {}, {}, {}};
  for (const masked_text& text : {static_cast<const masked_text&>(example()), none}) {
    check(no_padding{}, 0, text);
    check(padding{each_multiple_of<4>{}}, 0, text);
    check(padding{fixed_total<16>{}}, 16, text);
    check(padding{fixed_total<16>{}, ghost_tail{}}, 16, text);
  }
}

BOOST_AUTO_TEST_CASE(an_empty_micro_batch_gives_a_model_one_segment_of_padding) {
  const micro_batches parts(example(), plain_plan{{{}}});
  auto next = parts.begin();
  table_model<> model;
  auto step = run(next, model, setup_of(padding{fixed_total<8>{}}));
  const auto& params = step.inputs.input().params;
  const std::vector<std::int32_t> bounds{0, 8};
  BOOST_TEST(params.cu_seqlens_q == bounds, per_element());
  BOOST_TEST(params.max_seqlen_q == 8);
  BOOST_TEST(params.total_tokens == 8);
  BOOST_TEST(model.seen_ids == std::vector<std::int64_t>(8, 0), per_element());
}

BOOST_AUTO_TEST_CASE(pairs_of_a_plan) {
  masked_text text{
      {2, 2, 2, 2}, 2, {1, 2, 3, 4, 5, 6, 7, 1}, std::vector<std::uint8_t>(8, 1), {1, 1, 1, 1}};
  const dpo<> loss({.beta = 0, .preference_weight = 0, .sft_weight = 1});
  struct with_references : masked_text {
    std::vector<double> reference = std::vector<double>(8, 0);
    auto fields() const {
      return field_list(token_field(input_ids, table(ids)),
                        token_field(reference_logprobs, table(reference)));
    }
  };
  with_references pairs;
  static_cast<masked_text&>(pairs) = text;
  const micro_batches parts(pairs, plain_plan{{{3, 2}, {1, 0}}});
  auto next = parts.begin();
  table_model<> model;
  const auto setup = forward_setup(packed{}, &masked_text::lengths);
  auto late = run(next, model, setup, {}, loss);
  // N_seq is 4, two pairs; the first of each is the chosen one, whatever slot it is in.
  BOOST_TEST(std::abs(late.loss().value() - table_nll(5, 6) / 2) < 1e-14);
  auto early = run(next, model, setup, {}, loss);
  BOOST_TEST(std::abs(early.loss().value() - table_nll(1, 2) / 2) < 1e-14);

  const micro_batches torn(pairs, plain_plan{{{3, 1, 0}}});
  auto at = torn.begin();
  BOOST_CHECK_EXCEPTION(
      run(at, model, setup, {}, loss), invalid_input,
      refused("sequence 2", "left out of the order", "the loss takes sequences 2 to 3 together"));
  BOOST_TEST((at == torn.end()));
}

BOOST_AUTO_TEST_CASE(counts_of_a_plan_are_those_of_its_sequences) {
  const counted_text text = example();
  const micro_batches parts(text, three_rows);
  const auto all = count_valid(host, parts.all(), &masked_text::lengths);
  BOOST_TEST((all == global_counts{tokens, 5.5}));
  BOOST_TEST((all == count_valid(host, text, &masked_text::lengths)));
  global_counts sum;
  for (const auto& part : parts) sum += count_valid(host, part, &masked_text::lengths);
  BOOST_TEST((all == sum));
  // The rows of one rank of several.
  const micro_batches own(text, plain_plan{{{1}, {0}}});
  BOOST_TEST((count_valid(host, own.all(), &masked_text::lengths) == global_counts{2.5, 1.5}));
}

BOOST_AUTO_TEST_CASE(the_micro_batches_of_one_rank_of_several) {
  const auto text = std::make_shared<const counted_text>(example());
  const steps_of_two plan{{{{3}, {0, 1}, {4}, {}}}};
  const auto orders = [](const auto& parts) {
    std::vector<numbers> all;
    for (const auto& part : parts) all.emplace_back(part.order().begin(), part.order().end());
    return all;
  };
  BOOST_TEST((orders(micro_batches(text, plan, 0)) == std::vector<numbers>{{3}, {4}}));
  BOOST_TEST((orders(micro_batches(*text, plan, 1)) == std::vector<numbers>{{0, 1}, {}}));
  BOOST_CHECK_EXCEPTION(micro_batches(text, plan, 2), invalid_input,
                        refused("rank", "2", "from 0 to 1"));
}

BOOST_AUTO_TEST_CASE(the_batch_is_shared_and_lives_as_long_as_a_loss) {
  auto text = example();
  const auto copies = text.copies;
  std::optional<micro_batches<counted_text>> parts(std::in_place, std::move(text), three_rows);
  auto next = parts->begin();
  table_model<> model;
  const auto setup = setup_of(no_padding{});
  auto step = run(next, model, setup);
  parts.reset();
  auto after = run(next, model, setup);
  auto last = run(next, model, setup);
  BOOST_TEST(*copies == 0);
  BOOST_TEST(std::abs(last.loss().value() - second / tokens) < 1e-14);
  BOOST_TEST(after.loss().value() == 0);

  const auto shared = std::make_shared<counted_text>(example());
  const micro_batches of_shared(shared, three_rows);
  BOOST_TEST(&of_shared.whole() == shared.get());
  BOOST_TEST(&*of_shared[2] == shared.get());
  BOOST_TEST(of_shared[2].order()[1] == 1);
  BOOST_TEST(of_shared[1].empty());
  BOOST_TEST(of_shared.size() == 3);
}

BOOST_AUTO_TEST_CASE(lengths_may_be_found_by_a_function_of_the_batch) {
  const micro_batches parts(example(), three_rows);
  auto next = parts.begin();
  table_model<> model;
  const auto lengths = [](const counted_text& text) { return text.lengths; };
  auto step = run(next, model, forward_setup(packed{}, lengths));
  BOOST_TEST(step.loss.layout().real_tokens() == 7);
}

BOOST_AUTO_TEST_CASE(what_is_not_packed_takes_no_order) {
  const micro_batches parts(example(), three_rows);
  auto next = parts.begin();
  table_model<attention_input::mask> model;
  BOOST_CHECK_EXCEPTION(
      forward_step(host, no_timer{}, next, model, nll{},
                   forward_setup(not_packed{}, &masked_text::lengths), {.global_valid_toks = 1}),
      invalid_input,
      refused("order of the batch", "given", "a batch that is not packed takes all"));
}

BOOST_AUTO_TEST_CASE(orders_that_name_no_sequence_or_one_twice) {
  table_model<> model;
  const auto refuse = [&](const numbers& order, const char* value, const char* limit) {
    const micro_batches parts(example(), plain_plan{{order}});
    auto next = parts.begin();
    BOOST_CHECK_EXCEPTION(run(next, model, setup_of(no_padding{})), invalid_input,
                          refused("order[1]", value, limit));
  };
  refuse({0, 5}, "5", "from 0 to 4");
  refuse({3, 3}, "3", "at most once");
}

namespace {

/// A batch as pieces of its sequences.
struct text_of_pieces {
  masked_text whole;
  row_plan plan;
  std::vector<offset_t> lengths() const { return plan.piece_lengths(); }
  auto fields() const {
    return field_list(token_field(input_ids, piece_view(whole.table(whole.ids), plan.pieces())));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_plan_of_rows_by_the_padding_of_the_layouts) {
  const counted_text text = example();
  for (const auto method : {plan_method::decreasing, plan_method::in_order}) {
    const padding how{each_multiple_of<4>{}, fixed_total<8>{}};
    const row_plan plan =
        plan_rows(text.lengths, dynamic, how, no_context_parallel{}, {.method = method});
    const micro_batches parts(text, plan);
    BOOST_TEST(parts.size() == plan.rows());
    table_model<> model;
    double sum = 0;
    for (auto next = parts.begin(); next != parts.end();) {
      auto step = run(next, model, setup_of(how));
      BOOST_TEST(step.output.rows.rows == 8);
      sum += step.loss(step.output.rows).value();
    }
    BOOST_TEST(std::abs(sum - (first + second + fourth) / tokens) < 1e-13);
  }
}

BOOST_AUTO_TEST_CASE(a_plan_of_steps) {
  const auto text = std::make_shared<const counted_text>(example());
  const step_plan plan(row_plan(std::vector<offset_t>{3, 0, 1, 2, 4}, {0, 1, 3, 5, 5}), 2);
  double sum = 0;
  for (const offset_t rank : {0, 1}) {
    const micro_batches parts(text, plan, rank);
    BOOST_TEST(parts.size() == 2);
    table_model<> model;
    for (auto next = parts.begin(); next != parts.end();) {
      auto step = run(next, model, setup_of(padding{fixed_total<8>{}}));
      sum += step.loss(step.output.rows).value();
    }
  }
  BOOST_TEST(std::abs(sum - (first + second + fourth) / tokens) < 1e-13);
}

BOOST_AUTO_TEST_CASE(pieces_of_sequences_need_a_batch_of_pieces) {
  const masked_text whole{{5, 1}, 5, {1, 2, 3, 4, 5, 6, 9, 9, 9, 9}, {}, {}};
  const row_plan plan = plan_rows(whole.lengths, 3, no_padding{}, no_context_parallel{},
                                  {.too_long = too_long::split});
  BOOST_TEST(plan.pieces().size() == 3);
  const auto refusal_of_pieces =
      refused("number of pieces of the plan", "3", "must be a piece_view with a row for each");
  BOOST_CHECK_EXCEPTION(micro_batches(whole, plan), invalid_input, refusal_of_pieces);

  const micro_batches parts(text_of_pieces{whole, plan}, plan);
  table_model<> model;
  const auto setup = forward_setup(packed{}, &text_of_pieces::lengths);
  const auto counts = count_valid(host, parts.all(), &text_of_pieces::lengths);
  BOOST_TEST((counts == global_counts{3, 3}));
  double sum = 0;
  for (auto next = parts.begin(); next != parts.end();) {
    auto step = run(next, model, setup, {.global_valid_toks = counts.tokens});
    sum += step.loss(step.output.rows).value();
  }
  // Tokens 1 2 3, then 4 5, then 6.
  const double expected = table_nll(1, 2) + table_nll(2, 3) + table_nll(4, 5);
  BOOST_TEST(std::abs(sum - expected / 3) < 1e-14);
}
