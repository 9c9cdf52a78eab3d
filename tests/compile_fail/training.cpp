// Models, losses and batches that do not go together.
#include <vector>

#include "seqpack/seqpack.hpp"

using namespace seqpack;

struct text {
  std::vector<int> lengths;
  std::vector<int> ids;
  auto fields() const { return field_list(token_field(input_ids, batch_view(ids.data(), 1, 4))); }
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

template <class Batch, class Model, class Loss, class Packing>
void step(Model model, const Loss& loss, const Packing& packing) {
  const std::vector<Batch> batches(1);
  auto next = batches.begin();
  no_timer timer;
  forward_step(host, timer, next, model, loss, forward_setup(packing, &Batch::lengths));
}

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
#if SEQPACK_FAIL == 12
  field_list(sequence_field(sample_mask, std::vector<float>{1, 2}));
#endif
}
