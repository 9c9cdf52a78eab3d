// A user-defined model: a small attention, the average of what stands before each token.
#pragma once

#include <seqpack/seqpack.hpp>
#include <type_traits>
#include <utility>
#include <vector>

/// The logits after a token are the average of a table's rows [V, V] of the tokens up to it.
template <seqpack::communicator Group>
class average_model {
 public:
  static constexpr auto attention = seqpack::attention_input::packed_parameters;
  static constexpr auto output = seqpack::output_kind::logits;

  /// \param cp the context-parallel group
  average_model(Group& cp, std::vector<float> table, seqpack::offset_t vocabulary)
      : cp_(&cp), table_(std::move(table)), vocabulary_(vocabulary) {}

  template <class Input>
  seqpack::model_output<float> operator()(const Input& input) {
    // A token looks at tokens of other ranks: the ids of the full row, padding included.
    using id = std::remove_cvref_t<decltype(*input.ids.data)>;
    std::vector<id> all(static_cast<std::size_t>(input.params.total_tokens));
    const seqpack::row_view<id> row(all.data(), input.params.total_tokens);
    all_gather_rows(seqpack::host, *cp_, input.layout, field(input.ids, row));

    logits_.assign(static_cast<std::size_t>(input.ids.rows * vocabulary_), 0);
    const seqpack::matrix_view<float> logits(logits_.data(), input.ids.rows, vocabulary_);
    for (seqpack::offset_t t = 0; t < logits.rows; ++t) {
      const auto token = input.layout.token_at(input.place, t);
      for (seqpack::offset_t k = 0; k <= token.index; ++k) {
        const auto seen = *row.at(input.layout.row_of(seqpack::full_row, token.slot, k));
        const float* const entries =
            table_.data() + static_cast<seqpack::offset_t>(seen) * vocabulary_;
        for (seqpack::offset_t v = 0; v < vocabulary_; ++v) {
          logits.at(t)[v] += entries[v] / static_cast<float>(token.index + 1);
        }
      }
    }
    return {logits, seqpack::column_range(vocabulary_)};
  }

 private:
  Group* cp_;
  std::vector<float> table_;
  seqpack::offset_t vocabulary_;
  std::vector<float> logits_;  // they must live until the loss has been called
};
