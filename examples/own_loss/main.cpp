// Trains a user-defined model with a user-defined loss.
#include <iostream>
#include <seqpack/seqpack.hpp>
#include <string>
#include <vector>

#include "focal_loss.hpp"

using namespace seqpack;

constexpr offset_t vocabulary = 256;

/// Sequences of bytes. The library asks for views of its fields, and for the lengths.
struct text {
  std::vector<offset_t> lengths;
  offset_t width = 0;
  std::vector<unsigned char> ids;  // [B, S]

  explicit text(const std::vector<std::string>& lines) {
    for (const auto& line : lines) {
      lengths.push_back(static_cast<offset_t>(line.size()));
      width = std::max(width, lengths.back());
    }
    for (std::string line : lines) {
      line.resize(static_cast<std::size_t>(width));
      ids.insert(ids.end(), line.begin(), line.end());
    }
  }
  auto fields() const {
    return field_list(token_field(
        input_ids, batch_view(ids.data(), static_cast<offset_t>(lengths.size()), width)));
  }
};

/// The logits of the next byte are a row of a table.
struct bigram {
  static constexpr auto attention = attention_input::packed_parameters;
  static constexpr auto output = output_kind::logits;
  std::vector<float> table = std::vector<float>(vocabulary * vocabulary);
  std::vector<float> logits = {};

  template <class Input>
  model_output<float> operator()(const Input& input) {
    logits.clear();
    for (offset_t t = 0; t < input.ids.rows; ++t) {
      const auto row = table.begin() + *input.ids.at(t) * vocabulary;
      logits.insert(logits.end(), row, row + vocabulary);
    }
    return {matrix_view<float>(logits.data(), input.ids.rows, vocabulary),
            column_range(vocabulary)};
  }
  /// One step down the gradient, which the rows of the logits hold by now.
  template <class Input>
  void learn(const Input& input, float rate) {
    for (offset_t t = 0; t < input.ids.rows; ++t) {
      float* const row = &table[static_cast<std::size_t>(*input.ids.at(t) * vocabulary)];
      const float* const gradient = &logits[static_cast<std::size_t>(t * vocabulary)];
      for (offset_t v = 0; v < vocabulary; ++v) row[v] -= rate * gradient[v];
    }
  }
};

int main(int argc, char**) {
  if (argc > 1) {
    std::cerr << "own_loss takes no arguments\n";
    return 2;
  }
  const std::vector<text> batches{text({"sequences of tokens", "are packed", "into one row"})};
  const global_counts counts = count_valid(host, batches[0], &text::lengths);
  const forward_setup setup(packed(padding{each_multiple_of<4>{}}), &text::lengths);
  bigram model;
  no_timer timer;
  double first = 0;
  double last = 0;
  for (int k = 0; k <= 40; ++k) {
    auto next = batches.begin();
    auto step = forward_step(host, timer, next, model, focal_loss{}, setup,
                             {.global_valid_toks = counts.tokens});
    const auto result = step.loss(step.output.rows);  // the gradient takes the place of the logits
    model.learn(step.inputs.input(), 20);
    last = result.value();
    if (k == 0) first = last;
    if (k % 10 == 0) {
      std::cout << "step " << k << ": loss " << last << ", probability of the targets "
                << result.metrics()[target_probability{}] << '\n';
    }
  }
  return last < first / 5 && std::cout.flush() ? 0 : 1;
}
