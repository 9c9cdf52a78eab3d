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
  double positions = 0;   ///< [B, S] of all batches
  offset_t packed = 0;    ///< of the largest packed row
  offset_t unpacked = 0;  ///< of the largest [B, S]
};

/// \throws seqpack::invalid_input for a padding that cannot be
template <class Padding, class ContextParallel>
void add_sizes(batch_sizes& sizes, std::span<const std::string> sequences, offset_t batch_size,
               const Padding& padding, const ContextParallel& cp) {
  while (!sequences.empty()) {
    const auto some = sequences.first(std::min(to_size(batch_size), sequences.size()));
    std::vector<offset_t> lengths;
    for (const std::string& sequence : some) {
      lengths.push_back(static_cast<offset_t>(sequence.size()));
    }
    const offset_t divisor = cp.divisor();
    const offset_t longest = *std::max_element(lengths.begin(), lengths.end());
    const offset_t positions =
        (longest + divisor - 1) / divisor * divisor * static_cast<offset_t>(some.size());
    sizes.positions += static_cast<double>(positions);
    sizes.unpacked = std::max(sizes.unpacked, positions);
    sizes.packed =
        std::max(sizes.packed, seqpack::make_layout(lengths, padding, cp).total_tokens());
    sequences = sequences.subspan(some.size());
  }
}

/// Bytes that a rank takes, about: tables, batches, and the logits of a micro-batch.
template <class Padding, class ContextParallel>
double bytes_of_rank(const corpus& text, const options& o, const Padding& padding,
                     const ContextParallel& cp, offset_t data_parallel_ranks) {
  batch_sizes sizes;
  add_sizes(sizes, text.training, o.batch, padding, cp);
  add_sizes(sizes, text.validation, o.batch, padding, cp);
  constexpr double token_bytes = sizeof(std::int32_t) * (1 + orders);
  constexpr double loss_bytes = 64;  // of a token, in the arrays of a loss
  constexpr double table_count = 4;  // weights, gradient, and two means of the optimizer
  const double row_bytes = sizeof(float) * static_cast<double>((vocabulary + o.tp - 1) / o.tp);
  const double tables =
      table_count * row_bytes * static_cast<double>(context_rows(o.buckets).count());
  const double tokens =
      static_cast<double>(sizes.packed + sizes.unpacked) / static_cast<double>(o.cp);
  return tables + token_bytes * sizes.positions / static_cast<double>(data_parallel_ranks) +
         tokens * (row_bytes + token_bytes + loss_bytes);
}

}  // namespace train_text
