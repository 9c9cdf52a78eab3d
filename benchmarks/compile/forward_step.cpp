// What a program pays that takes training steps: forward_step with the nll loss, and its gradient.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "seqpack/seqpack.hpp"

using namespace seqpack;

struct text {
  std::vector<int> lengths;
  offset_t width = 0;
  std::vector<std::int64_t> ids;

  auto fields() const {
    return field_list(token_field(
        input_ids, batch_view(ids.data(), static_cast<offset_t>(lengths.size()), width)));
  }
};

struct bigram {
  static constexpr auto attention = attention_input::packed_parameters;
  static constexpr auto output = output_kind::logits;
  std::vector<float> table;
  std::vector<float> logits;

  template <class Input>
  model_output<float> operator()(const Input& input) {
    logits.resize(static_cast<std::size_t>(input.ids.rows) * 256);
    for (offset_t t = 0; t < input.ids.rows; ++t) {
      std::copy_n(&table[static_cast<std::size_t>(*input.ids.at(t)) * 256], 256,
                  &logits[static_cast<std::size_t>(t) * 256]);
    }
    return {{logits.data(), input.ids.rows, 256}, column_range(256)};
  }
};

double step(const std::vector<text>& batches, bigram& model) {
  const forward_setup setup(packed(padding{each_multiple_of<8>{}}), &text::lengths);
  auto next = batches.begin();
  auto made =
      forward_step(host, no_timer{}, next, model, nll{}, setup, {.global_valid_toks = 4096});
  return made.loss(made.output.rows).value();
}
