// The forward step on one rank: what the model is given, what comes back, and what is refused when.
#define BOOST_TEST_MODULE forward_step
#include "seqpack/step/forward_step.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "seqpack/loss/clipped_policy_gradient.hpp"
#include "seqpack/loss/dpo.hpp"
#include "seqpack/loss/nll.hpp"
#include "support/refused.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using numbers = std::vector<std::int64_t>;
using boost::test_tools::per_element;

masked_text example() {
  return {{3, 2}, 4, {1, 2, 3, 9, 4, 5, 9, 9}, {1, 1, 1, 1, 1, 1, 1, 1}, {1, 1}};
}
constexpr forward_options three_tokens{.global_valid_toks = 3, .global_valid_seqs = 2};

/// -log of a softmax over the 8 columns of table_logit, by its definition.
double table_nll(std::int64_t id, std::int64_t target, double temperature = 1) {
  double sum = 0;
  for (offset_t v = 0; v < 8; ++v) sum += std::exp(table_logit(id, v) / temperature);
  return std::log(sum) - table_logit(id, target) / temperature;
}
const double example_nll = (table_nll(1, 2) + table_nll(2, 3) + table_nll(4, 5)) / 3;

using by_parameters = table_model<>;
using by_mask = table_model<attention_input::mask>;

template <class Model, class Setup, class Loss = nll>
auto run(Model& model, const Setup& setup, const forward_options& options = three_tokens,
         const masked_text& text = example(), const Loss& loss = {}) {
  const std::vector<masked_text> batches{text};
  auto next = batches.begin();
  no_timer timer;
  return forward_step(host, timer, next, model, loss, setup, options);
}
auto packed_setup() {
  return forward_setup(packed(padding{each_multiple_of<4>{}}), &masked_text::lengths);
}
auto unpacked_setup(const document_options& documents = {}) {
  return forward_setup(not_packed(documents), &masked_text::lengths);
}

using packed_input = packed_model_input<layout_view<no_context_parallel>, int>;
using unpacked_input = unpacked_model_input<layout_view<no_context_parallel>, int>;
struct no_output_kind {
  static constexpr auto attention = attention_input::mask;
  model_output<float> operator()(const auto&) { return {}; }
};
struct returns_rows {
  static constexpr auto attention = attention_input::mask;
  static constexpr auto output = output_kind::logits;
  matrix_view<float> operator()(const auto&) { return {}; }
};
struct takes_nothing {
  static constexpr auto attention = attention_input::mask;
  static constexpr auto output = output_kind::logits;
  model_output<float> operator()() { return {}; }
};
static_assert(model<by_parameters, packed_input> && model<by_mask, unpacked_input>);
static_assert(!model<no_output_kind, packed_input> && !model<returns_rows, packed_input> &&
              !model<takes_nothing, packed_input> && !model<int, packed_input>);
static_assert(packing_policy<packed<>> && packing_policy<not_packed<>> && !packing_policy<int>);

/// Squared distance of a value from a target of its own, per token.
struct squared_error {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::token;
  using metrics = no_metrics;
  SEQPACK_HD auto operator()(const auto& s) const {
    const auto off = [s](offset_t t) { return s.logits(t)[0] - s.value(input_ids, t); };
    return differentiable(s.sum([&](offset_t t) { return off(t) * off(t); }),
                          [s, off](offset_t t, double* out) { out[0] = 2 * s.weight(t) * off(t); });
  }
};
/// nll again, from whole rows.
struct nll_of_logits {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::token;
  using metrics = no_metrics;
  SEQPACK_HD auto operator()(const auto& s) const {
    const auto log_sum = [s](offset_t t) {
      double sum = 0;
      for (offset_t v = 0; v < s.columns(); ++v) sum += std::exp(s.logits(t)[v]);
      return std::log(sum);
    };
    const auto target = [s](offset_t t) { return static_cast<offset_t>(s.value(input_ids, t)); };
    return differentiable(s.sum([&](offset_t t) { return log_sum(t) - s.logits(t)[target(t)]; }),
                          [s, log_sum, target](offset_t t, double* out) {
                            for (offset_t v = 0; v < s.columns(); ++v) {
                              out[v] = s.weight(t) * (std::exp(s.logits(t)[v] - log_sum(t)) -
                                                      (v == target(t) ? 1 : 0));
                            }
                          });
  }
};

/// The output at the last token of each sequence, squared; what it writes, it writes only there.
struct reward_squared {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::sequence;
  static constexpr bool last_row = true;
  using metrics = no_metrics;
  SEQPACK_HD auto operator()(const auto& s) const {
    if (s.length() == 0) return result(s, 0);
    return result(s, s.logits(s.length())[0]);
  }

 private:
  static auto result(const auto& s, double reward) {
    return differentiable(reward * reward, [s, reward](offset_t t, double* out) {
      if (t == s.length()) out[0] = 2 * reward;
    });
  }
};

/// Tells what was called, and may fail.
struct recording_timer {
  std::vector<std::string> calls;
  void start(step_phase phase) { calls.push_back(std::string("+") + phase_name(phase)); }
  void stop(step_phase phase) noexcept { calls.push_back(std::string("-") + phase_name(phase)); }
};
struct failing_model : by_parameters {
  template <class Input>
  model_output<double> operator()(const Input&) {
    throw std::runtime_error("the model fails");
  }
};
/// Gives what it is told to.
struct wrong_model : by_parameters {
  matrix_view<double> rows;
  column_range range;
  template <class Input>
  model_output<double> operator()(const Input&) {
    return {rows, range};
  }
};

struct previous_t {
  static constexpr std::string_view name = "previous";
};
inline constexpr previous_t previous{};
struct text_with_features : masked_text {
  std::vector<float> features;  ///< [B, S, 2]
  auto fields() const {
    return field_list(
        token_field(input_ids, table(ids)),
        token_field(previous, batch_view<const float>(features.data(), rows(), width, 2)));
  }
};
struct feature_model : by_parameters {
  using fields = field_tags<previous_t>;
  std::vector<float> seen;
  template <class Input>
  model_output<double> operator()(const Input& input) {
    const auto& rows = packed_rows(previous, input);
    BOOST_TEST(rows.payload == 2);
    seen.assign(rows.data, rows.data + rows.rows * rows.payload);
    return by_parameters::operator()(input);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(packed_rows_reach_the_model) {
  by_parameters model;
  auto step = run(model, packed_setup());
  BOOST_TEST(model.seen_ids == (numbers{1, 2, 3, 0, 4, 5, 0, 0}), per_element());
  BOOST_TEST(model.seen_positions == (numbers{0, 1, 2, 3, 0, 1, 2, 3}), per_element());
  const auto& input = step.inputs.input();
  BOOST_TEST(input.params.total_tokens == 8);
  BOOST_TEST(input.params.max_seqlen_q == 4);
  const std::vector<std::int32_t> bounds{0, 4, 8};
  BOOST_TEST(input.params.cu_seqlens_q == bounds, per_element());
  BOOST_TEST(std::abs(step.loss().value() - example_nll) < 1e-14);
}

BOOST_AUTO_TEST_CASE(real_bounds_beside_the_padded_ones) {
  by_parameters model;
  auto step = run(model, forward_setup(packed_with_real_bounds(padding{each_multiple_of<4>{}}),
                                       &masked_text::lengths));
  const std::vector<std::int32_t> real{0, 3, 5};
  const std::vector<std::int32_t> padded{0, 4, 8};
  BOOST_TEST(step.inputs.input().params.cu_seqlens_q == real, per_element());
  BOOST_TEST(step.inputs.input().params.cu_seqlens_kv_padded == padded, per_element());
  BOOST_TEST(std::abs(step.loss().value() - example_nll) < 1e-14);
}

BOOST_AUTO_TEST_CASE(without_packing_a_model_gets_a_mask) {
  by_mask model;
  auto step = run(model, unpacked_setup());
  BOOST_TEST(model.seen_ids == (numbers{1, 2, 3, 0, 4, 5, 0, 0}), per_element());
  BOOST_TEST(model.seen_positions == (numbers{0, 1, 2, 3, 0, 1, 2, 3}), per_element());
  const auto& input = step.inputs.input();
  BOOST_TEST(input.batch == 2);
  BOOST_TEST(input.width == 4);
  BOOST_TEST(input.attention_mask.rows == 4);
  for (offset_t q = 0; q < 4; ++q) {
    for (offset_t key = 0; key < 4; ++key) {
      BOOST_TEST(input.attention_mask.at(q)[key] == (key > q));
    }
  }
  BOOST_TEST(std::abs(step.loss().value() - example_nll) < 1e-14);
}

BOOST_AUTO_TEST_CASE(documents_in_one_row) {
  by_mask model;
  masked_text text = example();
  text.ids = {1, 7, 3, 9, 4, 5, 9, 9};
  const document_options apart{.end_of_document = 7,
                               .reset_position_ids = true,
                               .reset_attention_mask = true,
                               .mask_end_of_document = true};
  auto step =
      run(model, unpacked_setup(apart), {.global_valid_toks = 2, .global_valid_seqs = 2}, text);
  BOOST_TEST(model.seen_positions == (numbers{0, 1, 0, 1, 0, 1, 2, 3}), per_element());
  const auto& mask = step.inputs.input().attention_mask;
  BOOST_TEST(mask.rows == 8);
  BOOST_TEST(mask.at(2)[1]);  // the second document does not see the first
  BOOST_TEST(!mask.at(2)[2]);
  BOOST_TEST(!mask.at(4 + 2)[1]);  // the second row has one document
  // The 3 behind the end is no target.
  BOOST_TEST(std::abs(step.loss().value() - (table_nll(1, 7) + table_nll(4, 5)) / 2) < 1e-14);
}

BOOST_AUTO_TEST_CASE(both_passes_and_the_loss_of_rows_agree) {
  by_parameters model;
  auto fused = run(model, packed_setup());
  std::vector<double> gradient(fused.output.rows.rows * 8);
  const matrix_view<double> rows(gradient.data(), fused.output.rows.rows, 8);
  const double value = fused.loss(rows).value();
  auto options = three_tokens;
  options.pass = loss_pass::per_sequence;
  auto one_by_one = run(model, packed_setup(), options);
  std::vector<double> second(gradient.size(), 7);
  const matrix_view<double> second_rows(second.data(), rows.rows, 8);
  BOOST_TEST(one_by_one.loss(second_rows).value() == value);
  BOOST_TEST((second == gradient));

  auto of_rows = run(model, packed_setup(), three_tokens, example(), nll_of_logits{});
  std::vector<double> third(gradient.size(), 7);
  const double third_value = of_rows.loss(matrix_view<double>(third.data(), rows.rows, 8)).value();
  BOOST_TEST(std::abs(third_value - value) < 1e-14);
  for (std::size_t k = 0; k < third.size(); ++k)
    BOOST_TEST(std::abs(third[k] - gradient[k]) < 1e-14);
}

BOOST_AUTO_TEST_CASE(a_temperature_is_taken_once) {
  auto options = three_tokens;
  options.temperature = 2;
  by_parameters model;
  const double expected = (table_nll(1, 2, 2) + table_nll(2, 3, 2) + table_nll(4, 5, 2)) / 3;
  auto step = run(model, packed_setup(), options);
  BOOST_TEST(std::abs(step.loss().value() - expected) < 1e-14);
  BOOST_TEST(step.output.rows.at(0)[1] == table_logit(1, 1));

  options.scale_in_place = true;
  auto scaled = run(model, packed_setup(), options);
  BOOST_TEST(scaled.output.rows.at(0)[1] == table_logit(1, 1) / 2);
  BOOST_TEST(std::abs(scaled.loss().value() - expected) < 1e-14);
}

BOOST_AUTO_TEST_CASE(value_heads_are_not_scaled) {
  using value_model =
      table_model<attention_input::packed_parameters, double, output_kind::value_head>;
  for (const bool in_place : {false, true}) {
    value_model model{.columns = 1};
    auto options = three_tokens;
    options.temperature = 2;
    options.scale_in_place = in_place;
    auto step = run(model, packed_setup(), options, example(), squared_error{});
    std::vector<double> gradient(8, 9);
    const auto result = step.loss(matrix_view<double>(gradient.data(), 8, 1));
    const auto off = [](std::int64_t id, double target) { return table_logit(id, 0) - target; };
    BOOST_TEST(step.output.rows.at(0)[0] == table_logit(1, 0));
    BOOST_TEST(std::abs(result.value() -
                        (off(1, 2) * off(1, 2) + off(2, 3) * off(2, 3) + off(4, 5) * off(4, 5)) /
                            3) < 1e-14);
    const std::vector<double> expected{
        2 * off(1, 2) / 3, 2 * off(2, 3) / 3, 0, 0, 2 * off(4, 5) / 3, 0, 0, 0};
    BOOST_TEST(gradient == expected, boost::test_tools::tolerance(1e-14) << per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_gradient_in_place_ends_the_logits) {
  by_parameters model;
  auto step = run(model, packed_setup());
  std::vector<double> apart(64);
  const double value = step.loss(matrix_view<double>(apart.data(), 8, 8)).value();
  BOOST_TEST(step.loss().value() == value);  // as often as one likes
  BOOST_TEST(step.loss(step.output.rows).value() == value);
  BOOST_TEST((model.logits == apart));
  BOOST_CHECK_EXCEPTION(step.loss(), invalid_input,
                        refused("logits", "overwritten by the gradient", "called once"));
}

BOOST_AUTO_TEST_CASE(the_iterator_moves_on_and_the_batch_is_kept) {
  std::vector<masked_text> batches{example(), example()};
  batches[1].ids[1] = 6;
  auto next = batches.begin();
  by_parameters model;
  no_timer timer;
  auto first = forward_step(host, timer, next, model, nll{}, packed_setup(), three_tokens);
  BOOST_TEST((next == batches.begin() + 1));
  const double value = first.loss().value();
  by_parameters other;
  auto second = forward_step(host, timer, next, other, nll{}, packed_setup(), three_tokens);
  BOOST_TEST((next == batches.end()));
  batches.clear();
  BOOST_TEST(first.loss().value() == value);
  BOOST_TEST(second.loss.batch_data().ids[1] == 6);
  BOOST_TEST(second.loss.layout().total_tokens() == 8);
}

BOOST_AUTO_TEST_CASE(batches_may_come_from_a_generator) {
  struct generator {
    using value_type = masked_text;
    using difference_type = std::ptrdiff_t;
    int* made;
    masked_text operator*() const {
      ++*made;
      return example();
    }
    generator& operator++() { return *this; }
    void operator++(int) {}
  };
  static_assert(std::input_iterator<generator>);
  int made = 0;
  generator next{&made};
  by_parameters model;
  no_timer timer;
  auto step = forward_step(host, timer, next, model, nll{}, packed_setup(), three_tokens);
  BOOST_TEST(made == 1);
  BOOST_TEST(std::abs(step.loss().value() - example_nll) < 1e-14);
}

BOOST_AUTO_TEST_CASE(fields_that_a_model_asks_for_are_packed_with_the_ids) {
  text_with_features text;
  static_cast<masked_text&>(text) = example();
  for (int k = 0; k < 16; ++k) text.features.push_back(static_cast<float>(k + 1));
  const std::vector<text_with_features> batches{text};
  auto next = batches.begin();
  feature_model model;
  no_timer timer;
  auto step = forward_step(
      host, timer, next, model, nll{},
      forward_setup(packed(padding{each_multiple_of<4>{}}), &text_with_features::lengths),
      three_tokens);
  const std::vector<float> expected{1, 2, 3, 4, 5, 6, 0, 0, 9, 10, 11, 12, 0, 0, 0, 0};
  BOOST_TEST(model.seen == expected, per_element());
  BOOST_TEST(std::abs(step.loss().value() - example_nll) < 1e-14);
}

BOOST_AUTO_TEST_CASE(a_timer_hears_of_both_phases) {
  const std::vector<masked_text> batches{example(), example()};
  auto next = batches.begin();
  recording_timer timer;
  by_parameters model;
  forward_step(host, timer, next, model, nll{}, packed_setup(), three_tokens);
  const std::vector<std::string> expected{"+batch-data", "-batch-data", "+forward", "-forward"};
  BOOST_TEST(timer.calls == expected, per_element());

  timer.calls.clear();
  failing_model fails;
  BOOST_CHECK_THROW(forward_step(host, timer, next, fails, nll{}, packed_setup(), three_tokens),
                    std::runtime_error);
  BOOST_TEST(timer.calls == expected, per_element());
}

BOOST_AUTO_TEST_CASE(nothing_counts) {
  by_parameters model;
  masked_text text = example();
  text.token_masks.assign(8, 0);
  auto step = run(model, packed_setup(), {.global_valid_toks = 0}, text);
  BOOST_TEST(step.loss(step.output.rows).value() == 0);
  for (const double g : model.logits) BOOST_TEST(g == 0);

  // Counts of 0 beside masks that are not: no share, and nothing that is not a number either.
  auto none = run(model, packed_setup(), {.global_valid_toks = 0});
  model.logits[0] = std::numeric_limits<double>::quiet_NaN();
  BOOST_TEST(none.loss(none.output.rows).value() == 0);
  for (const double g : model.logits) BOOST_TEST(g == 0);
}

BOOST_AUTO_TEST_CASE(batches_without_tokens) {
  by_parameters model;
  auto nobody = run(model, packed_setup(), three_tokens, {});
  BOOST_TEST(nobody.loss().value() == 0);
  auto empty =
      run(model, packed_setup(), three_tokens, {{0, 1}, 2, {0, 0, 1, 0}, {1, 1, 1, 1}, {1, 1}});
  BOOST_TEST(empty.loss(empty.output.rows).value() == 0);
  by_mask unpacked;
  BOOST_TEST(run(unpacked, unpacked_setup(), three_tokens, {}).loss().value() == 0);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_before_the_model_is_called) {
  failing_model model;  // would throw something else
  const auto refuse = [&](const masked_text& text, const forward_options& options,
                          const char* entry, const char* value, const char* limit) {
    BOOST_CHECK_EXCEPTION(run(model, packed_setup(), options, text), invalid_input,
                          refused(entry, value, limit));
  };
  masked_text text = example();
  text.lengths[0] = 5;
  refuse(text, three_tokens, "lengths[0]", "5", "4");
  text = example();
  text.sample_masks.push_back(1);
  refuse(text, three_tokens, "sample_mask", "3", "it must be 2");
  for (const double temperature : {0.0, -2.0, std::nan("")}) {
    auto options = three_tokens;
    options.temperature = temperature;
    refuse(example(), options, "temperature", std::to_string(temperature).c_str(), "above 0");
  }
  refuse(example(), {.global_valid_toks = -1}, "global_valid_toks", "-1.000000", "at least 0");
  const forward_setup two_ranks(packed(padding{each_multiple_of<4>{}}, context_parallel<2>{}),
                                &masked_text::lengths);
  BOOST_CHECK_EXCEPTION(run(model, two_ranks), invalid_input,
                        refused("context-parallel size of the packing", "2", "it must be 1"));
}

BOOST_AUTO_TEST_CASE(an_output_that_does_not_fit_is_refused) {
  wrong_model model;
  std::vector<double> logits(80);
  const auto refuse = [&](const matrix_view<double>& rows, const column_range& range,
                          const char* entry, const char* value, const char* limit) {
    model.rows = rows;
    model.range = range;
    BOOST_CHECK_EXCEPTION(run(model, packed_setup()), invalid_input, refused(entry, value, limit));
  };
  refuse({logits.data(), 7, 8}, column_range(8), "logits rows", "7", "it must be 8");
  refuse({logits.data(), 8, 8}, column_range(9), "logits columns", "8", "it must be 9");
  refuse({nullptr, 8, 8}, column_range(8), "logits", "null", "64 elements");
  refuse({logits.data(), 8, 8}, {0, 8, 9}, "vocabulary columns", "[0, 8)", "must hold all 9");
  refuse({logits.data(), 8, 5}, column_range(5), "input_ids[1][1]", "5", "from 0 to 4");
}

BOOST_AUTO_TEST_CASE(a_gradient_that_does_not_fit_is_refused) {
  by_parameters model;
  auto step = run(model, packed_setup());
  std::vector<double> gradient(64);
  const auto refuse = [&](const matrix_view<double>& rows, const char* entry, const char* value,
                          const char* limit) {
    BOOST_CHECK_EXCEPTION(step.loss(rows), invalid_input, refused(entry, value, limit));
  };
  refuse({gradient.data(), 7, 8}, "gradient rows", "7", "it must be 8");
  refuse({gradient.data(), 8, 7}, "gradient columns", "7", "it must be 8");
  refuse({nullptr, 8, 8}, "gradient", "null", "64 elements");
  refuse({model.logits.data() + 1, 7, 8}, "gradient rows", "7", "it must be 8");
  BOOST_TEST(std::abs(step.loss().value() - example_nll) < 1e-14);
}

BOOST_AUTO_TEST_CASE(the_gradient_is_that_of_the_model_s_own_logits) {
  for (const bool of_rows : {false, true}) {
    std::vector<double> gradients[2];
    for (const bool in_place : {false, true}) {
      auto options = three_tokens;
      options.temperature = 4;
      options.scale_in_place = in_place;
      by_parameters model;
      std::vector<double>& gradient = gradients[in_place];
      gradient.resize(64);
      const matrix_view<double> rows(gradient.data(), 8, 8);
      if (of_rows) {
        auto step = run(model, packed_setup(), options, example(), nll_of_logits{});
        step.loss(rows);
      } else {
        auto step = run(model, packed_setup(), options);
        step.loss(rows);
      }
    }
    for (std::size_t k = 0; k < 64; ++k)
      BOOST_TEST(std::abs(gradients[0][k] - gradients[1][k]) < 1e-14);
    BOOST_TEST(gradients[0][0] != 0);
  }
}

BOOST_AUTO_TEST_CASE(the_output_at_the_last_token_is_for_who_asks_for_it) {
  table_model<attention_input::packed_parameters, double, output_kind::value_head> model{.columns =
                                                                                             1};
  masked_text text = example();
  text.lengths = {3, 0};
  auto step = run(model, packed_setup(), {.global_valid_seqs = 2}, text, reward_squared{});
  std::vector<double> gradient(4, 9);
  const double reward = table_logit(3, 0);
  BOOST_TEST(step.loss(matrix_view<double>(gradient.data(), 4, 1)).value() == reward * reward / 2);
  const std::vector<double> expected{0, 0, reward, 0};
  BOOST_TEST(gradient == expected, per_element());
}

BOOST_AUTO_TEST_CASE(an_overwritten_loss_is_so_for_all_copies) {
  by_parameters model;
  auto step = run(model, packed_setup());
  auto copy = step.loss;
  step.loss(step.output.rows);
  BOOST_CHECK_EXCEPTION(copy(), invalid_input,
                        refused("logits", "overwritten by the gradient", "called once"));
}

BOOST_AUTO_TEST_CASE(no_rows_of_some_width_without_packing) {
  by_mask model;
  masked_text text;
  text.width = 5;
  const document_options apart{.end_of_document = 7, .reset_attention_mask = true};
  BOOST_TEST(run(model, unpacked_setup(), three_tokens, text).loss().value() == 0);
  BOOST_TEST(run(model, unpacked_setup(apart), three_tokens, text).loss().value() == 0);
}

namespace {

/// The same logits whatever the ids are.
struct constant_model : by_parameters {
  template <class Input>
  model_output<double> operator()(const Input& input) {
    logits.assign(static_cast<std::size_t>(input.ids.rows * 8), 0.5);
    return {matrix_view<double>(logits.data(), input.ids.rows, 8), column_range(8)};
  }
};
struct read_only_model : by_parameters {
  template <class Input>
  model_output<const double> operator()(const Input& input) {
    const auto made = by_parameters::operator()(input);
    return {made.rows, made.columns};
  }
};
struct half_a_head
    : table_model<attention_input::packed_parameters, double, output_kind::value_head> {
  template <class Input>
  model_output<double> operator()(const Input& input) {
    logits.assign(static_cast<std::size_t>(input.ids.rows), 3);
    return {matrix_view<double>(logits.data(), input.ids.rows, 1), column_range(1, 2, 2)};
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_id_that_looks_like_no_label_is_a_target_still) {
  constant_model model;
  masked_text text = example();
  text.ids[1] = ignored_label;
  BOOST_CHECK_EXCEPTION(run(model, packed_setup(), three_tokens, text), invalid_input,
                        refused("input_ids[0][1]", "-100", "from 0 to 7"));
  text.token_masks[1] = 0;
  BOOST_TEST(run(model, packed_setup(), three_tokens, text).loss().value() > 0);
}

BOOST_AUTO_TEST_CASE(logits_that_cannot_be_written) {
  read_only_model model;
  auto step = run(model, packed_setup());
  BOOST_TEST(std::abs(step.loss().value() - example_nll) < 1e-14);
  std::vector<double> gradient(64);
  BOOST_TEST(step.loss(matrix_view<double>(gradient.data(), 8, 8)).value() > 0);
  auto options = three_tokens;
  options.scale_in_place = true;
  BOOST_CHECK_EXCEPTION(run(model, packed_setup(), options), invalid_input,
                        refused("scale_in_place", "set", "cannot be written"));
}

BOOST_AUTO_TEST_CASE(all_columns_of_a_value_head) {
  half_a_head model;
  BOOST_CHECK_EXCEPTION(run(model, packed_setup(), three_tokens, example(), squared_error{}),
                        invalid_input, refused("vocabulary columns", "[1, 2)", "must hold all 2"));
}

BOOST_AUTO_TEST_CASE(temperatures_without_a_reciprocal) {
  by_parameters model;
  auto options = three_tokens;
  options.temperature = 1e-310;
  BOOST_CHECK_EXCEPTION(run(model, packed_setup(), options), invalid_input,
                        refused("temperature", "1e-310", "reciprocal"));
  table_model<attention_input::packed_parameters, float> in_float;
  options.temperature = 1e-39;
  BOOST_CHECK_EXCEPTION(run(in_float, packed_setup(), options), invalid_input,
                        refused("temperature", "1e-39", "reciprocal"));
}

BOOST_AUTO_TEST_CASE(bounds_of_64_bits) {
  by_parameters model;
  const packed<padding<each_multiple_of<4>>, no_context_parallel, attention_bounds::padded,
               std::int64_t>
      wide(padding{each_multiple_of<4>{}});
  auto step = run(model, forward_setup(wide, &masked_text::lengths));
  static_assert(std::same_as<decltype(step.inputs.input().params.cu_seqlens_q),
                             std::span<const std::int64_t>>);
  BOOST_TEST(std::abs(step.loss().value() - example_nll) < 1e-14);
  by_mask unpacked;
  auto other = run(unpacked, forward_setup(not_packed<no_context_parallel, std::int64_t>{},
                                           &masked_text::lengths));
  BOOST_TEST(std::abs(other.loss().value() - example_nll) < 1e-14);
}

BOOST_AUTO_TEST_CASE(counts_must_be_given_where_they_are_needed) {
  by_parameters model;
  BOOST_CHECK_EXCEPTION(run(model, packed_setup(), {.global_valid_seqs = 2}), invalid_input,
                        refused("global_valid_toks", "not given", "divided by it"));
  table_model<attention_input::packed_parameters, double, output_kind::value_head> values{.columns =
                                                                                              1};
  BOOST_CHECK_EXCEPTION(
      run(values, packed_setup(), {.global_valid_toks = 3}, example(), reward_squared{}),
      invalid_input, refused("global_valid_seqs", "not given", "divided by it"));
  // Pairs are counted in sequences, and a metric per token needs tokens, whatever the loss is per.
  static_assert(detail::needs_sequences<dpo<>> && !detail::needs_tokens<dpo<>>);
  static_assert(detail::needs_tokens<clipped_policy_gradient<loss_level::sequence>>);
  static_assert(detail::needs_tokens<nll> && !detail::needs_sequences<nll>);
}

BOOST_AUTO_TEST_CASE(an_iterator_that_fails_moves_on) {
  struct generator {
    using value_type = masked_text;
    using difference_type = std::ptrdiff_t;
    int position = 0;
    masked_text operator*() const {
      if (position == 0) throw std::runtime_error("unreadable");
      return example();
    }
    generator& operator++() {
      ++position;
      return *this;
    }
    void operator++(int) { ++position; }
  } next;
  by_parameters model;
  BOOST_CHECK_THROW(
      forward_step(host, no_timer{}, next, model, nll{}, packed_setup(), three_tokens),
      std::runtime_error);
  BOOST_TEST(next.position == 1);
  auto step = forward_step(host, no_timer{}, next, model, nll{}, packed_setup(), three_tokens);
  BOOST_TEST(std::abs(step.loss().value() - example_nll) < 1e-14);
}
