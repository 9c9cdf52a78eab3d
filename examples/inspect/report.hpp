// What the inspector finds out about a layout, by packing tokens that know where they come from.
#pragma once

#include <cstdint>
#include <numeric>
#include <seqpack/seqpack.hpp>
#include <vector>

namespace inspect {

using seqpack::offset_t;

/// Stands for padding, and for a label that is ignored.
inline constexpr offset_t no_token = -1;

/// Where a token is in the batch.
struct batch_position {
  offset_t sequence;
  offset_t index;
};

struct shard_report {
  std::vector<offset_t> row;  ///< ids of tokens, no_token in padding
  std::vector<offset_t> position_ids;
  std::vector<offset_t> seq_idx;
  std::vector<std::uint8_t> padding_mask;
  std::vector<offset_t> labels;  ///< ids of tokens, no_token where ignored
  std::vector<offset_t> real_tokens_per_sequence;
};

struct layout_report {
  std::vector<batch_position> tokens;  ///< by id: all real tokens, sequence after sequence
  std::vector<offset_t> cu_seqlens;
  std::vector<offset_t> cu_seqlens_padded;
  offset_t max_seqlen = 0;
  offset_t total_tokens = 0;
  bool has_padding = false;
  std::vector<offset_t> row;
  std::vector<shard_report> shards;
};

inline std::size_t to_size(offset_t count) {
  return static_cast<std::size_t>(count);
}

template <class Layout, class Tokens>
shard_report report_shard(const Layout& layout, seqpack::shard at, const Tokens& ids,
                          offset_t label_shift) {
  const std::size_t size = to_size(layout.shard_tokens());
  shard_report report{
      .row = std::vector<offset_t>(size),
      .position_ids = std::vector<offset_t>(size),
      .seq_idx = std::vector<offset_t>(size),
      .padding_mask = std::vector<std::uint8_t>(size),
      .labels = std::vector<offset_t>(size),
      .real_tokens_per_sequence = std::vector<offset_t>(to_size(layout.sequences()))};
  seqpack::pack(seqpack::host, layout, at, seqpack::field(ids, report.row, no_token));
  seqpack::per_token(
      seqpack::host, layout, at, seqpack::position_ids(report.position_ids),
      seqpack::sequence_index(report.seq_idx), seqpack::padding_mask(report.padding_mask),
      seqpack::labels(ids, report.labels, {.shift = label_shift, .ignore = no_token}));
  seqpack::real_tokens_per_sequence(seqpack::host, layout, at, report.real_tokens_per_sequence);
  return report;
}

template <class Layout>
layout_report report_layout(const Layout& layout, offset_t label_shift) {
  const auto cu = layout.cu_seqlens();
  const auto cu_padded = layout.cu_seqlens_padded();
  layout_report report;
  report.cu_seqlens.assign(cu.begin(), cu.end());
  report.cu_seqlens_padded.assign(cu_padded.begin(), cu_padded.end());
  report.max_seqlen = layout.max_seqlen();
  report.total_tokens = layout.total_tokens();
  report.has_padding = layout.has_padding();
  for (offset_t b = 0; b < layout.batch_size(); ++b) {
    const offset_t length = report.cu_seqlens[to_size(b + 1)] - report.cu_seqlens[to_size(b)];
    for (offset_t s = 0; s < length; ++s) report.tokens.push_back({b, s});
  }

  // A ragged batch, so that a wide row costs no memory: the id of a token is its place in it.
  std::vector<offset_t> values(report.tokens.size());
  std::iota(values.begin(), values.end(), offset_t{0});
  const seqpack::ragged_view ids(seqpack::row_view{values}, cu.data(), layout.batch_size());

  report.row.resize(to_size(layout.total_tokens()));
  seqpack::pack(seqpack::host, layout, seqpack::full_row,
                seqpack::field(ids, report.row, no_token));
  for (offset_t rank = 0; rank < layout.context_parallel().size(); ++rank) {
    report.shards.push_back(report_shard(layout, seqpack::shard{rank}, ids, label_shift));
  }
  return report;
}

}  // namespace inspect
