// How much memory a training takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <seqpack/seqpack.hpp>
#include <span>
#include <string>
#include <vector>

#include "batch.hpp"
#include "corpus.hpp"
#include "options.hpp"

namespace train_text {

/// The tokens of batches, padding included.
struct batch_sizes {
  double positions = 0;   ///< [B, S] of all steps, the sequences of which every rank has
  offset_t packed = 0;    ///< of the largest row, if it has --batch sequences
  offset_t unpacked = 0;  ///< of the largest [B, S] of them
};

/// \throws seqpack::invalid_input for a padding that cannot be
template <class Padding, class ContextParallel>
void add_sizes(batch_sizes& sizes, std::span<const std::string> sequences, const options& o,
               const Padding& padding, const ContextParallel& cp) {
  const auto positions_of = [&](const std::vector<offset_t>& lengths) {
    const offset_t longest = *std::max_element(lengths.begin(), lengths.end());
    const offset_t width = seqpack::round_up(longest, cp.total_divisor());
    return width * static_cast<offset_t>(lengths.size());
  };
  deal(sequences, o.batch * o.micro_batches, [&](std::span<const std::string> some) {
    sizes.positions += static_cast<double>(positions_of(lengths_of(some)));
    return 0;
  });
  deal(sequences, o.batch, [&](std::span<const std::string> some) {
    const std::vector<offset_t> lengths = lengths_of(some);
    sizes.unpacked = std::max(sizes.unpacked, positions_of(lengths));
    sizes.packed =
        std::max(sizes.packed, seqpack::make_layout(lengths, padding, cp).total_tokens());
    return 0;
  });
}

/// Bytes that a rank takes, about: tables, batches, and the logits of a micro-batch.
/// \param row tokens of a planned row
template <class Padding, class ContextParallel>
double bytes_of_rank(const corpus& text, const options& o, const Padding& padding,
                     const ContextParallel& cp, offset_t row) {
  batch_sizes sizes;
  add_sizes(sizes, text.training, o, padding, cp);
  add_sizes(sizes, text.validation, o, padding, cp);
  const offset_t longest_row = std::max(sizes.packed, row);
  constexpr double token_bytes = sizeof(std::int32_t) * (1 + orders);
  constexpr double loss_bytes = 64;  // of a token, in the arrays of a loss
  constexpr double table_count = 4;  // weights, gradient, and two means of the optimizer
  const double row_bytes = sizeof(float) * static_cast<double>((vocabulary + o.tp - 1) / o.tp);
  const double tables =
      table_count * row_bytes * static_cast<double>(context_rows(o.buckets).count());
  const double tokens =
      static_cast<double>(longest_row + sizes.unpacked) / static_cast<double>(o.cp);
  return tables + token_bytes * sizes.positions + tokens * (row_bytes + token_bytes + loss_bytes);
}

}  // namespace train_text
