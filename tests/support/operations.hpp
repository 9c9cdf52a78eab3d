/// \file
/// One run of every operation, to compare executors.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/tokens/counts.hpp"
#include "seqpack/tokens/mask.hpp"
#include "seqpack/tokens/packed_seq_params.hpp"
#include "seqpack/tokens/per_token.hpp"
#include "support/buffers.hpp"

namespace seqpack::testing {

/// Everything that the operations wrote.
struct operation_results {
  std::vector<std::vector<float>> rows;
  std::vector<std::vector<float>> batches;
  std::vector<std::vector<std::int32_t>> arrays;

  friend bool operator==(const operation_results&, const operation_results&) = default;
};

/// Runs all operations of a layout of `batch` sequences on an executor. Large enough numbers give
/// the executor several pieces.
template <class Executor>
operation_results run_operations(const Executor& where, offset_t batch, offset_t payload) {
  constexpr offset_t width = 96;
  std::vector<std::int32_t> lengths;
  for (offset_t b = 0; b < batch; ++b) {
    lengths.push_back(static_cast<std::int32_t>(b * 37 % (width + 1)));
  }
  const auto layout =
      make_layout(lengths, padding{each_multiple_of<8>{}, total_multiple_of<64>{}, ghost_tail{}},
                  context_parallel<4>{});
  std::vector<float> hidden(static_cast<std::size_t>(batch * width * payload));
  std::vector<std::int32_t> ids(static_cast<std::size_t>(batch * width));
  std::iota(hidden.begin(), hidden.end(), 1.0F);
  std::iota(ids.begin(), ids.end(), 1);
  operation_results results;

  const auto run_place = [&](auto at) {
    const offset_t rows = layout.view().rows(at);
    poisoned_buffer<float> row(rows * payload);
    poisoned_buffer<std::int32_t> packed_ids(rows);
    pack(where, layout, at,
         field(batch_view(hidden.data(), batch, width, payload),
               row_view(row.data(), rows, payload), -1.0F),
         field(batch_view(ids.data(), batch, width), packed_ids.span()));
    poisoned_buffer<float> back(batch * width * payload);
    unpack(where, layout, at,
           field(row_view(row.data(), rows, payload),
                 batch_view(back.data(), batch, width, payload), -2.0F));
    poisoned_buffer<std::int32_t> positions(rows);
    poisoned_buffer<std::int32_t> next(rows);
    per_token(where, layout, at, position_ids(positions.span()),
              labels(batch_view(ids.data(), batch, width), next.span()));
    results.rows.push_back(row.values());
    results.batches.push_back(back.values());
    for (const auto* array : {&packed_ids, &positions, &next}) {
      results.arrays.push_back(array->values());
    }
  };
  run_place(full_row);
  run_place(shard{2});
  run_place(all_shards);

  poisoned_buffer<float> own(batch * width);
  const std::vector<float> shard_row(static_cast<std::size_t>(layout.shard_tokens()), 3.0F);
  unpack_own(where, layout, shard{1}, field(shard_row, batch_view(own.data(), batch, width)));
  results.batches.push_back(own.values());

  poisoned_buffer<std::int32_t> counts(batch);
  real_tokens_per_sequence(where, layout, shard{3}, counts.span());
  poisoned_buffer<std::int32_t> seq_idx(layout.total_tokens());
  poisoned_buffer<std::int32_t> bounds(static_cast<offset_t>(layout.cu_seqlens().size()));
  make_packed_seq_params(where, layout, seq_idx.span(), bounds.span());
  std::vector<std::uint8_t> mask;
  for (const std::int32_t length : lengths) {
    for (offset_t s = 0; s < width; ++s) mask.push_back(s < length);
  }
  poisoned_buffer<std::int32_t> found(batch);
  poisoned_buffer<std::int32_t> starts(batch);
  lengths_from_mask(where, batch_view<const std::uint8_t>(mask.data(), batch, width), found.span(),
                    starts.span());
  for (const auto* array : {&counts, &seq_idx, &bounds, &found, &starts}) {
    results.arrays.push_back(array->values());
  }
  return results;
}

}  // namespace seqpack::testing
