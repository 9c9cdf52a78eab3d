// Models, losses and batches that do not go together.
#include <vector>

#include "seqpack/seqpack.hpp"

using namespace seqpack;

struct text {
  std::vector<int> lengths;
  std::vector<int> ids;
  auto fields() const { return field_list(token_field(input_ids, batch_view(ids.data(), 1, 4))); }
};
struct text_in_order : text {
  std::vector<offset_t> slots;
  const std::vector<offset_t>& order() const { return slots; }
};
struct text_of_a_copied_order : text_in_order {
  std::vector<offset_t> order() const { return slots; }
};
struct ragged_text {
  std::vector<int> lengths;
  std::vector<int> ids;
  std::vector<int> offsets;
  auto fields() const {
    return field_list(
        token_field(input_ids, ragged_view(row_view<const int>(ids), offsets.data(), offset_t{1})));
  }
};

template <attention_input Attention, output_kind Output = output_kind::logits,
          class Fields = field_tags<>>
struct some_model {
  static constexpr auto attention = Attention;
  static constexpr auto output = Output;
  using fields = Fields;
  template <class Input>
  model_output<float> operator()(const Input&) {
    return {};
  }
};
using by_parameters = some_model<attention_input::packed_parameters>;
using by_mask = some_model<attention_input::mask>;
struct without_attention {
  static constexpr auto output = output_kind::logits;
  model_output<float> operator()(const auto&) { return {}; }
};
struct without_output {
  static constexpr auto attention = attention_input::packed_parameters;
  model_output<float> operator()(const auto&) { return {}; }
};

template <class Batch, class Model, class Loss, class Packing>
void step(Model model, const Loss& loss, const Packing& packing) {
  const std::vector<Batch> batches(1);
  auto next = batches.begin();
  no_timer timer;
  auto result =
      forward_step(host, timer, next, model, loss, forward_setup(packing, &Batch::lengths));
  result.loss(result.output.rows).value();
}

/// All that can be done with a loss.
template <class Loss>
void use(const Loss& loss) {
  step<text>(by_parameters{}, loss, packed{});
  const text one;
  self_communicator alone;
  std::vector<float> logits(4);
  const auto result = evaluate_loss(host, make_layout(one.lengths), alone, alone, one, loss,
                                    matrix_view(logits.data(), 1, 4), column_range(4), {});
  result.value();
  result.metrics();
}

// What losses are made of, to be left out one at a time.
struct has_input {
  static constexpr auto input = loss_input::next_token_logprobs;
};
struct has_level {
  static constexpr auto level = loss_level::token;
};
struct has_metrics {
  using metrics = no_metrics;
};
struct returns_a_result {
  auto operator()(const auto& s) const {
    return differentiable(s.tokens(), [](offset_t) { return 0.0; });
  }
};
template <class... Parts>
struct loss_of : Parts... {};

struct owns_memory : nll {
  std::vector<double> table;
};
struct of_nobody : nll {
  static constexpr std::size_t sequences = 0;
};
struct of_a_field : nll {
  using fields = advantages_t;
};
struct of_pairs : nll {
  static constexpr std::size_t sequences = 2;
};
struct value_alone : nll {
  auto operator()(const auto& s) const { return s.tokens(); }
};
struct one_derivative_of_two : of_pairs {
  auto operator()(const auto& a, const auto&) const {
    return differentiable(a.tokens(), [](offset_t) { return 0.0; });
  }
};
struct reads_what_it_does_not_name : nll {
  auto operator()(const auto& s) const {
    const auto f = [s](offset_t t) { return s.value(advantages, t); };
    return differentiable(s.sum(f), f);
  }
};
struct names_its_return_type : nll {
  template <class Sequence>
  differentiable_t<double (*)(offset_t)> operator()(const Sequence& s) const {
    return differentiable(s.value(sample_mask), +[](offset_t) { return 0.0; });
  }
};
struct records_what_it_does_not_list : nll {
  auto operator()(const auto& s) const {
    s.record(accuracy{}, 1);
    return nll::operator()(s);
  }
};
struct asks_each_token_for_a_mask : nll {
  using fields = field_tags<sample_mask_t>;
  auto operator()(const auto& s) const {
    return differentiable(s.value(sample_mask, 1), [](offset_t) { return 0.0; });
  }
};
struct masked_text : text {
  std::vector<float> mask;
  auto fields() const {
    return field_list(token_field(input_ids, batch_view(ids.data(), 1, 4)),
                      sequence_field(sample_mask, mask));
  }
};

struct of_values : nll {
  static constexpr auto input = loss_input::logits;
  auto operator()(const auto& s) const {
    return differentiable(s.tokens(), [](offset_t, double* out) { out[0] = 0; });
  }
};

void run() {
  std::vector<float> values(4);
  const batch_view table(values.data(), 1, 4);
  [[maybe_unused]] const token_field_t<token_mask_t, batch_view<float>> masks =
      token_field(token_mask, table);

#if SEQPACK_FAIL == 0
  field_list(masks, sequence_field(sample_mask, values));
  step<text>(by_parameters{}, nll{}, packed{});
  step<ragged_text>(by_parameters{}, nll{}, packed{});
  step<text>(by_mask{}, nll{}, not_packed{});
  step<text>(some_model<attention_input::mask, output_kind::value_head>{}, of_values{},
             not_packed{});
  step<text>(some_model<attention_input::mask, output_kind::logits, field_tags<input_ids_t>>{},
             nll{}, not_packed{});
  use(loss_of<has_input, has_level, has_metrics, returns_a_result>{});
#endif

// expect 1: a model that takes packed parameters needs `packed`, one that takes a mask `not_packed`
#if SEQPACK_FAIL == 1
  step<text>(by_mask{}, nll{}, packed{});
#endif

// expect 2: a model that takes packed parameters needs `packed`, one that takes a mask `not_packed`
#if SEQPACK_FAIL == 2
  step<text>(by_parameters{}, nll{}, not_packed{});
#endif

// expect 3: a loss on log-probabilities needs logits: the model has a value head
#if SEQPACK_FAIL == 3
  step<text>(some_model<attention_input::mask, output_kind::value_head>{}, nll{}, not_packed{});
#endif

// expect 4: the batch lacks a field that the loss asks for
#if SEQPACK_FAIL == 4
  step<text>(by_parameters{}, dpo<>{}, packed{});
#endif

// expect 5: the batch lacks a per-token field that the model asks for
#if SEQPACK_FAIL == 5
  step<text>(some_model<attention_input::mask, output_kind::logits, field_tags<advantages_t>>{},
             nll{}, not_packed{});
#endif

// expect 6: a batch that is not packed is a batch_view
#if SEQPACK_FAIL == 6
  step<ragged_text>(by_mask{}, nll{}, not_packed{});
#endif

// expect 7: log-probabilities are float, and double where the logits are
#if SEQPACK_FAIL == 7
  const log_prob_state<double> state(host, 0);
  self_communicator tp;
  label_log_probs(host, tp, matrix_view<float>(nullptr, 0, 4), column_range(4), {}, state.rows());
#endif

// expect 8: each_multiple_of must be a multiple of what the sharding divides by
#if SEQPACK_FAIL == 8
  step<text>(by_parameters{}, nll{},
             packed(padding{each_multiple_of<12>{}}, context_parallel<4>{}));
#endif

// expect 9: two fields of a batch have the same name
#if SEQPACK_FAIL == 9
  field_list(masks, masks, sequence_field(advantages, values));
#endif

// expect 10: token_mask has a value for each token, sample_mask for each sequence
#if SEQPACK_FAIL == 10
  field_list(masks, token_field(sample_mask, table));
#endif

// expect 11: token_mask has a value for each token, sample_mask for each sequence
#if SEQPACK_FAIL == 11
  field_list(sequence_field(token_mask, values));
#endif

// expect 12: no matching function
// expect 12: no matching constructor
#if SEQPACK_FAIL == 12
  field_list(sequence_field(sample_mask, std::vector<float>{1, 2}));
#endif

// expect 13: a loss says what it looks at: `static constexpr auto input`, a loss_input
// errors 13: 1
#if SEQPACK_FAIL == 13
  use(loss_of<has_level, has_metrics, returns_a_result>{});
#endif

// expect 14: a loss says what it is divided by: `static constexpr auto level`, a loss_level
// errors 14: 1
#if SEQPACK_FAIL == 14
  use(loss_of<has_input, has_metrics, returns_a_result>{});
#endif

// expect 15: a loss lists its metrics: `using metrics`, a metric_list, or no_metrics
// errors 15: 1
#if SEQPACK_FAIL == 15
  use(loss_of<has_input, has_level, returns_a_result>{});
#endif

// expect 16: a loss is called with a sequence, or with as many as its `sequences` says
// errors 16: 1
#if SEQPACK_FAIL == 16
  use(loss_of<has_input, has_level, has_metrics>{});
#endif

// expect 17: a loss is called with a sequence, or with as many as its `sequences` says
// errors 17: 1
#if SEQPACK_FAIL == 17
  use(of_pairs{});
#endif

// expect 18: a loss is trivially copyable, so that it can be sent to a device
// errors 18: 1
#if SEQPACK_FAIL == 18
  use(owns_memory{});
#endif

// expect 19: `sequences` of a loss is how many it takes together, at least 1
// errors 19: 1
#if SEQPACK_FAIL == 19
  use(of_nobody{});
#endif

// expect 20: `fields` of a loss is a field_tags
// errors 20: 1
#if SEQPACK_FAIL == 20
  use(of_a_field{});
#endif

// expect 21: a loss returns differentiable.value, derivative.*, with a derivative for each sequence
// errors 21: 1
#if SEQPACK_FAIL == 21
  use(value_alone{});
#endif

// expect 22: a loss returns differentiable.value, derivative.*, with a derivative for each sequence
// errors 22: 1
#if SEQPACK_FAIL == 22
  use(one_derivative_of_two{});
#endif

// expect 23: a loss names the fields that it reads: `using fields = field_tags<...>`
// errors 23: 1
#if SEQPACK_FAIL == 23
  use(reads_what_it_does_not_name{});
#endif

// expect 24: a loss names the fields that it reads: `using fields = field_tags<...>`
// errors 24: 1
#if SEQPACK_FAIL == 24
  use(names_its_return_type{});
#endif

// expect 25: a loss lists what it records in its `metrics`
// errors 25: 1
#if SEQPACK_FAIL == 25
  use(records_what_it_does_not_list{});
#endif

// expect 26: the batch lacks a field that the loss asks for
// errors 26: 1
#if SEQPACK_FAIL == 26
  use(dpo<>{});
#endif

// expect 27: the field has a value for each sequence: value.tag., without a token
// errors 27: 1
#if SEQPACK_FAIL == 27
  step<masked_text>(by_parameters{}, asks_each_token_for_a_mask{}, packed{});
#endif

// expect 28: a model says what it takes: `static constexpr auto attention`, an attention_input
// errors 28: 1
#if SEQPACK_FAIL == 28
  step<text>(without_attention{}, nll{}, packed{});
#endif

// expect 29: a model says what it gives: `static constexpr auto output`, an output_kind
// errors 29: 1
#if SEQPACK_FAIL == 29
  step<text>(without_output{}, nll{}, packed{});
#endif

  step<text_in_order>(by_parameters{}, nll{}, packed{});
// expect 30: `order..` of a batch returns a copy of its entries, which nothing would keep
// errors 30: 1
#if SEQPACK_FAIL == 30
  step<text_of_a_copied_order>(by_parameters{}, nll{}, packed{});
#endif
}
