// Memory that a call of training writes, and reads while it does or after it: refused, before
// anything is written.
#define BOOST_TEST_MODULE aliasing
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "seqpack/seqpack.hpp"
#include "support/refused.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

constexpr offset_t columns = 2;

/// A batch with a field of every kind, all of 8-byte elements: a gradient of double can begin at
/// any of them. Its tables are larger than they need be, so that it can also end there.
struct text_of_all_kinds {
  std::vector<int> lengths{3, 3};
  std::vector<std::int64_t> ids = std::vector<std::int64_t>(40, 1);
  std::vector<std::int64_t> starts = std::vector<std::int64_t>(20);
  std::vector<double> masks = std::vector<double>(20, 1);
  std::vector<std::int64_t> offsets{0, 3, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  std::vector<double> samples{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  std::vector<double> previous = std::vector<double>(20, -0.5);
  std::vector<double> gains = std::vector<double>(20, 2);
  std::vector<double> unread = std::vector<double>(20);

  auto fields() const {
    const auto table = [](const auto& values) { return batch_view(values.data(), 2, 3); };
    return field_list(
        token_field(input_ids, left_padded_view(table(ids), starts.data())),
        token_field(token_mask,
                    ragged_view(row_view(masks.data(), 6), offsets.data(), offset_t{2})),
        sequence_field(sample_mask, row_view(samples.data(), 2)),
        token_field(prev_logprobs, table(previous)), token_field(advantages, table(gains)),
        token_field(reference_logprobs, table(unread)));
  }
  friend bool operator==(const text_of_all_kinds&, const text_of_all_kinds&) = default;
};

/// The layout of the text, with arrays that a gradient of double can begin in.
auto layout_of(const text_of_all_kinds& text) {
  return make_layout<std::int64_t>(text.lengths);
}

template <class T>
double* as_doubles(const T* data) {
  static_assert(sizeof(T) == sizeof(double));
  return reinterpret_cast<double*>(const_cast<T*>(data));
}

/// Whether writing 12 numbers would hit both ends of what is read, from inside and from outside.
template <class Refuse>
void at_both_ends(double* data, offset_t count, const Refuse& refuse) {
  refuse(data);
  refuse(data + count - 1);
  refuse(data - (6 * columns - 1));
}

struct fixture {
  text_of_all_kinds text;
  packed_layout<no_context_parallel, std::int64_t> layout = layout_of(text);
  std::vector<double> logits = {0.1, 0.7, -0.3, 0.2, 0, 1, 0.5, -1, 0.25, 0.3, 2, 0};
  self_communicator one;
  matrix_view<double> rows() { return {logits.data(), 6, columns}; }

  template <class Loss>
  auto evaluate(const Loss& loss, loss_pass pass, const matrix_view<double>& gradient) {
    return evaluate_loss(host, layout, one, one, text, loss, rows(), column_range(columns),
                         {.counts = {4, 2}, .pass = pass}, gradient);
  }
  template <class Loss>
  void refuse_gradient(const Loss& loss, double* data, const std::string& whose) {
    const auto text_before = text;
    const auto logits_before = logits;
    for (const loss_pass pass : {loss_pass::fused, loss_pass::per_sequence}) {
      BOOST_CHECK_EXCEPTION(evaluate(loss, pass, {data, 6, columns}), invalid_input,
                            refused("gradient", "in the memory of " + whose, "must not alias"));
    }
    BOOST_TEST((text == text_before));
    BOOST_TEST((logits == logits_before));
  }
};

/// A loss on logits that reads a field.
struct weighted_logit {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::token;
  using metrics = no_metrics;
  using fields = field_tags<advantages_t>;
  auto operator()(const auto& s) const {
    return differentiable(
        s.sum([&](offset_t t) { return s.value(advantages, t) * s.logits(t)[0]; }),
        [s](offset_t t, double* out) { out[0] = s.weight(t) * s.value(advantages, t); });
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_gradient_apart_from_everything_is_right_in_both_passes, fixture) {
  std::vector<double> fused(12), alone(12);
  const clipped_policy_gradient<> loss;
  const double value = evaluate(loss, loss_pass::fused, {fused.data(), 6, columns}).value();
  BOOST_TEST(value == evaluate(loss, loss_pass::per_sequence, {alone.data(), 6, columns}).value());
  BOOST_TEST(fused == alone);
  BOOST_TEST(value < 0);
}

BOOST_FIXTURE_TEST_CASE(a_gradient_in_a_field_of_the_batch, fixture) {
  const auto check = [&](const auto& loss) {
    const auto refuse = [&](const auto& values, offset_t count, const std::string& name) {
      at_both_ends(as_doubles(values.data()), count,
                   [&](double* data) { refuse_gradient(loss, data, name); });
    };
    refuse(text.previous, 6, "prev_logprobs");
    refuse(text.gains, 6, "advantages");
    refuse(text.ids, 6, "input_ids");
    refuse(text.starts, 2, "input_ids bounds");
    refuse(text.masks, 6, "token_mask");
    refuse(text.offsets, 3, "token_mask bounds");
    refuse(text.samples, 2, "sample_mask");
    refuse(text.unread, 6, "reference_logprobs");  // the batch's, though no loss asks for it
  };
  check(clipped_policy_gradient<>{});
  check(weighted_logit{});
}

BOOST_FIXTURE_TEST_CASE(a_gradient_in_the_arrays_of_the_layout, fixture) {
  const auto view = layout.view();
  const std::vector<std::int64_t> before(view.cu, view.cu + 3);
  refuse_gradient(nll{}, as_doubles(view.cu) + 2, "the layout's cu_seqlens");
  // On that side of the array where the other one is not.
  const offset_t first = std::less<const void*>()(view.cu, view.cu_padded) ? 2 : -11;
  refuse_gradient(nll{}, as_doubles(view.cu_padded) + first, "the layout's cu_seqlens_padded");
  BOOST_TEST((before == std::vector<std::int64_t>(view.cu, view.cu + 3)));
}

BOOST_FIXTURE_TEST_CASE(a_gradient_in_place_of_logits_that_a_field_views, fixture) {
  text.previous = logits;
  const matrix_view<double> in_field(text.previous.data(), 6, columns);
  for (const loss_pass pass : {loss_pass::fused, loss_pass::per_sequence}) {
    const auto call = [&](const matrix_view<double>& gradient) {
      return evaluate_loss(host, layout, one, one, text, clipped_policy_gradient<>{}, in_field,
                           column_range(columns), {.counts = {4, 2}, .pass = pass}, gradient);
    };
    BOOST_CHECK_EXCEPTION(
        call(in_field), invalid_input,
        refused("gradient", "in the memory of prev_logprobs", "outputs must not alias"));
    BOOST_TEST((text.previous == logits));
    BOOST_TEST(call({}).value() != 0);  // reading the same is no mistake
  }
}

BOOST_FIXTURE_TEST_CASE(a_gradient_over_exactly_its_own_logits, fixture) {
  std::vector<double> apart(12);
  evaluate(nll{}, loss_pass::fused, {apart.data(), 6, columns});
  const auto before = logits;
  for (const loss_pass pass : {loss_pass::fused, loss_pass::per_sequence}) {
    logits = before;
    evaluate(nll{}, pass, rows());
    BOOST_TEST((logits == apart));
  }
}

// Two tensors may share a buffer, token by token.
BOOST_FIXTURE_TEST_CASE(a_gradient_that_interleaves_with_a_field, fixture) {
  std::vector<double> buffer(18, -0.5);
  struct interleaved : plain_text {
    const double* previous = nullptr;
    auto fields() const {
      const batch_view<const double> table(previous, 2, 3, 1, 9, 3);
      return field_list(token_field(input_ids, batch_view(ids.data(), 2, 3)),
                        token_field(prev_logprobs, table), token_field(advantages, table));
    }
  } batch;
  batch.lengths = {3, 3};
  batch.ids.assign(6, 1);
  batch.previous = buffer.data() + 2;
  const auto call = [&](const matrix_view<double>& gradient) {
    return evaluate_loss(host, layout, one, one, batch, clipped_policy_gradient<>{}, rows(),
                         column_range(columns), {.counts = {4, 2}, .pass = loss_pass::per_sequence},
                         gradient);
  };
  std::vector<double> apart(12);
  const double value = call({apart.data(), 6, columns}).value();
  BOOST_TEST(call({buffer.data(), 6, columns, 3}).value() == value);
  for (std::size_t k = 0; k < 18; ++k) {
    BOOST_TEST(buffer[k] == (k % 3 == 2 ? -0.5 : apart[k / 3 * 2 + k % 3]));
  }
  BOOST_CHECK_EXCEPTION(call({buffer.data() + 1, 6, columns, 3}), invalid_input,
                        refused("gradient", "in the memory of prev_logprobs", "must not alias"));
}

namespace {

/// Gives logits that are somewhere.
struct placed_model {
  static constexpr auto attention = attention_input::packed_parameters;
  static constexpr auto output = output_kind::logits;
  matrix_view<double> rows;
  template <class Input>
  model_output<double> operator()(const Input&) {
    return {rows, column_range(columns)};
  }
};
/// A batch whose memory is another's, so that every copy of it has the same.
struct viewed_text {
  const text_of_all_kinds* of;
  std::vector<int> lengths{3, 3};
  auto fields() const { return of->fields(); }
};

auto step_of(const viewed_text& text, placed_model& model, const forward_options& options) {
  const std::vector<viewed_text> batches{text};
  auto next = batches.begin();
  no_timer timer;
  return forward_step(host, timer, next, model, clipped_policy_gradient<>{},
                      forward_setup(packed{}, &viewed_text::lengths), options);
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_bound_loss_refuses_what_evaluate_loss_does, fixture) {
  placed_model model{rows()};
  for (const loss_pass pass : {loss_pass::fused, loss_pass::per_sequence}) {
    auto step = step_of({&text}, model, {.global_valid_toks = 4, .pass = pass});
    const auto before = text;
    BOOST_CHECK_EXCEPTION(
        step.loss(matrix_view<double>(text.previous.data(), 6, columns)), invalid_input,
        refused("gradient", "in the memory of prev_logprobs", "outputs must not alias"));
    const auto& bounds = step.loss.layout().cu_seqlens_padded();
    auto* const in_layout = const_cast<std::int32_t*>(bounds.data());
    BOOST_CHECK_EXCEPTION(step.loss(matrix_view<float>(reinterpret_cast<float*>(in_layout), 6, 2)),
                          invalid_input,
                          refused("gradient", "in the memory of the layout's cu_seqlens_padded",
                                  "outputs must not alias"));
    BOOST_TEST((text == before));
    BOOST_TEST(step.loss().value() != 0);  // nothing was overwritten
  }
}

BOOST_FIXTURE_TEST_CASE(logits_that_are_scaled_in_the_memory_of_a_field, fixture) {
  text.gains = logits;
  text.gains.resize(20, 2);
  placed_model model{{text.gains.data(), 6, columns}};
  const auto before = text;
  forward_options options{.global_valid_toks = 4, .temperature = 2, .scale_in_place = true};
  BOOST_CHECK_EXCEPTION(step_of({&text}, model, options), invalid_input,
                        refused("logits", "in the memory of advantages", "outputs must not alias"));
  BOOST_TEST((text == before));
  options.scale_in_place = false;
  BOOST_TEST(step_of({&text}, model, options).loss().value() != 0);
}

namespace {

struct next_token_fixture {
  std::vector<int> lengths{3, 2};
  std::vector<offset_t> order{1, 0};
  std::vector<std::int64_t> ids = std::vector<std::int64_t>(20, 1);
  std::vector<std::int64_t> offsets{0, 3, 5};
  std::vector<double> logits = std::vector<double>(40, 1);
  std::vector<double> derivatives = std::vector<double>(40, 1);
  std::vector<double> out = std::vector<double>(40, 77);
  self_communicator one;
  packed_layout<no_context_parallel, std::int64_t> layout = make_layout<std::int64_t>(
      lengths, padding{}, no_context_parallel{}, {.order = slot_order(order)});

  matrix_view<double> rows() { return {logits.data(), 5, columns}; }
  auto ragged_ids() const {
    return ragged_view(row_view(ids.data(), 5), offsets.data(), offset_t{2});
  }
  auto forward(double* to, double* entropy) {
    return next_token_logprobs(
        host, layout, one, one, ragged_ids(), rows(), column_range(columns),
        batch_view<double>(to, 2, 2), {},
        entropy == nullptr ? batch_view<double>{} : batch_view<double>(entropy, 2, 2));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(log_probabilities_in_what_they_are_made_of, next_token_fixture) {
  const auto view = layout.view();
  const auto refuse = [&](double* data, const std::string& whose) {
    const auto ids_before = ids;
    const auto logits_before = logits;
    BOOST_CHECK_EXCEPTION(
        forward(data, nullptr), invalid_input,
        refused("log-probabilities", "in the memory of " + whose, "outputs must not alias"));
    BOOST_CHECK_EXCEPTION(forward(out.data(), data), invalid_input,
                          refused("entropy", "in the memory of " + whose, "must not alias"));
    BOOST_TEST((ids == ids_before));
    BOOST_TEST((logits == logits_before));
    for (const double x : out) BOOST_TEST(x == 77);
  };
  refuse(logits.data() + 9, "logits");
  refuse(as_doubles(ids.data()) + 4, "ids");
  refuse(as_doubles(offsets.data()) + 2, "ids bounds");
  refuse(as_doubles(view.cu), "the layout's cu_seqlens");
  refuse(as_doubles(view.cu_padded) + 2, "the layout's cu_seqlens_padded");
  refuse(as_doubles(view.order), "the layout's order");
  refuse(as_doubles(view.slot_of), "the layout's inverse order");
  BOOST_TEST(layout.view().cu[2] == 5);
  forward(out.data(), out.data() + 4);
  BOOST_TEST(out[0] != 77);
}

BOOST_FIXTURE_TEST_CASE(a_gradient_in_what_the_way_back_reads, next_token_fixture) {
  const auto view = layout.view();
  const auto state = forward(out.data(), out.data() + 4);
  const auto backward = [&](const matrix_view<double>& gradient) {
    next_token_logprobs_backward(host, layout, shard{0}, state, rows(), column_range(columns),
                                 batch_view<const double>(derivatives.data(), 2, 2), gradient);
  };
  const auto refuse = [&](double* data, const std::string& whose) {
    BOOST_CHECK_EXCEPTION(backward({data, 5, columns}), invalid_input,
                          refused("gradient", "in the memory of " + whose, "must not alias"));
  };
  refuse(derivatives.data(), "derivatives");
  refuse(derivatives.data() + 3, "derivatives");
  refuse(logits.data() + 1, "logits");
  refuse(as_doubles(state.labels().data), "labels");
  refuse(state.rows().log_probs.data + 4, "log_probs");
  refuse(state.rows().max.data + 4, "max");
  refuse(state.rows().sum.data + 4, "sum");
  refuse(as_doubles(view.cu), "the layout's cu_seqlens");
  refuse(as_doubles(view.cu_padded) + 2, "the layout's cu_seqlens_padded");
  refuse(as_doubles(view.order), "the layout's order");
  refuse(as_doubles(view.slot_of), "the layout's inverse order");
  for (const double x : derivatives) BOOST_TEST(x == 1);
  for (const double x : logits) BOOST_TEST(x == 1);
  backward(rows());
  BOOST_TEST(logits[0] != 1);
}

BOOST_AUTO_TEST_CASE(a_gradient_in_what_the_way_back_of_labels_reads) {
  const std::vector<double> logits(8, 1);
  std::vector<std::int64_t> labels(8, 1);
  std::vector<double> derivatives(8, 1);
  self_communicator one;
  const log_prob_state<double> state(host, 4, true);
  const matrix_view rows(logits.data(), 4, columns);
  const row_view<const std::int64_t> label_rows(labels.data(), 4);
  label_log_probs(host, one, rows, column_range(columns), label_rows, state.rows());
  const auto refuse = [&](double* data, const std::string& whose) {
    BOOST_CHECK_EXCEPTION(
        label_log_probs_backward(host, rows, column_range(columns), label_rows, state.rows(),
                                 row_view<const double>(derivatives.data(), 4),
                                 matrix_view<double>(data, 4, columns)),
        invalid_input, refused("gradient", "in the memory of " + whose, "outputs must not alias"));
  };
  refuse(derivatives.data(), "derivatives");
  refuse(derivatives.data() + 3, "derivatives");
  refuse(derivatives.data() - 7, "derivatives");
  refuse(as_doubles(labels.data()) + 3, "labels");
  refuse(as_doubles(logits.data()) + 7, "logits");
  refuse(state.rows().entropy.data + 3, "entropy");
  BOOST_TEST((derivatives == std::vector<double>(8, 1)));
}

BOOST_AUTO_TEST_CASE(documents_and_masks_over_what_they_are_made_of) {
  const auto layout = unpacked_layout<std::int64_t>(std::vector{4, 3}, 4);
  const auto view = layout.view();
  std::vector<std::int64_t> ids(8, 1);
  std::vector<std::int64_t> starts(16, 5);
  const batch_view<const std::int64_t> table(ids.data(), 2, 4);
  const auto writable = [](const std::int64_t* p) { return const_cast<std::int64_t*>(p); };
  const auto refuse_starts = [&](std::int64_t* data, const std::string& whose) {
    BOOST_CHECK_EXCEPTION(
        document_starts(host, layout, table, 9, row_view<std::int64_t>(data, 2, 4)), invalid_input,
        refused("document starts", "in the memory of " + whose, "outputs must not alias"));
  };
  refuse_starts(ids.data() + 7, "ids");
  refuse_starts(writable(view.cu) + 2, "the layout's cu_seqlens");
  refuse_starts(writable(view.cu_padded), "the layout's cu_seqlens_padded");
  BOOST_TEST((ids == std::vector<std::int64_t>(8, 1)));

  const row_view<std::int64_t> rows(starts.data(), 2, 4);
  const auto refuse_mask = [&](const void* data, const std::string& whose) {
    auto* const mask = static_cast<bool*>(const_cast<void*>(data));
    BOOST_CHECK_EXCEPTION(causal_mask(host, layout, shard{0}, rows, row_view<bool>(mask, 8, 4)),
                          invalid_input,
                          refused("mask", "in the memory of " + whose, "outputs must not alias"));
  };
  refuse_mask(starts.data() + 7, "document starts");
  refuse_mask(view.cu, "the layout's cu_seqlens");
  refuse_mask(view.cu_padded + 2, "the layout's cu_seqlens_padded");
  BOOST_TEST((starts == std::vector<std::int64_t>(16, 5)));

  const row_view<std::int64_t> positions(starts.data() + 7, 8);
  BOOST_CHECK_EXCEPTION(per_token(host, layout, shard{0}, document_position_ids(rows, positions)),
                        invalid_input,
                        refused("array 0's elements", "in the memory of array 0's document starts",
                                "must not alias"));
  BOOST_TEST((starts == std::vector<std::int64_t>(16, 5)));
}
