/// \file
/// Batches, models and losses for tests of the forward step: small, plain, and host only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "seqpack/loss/loss.hpp"
#include "seqpack/step/model.hpp"
#include "seqpack/tokens/batch_fields.hpp"

namespace seqpack::testing {

/// Right-padded ids, and masks of every type that masks come in.
struct masked_text {
  std::vector<int> lengths;
  offset_t width = 0;
  std::vector<std::int64_t> ids;          ///< [B, S]
  std::vector<std::uint8_t> token_masks;  ///< [B, S]
  std::vector<float> sample_masks;        ///< [B]

  offset_t rows() const { return static_cast<offset_t>(lengths.size()); }
  template <class T>
  batch_view<const T> table(const std::vector<T>& values) const {
    return {values.data(), rows(), width};
  }
  auto fields() const {
    return field_list(token_field(input_ids, table(ids)),
                      token_field(token_mask, table(token_masks)),
                      sequence_field(sample_mask, sample_masks));
  }
};

/// Rows of sequences, as a plan says them.
struct plain_plan {
  std::vector<std::vector<offset_t>> all;
  offset_t rows() const { return static_cast<offset_t>(all.size()); }
  std::span<const offset_t> row(offset_t k) const { return all[static_cast<std::size_t>(k)]; }
};

/// Ids alone: every token is a target.
struct plain_text {
  std::vector<int> lengths;
  offset_t width = 0;
  std::vector<std::int64_t> ids;

  auto fields() const {
    return field_list(token_field(
        input_ids,
        batch_view<const std::int64_t>(ids.data(), static_cast<offset_t>(lengths.size()), width)));
  }
};

/// The logits of a row, from the id in it alone.
inline double table_logit(std::int64_t id, offset_t v) {
  return static_cast<double>((7 * id + 5 * v + id * v) % 13) / 4 - 1;
}

/// A model whose logits are a function of the id. It says what it was called with.
template <attention_input Attention = attention_input::packed_parameters, class T = double,
          output_kind Output = output_kind::logits>
struct table_model {
  static constexpr auto attention = Attention;
  static constexpr auto output = Output;

  offset_t columns = 8;
  std::vector<T> logits = {};
  std::vector<std::int64_t> seen_ids = {};
  std::vector<std::int64_t> seen_positions = {};

  template <class Input>
  model_output<T> operator()(const Input& input) {
    seen_ids.clear();
    seen_positions.clear();
    logits.clear();
    for (offset_t t = 0; t < input.ids.rows; ++t) {
      seen_ids.push_back(*input.ids.at(t));
      seen_positions.push_back(*input.position_ids.at(t));
      for (offset_t v = 0; v < columns; ++v) {
        logits.push_back(static_cast<T>(table_logit(*input.ids.at(t), v)));
      }
    }
    return {matrix_view<T>(logits.data(), input.ids.rows, columns), column_range(columns)};
  }
};

}  // namespace seqpack::testing
