/// \file
/// A batch and a model on the device, twins of those on the host.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"
#include "support/train_batch.hpp"

namespace seqpack::testing {

/// What policy losses ask for, on the host.
struct policy_text : masked_text {
  std::vector<double> previous;   ///< [B, S]
  std::vector<double> reference;  ///< [B, S]
  std::vector<double> advantage;  ///< [B, S]

  auto fields() const {
    return field_list(
        token_field(input_ids, table(ids)), token_field(token_mask, table(token_masks)),
        sequence_field(sample_mask, sample_masks), token_field(prev_logprobs, table(previous)),
        token_field(reference_logprobs, table(reference)),
        token_field(advantages, table(advantage)));
  }
};

/// The same with its fields on the device. Copies share them.
struct device_text {
  std::vector<int> lengths;
  offset_t width;
  std::shared_ptr<const device_array<std::int64_t>> ids;
  std::shared_ptr<const device_array<std::uint8_t>> masks;
  std::shared_ptr<const device_array<float>> samples;
  std::shared_ptr<const device_array<double>> previous;
  std::shared_ptr<const device_array<double>> reference;
  std::shared_ptr<const device_array<double>> advantage;

  explicit device_text(const policy_text& text)
      : lengths(text.lengths),
        width(text.width),
        ids(std::make_shared<device_array<std::int64_t>>(text.ids)),
        masks(std::make_shared<device_array<std::uint8_t>>(text.token_masks)),
        samples(std::make_shared<device_array<float>>(text.sample_masks)),
        previous(std::make_shared<device_array<double>>(text.previous)),
        reference(std::make_shared<device_array<double>>(text.reference)),
        advantage(std::make_shared<device_array<double>>(text.advantage)) {}

  template <class T>
  batch_view<const T> table(const device_array<T>& values) const {
    return {values.data(), static_cast<offset_t>(lengths.size()), width};
  }
  auto fields() const {
    return field_list(
        token_field(input_ids, table(*ids)), token_field(token_mask, table(*masks)),
        sequence_field(sample_mask, row_view<const float>(samples->data(),
                                                          static_cast<offset_t>(lengths.size()))),
        token_field(prev_logprobs, table(*previous)),
        token_field(reference_logprobs, table(*reference)),
        token_field(advantages, table(*advantage)));
  }
};

/// Sequences of different lengths with fields of which nothing is special.
inline policy_text make_policy_text() {
  policy_text text;
  text.lengths = {5, 3, 0, 8, 1, 2};
  text.width = 8;
  for (int k = 0; k < 48; ++k) {
    text.ids.push_back(k * 5 % 8);
    text.token_masks.push_back(k % 4 != 1);
    text.previous.push_back(-1.5 - 0.25 * (k % 7));
    text.reference.push_back(-2.5 + 0.2 * (k % 5));
    text.advantage.push_back(1 - 0.3 * (k % 6));
  }
  text.sample_masks = {1, 1, 1, 0.5F, 1, 0};
  return text;
}

/// table_logit of each id, by a bulk operation.
template <class T>
struct table_operation {
  row_view<const std::int64_t> ids;
  row_view<T> logits;
  column_range columns;

  offset_t rows() const noexcept { return ids.rows; }
  offset_t row_bytes() const noexcept { return logits.payload * offset_t{sizeof(T)}; }
  offset_t row_work() const noexcept { return row_bytes(); }
  void process(offset_t, offset_t) const {}
  template <team Team>
  SEQPACK_HD void operator()(const Team& threads, offset_t row) const {
    const std::int64_t id = *ids.at(row);
    for (offset_t k = threads.rank(); k < logits.payload; k += threads.size()) {
      const offset_t v = columns.first + k;
      logits.at(row)[k] =
          static_cast<T>(static_cast<double>((7 * id + 5 * v + id * v) % 13) / 4 - 1);
    }
  }
};

template <attention_input Attention = attention_input::packed_parameters, class T = double,
          output_kind Output = output_kind::logits>
struct device_table_model {
  static constexpr auto attention = Attention;
  static constexpr auto output = Output;

  cuda_stream<> where;
  column_range columns = column_range(8);
  executor_array<T> logits = {};

  template <class Input>
  model_output<T> operator()(const Input& input) {
    logits = executor_array<T>(where, input.ids.rows * columns.size());
    const auto rows = logits.rows(columns.size());
    execute(where, table_operation<T>{input.ids, rows, columns});
    return {matrix_view<T>(rows), columns};
  }
};

/// Rows of a model's output on the host.
template <class T>
std::vector<T> read_rows(const matrix_view<T>& rows) {
  std::vector<T> result(static_cast<std::size_t>(rows.rows * rows.columns));
  check_cuda(
      cudaMemcpy(result.data(), rows.data, result.size() * sizeof(T), cudaMemcpyDeviceToHost));
  return result;
}

}  // namespace seqpack::testing
