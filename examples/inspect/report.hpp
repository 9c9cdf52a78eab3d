// What the inspector finds out about a layout, by packing tokens that know where they come from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <seqpack/seqpack.hpp>
#include <span>
#include <vector>

#include "json.hpp"

namespace inspect {

inline std::size_t to_size(offset_t count) {
  return static_cast<std::size_t>(count);
}

/// Memory for one array of a report at a time.
struct report_memory {
  std::vector<offset_t> numbers;
  std::vector<std::uint8_t> flags;
};

/// What a shard of the row holds of which sequence: [sequence, first token, count].
template <class Layout>
void write_segments(json_writer& json, const Layout& layout, seqpack::shard at) {
  json.key("segments");
  json.begin_array();
  for (const seqpack::shard_piece& piece : seqpack::shard_pieces(layout, at)) {
    const offset_t numbers[] = {piece.sequence, piece.first, piece.count};
    json.numbers(std::span<const offset_t>(numbers));
  }
  json.end_array();
}

template <class Layout, class Tokens>
void write_shard(json_writer& json, const Layout& layout, seqpack::shard at, const Tokens& ids,
                 offset_t label_shift, report_memory& memory) {
  using seqpack::host;
  const std::size_t size = to_size(layout.shard_tokens());
  const std::span<offset_t> numbers = std::span(memory.numbers).first(size);
  const std::span<std::uint8_t> flags = std::span(memory.flags).first(size);
  json.begin_object();
  json.key("row");
  seqpack::pack(host, layout, at, seqpack::field(ids, numbers, no_token));
  json.tokens(numbers);
  json.key("position_ids");
  seqpack::per_token(host, layout, at, seqpack::position_ids(numbers));
  json.numbers(numbers);
  json.key("seq_idx");
  seqpack::per_token(host, layout, at, seqpack::sequence_index(numbers));
  json.numbers(numbers);
  json.key("padding_mask");
  seqpack::per_token(host, layout, at, seqpack::padding_mask(flags));
  json.flags(flags);
  json.key("labels");
  seqpack::per_token(host, layout, at,
                     seqpack::labels(ids, numbers, {.shift = label_shift, .ignore = no_token}));
  json.tokens(numbers);
  json.key("real_tokens_per_sequence");
  const std::span<offset_t> counts = std::span(memory.numbers).first(to_size(layout.sequences()));
  seqpack::real_tokens_per_sequence(host, layout, at, counts);
  json.numbers(counts);
  if (layout.context_parallel().cuts_row()) write_segments(json, layout, at);
  json.end_object();
}

/// The ids of all real tokens, sequence after sequence.
template <class Index>
std::vector<offset_t> make_ids(std::span<const Index> cu, offset_t sequences) {
  std::vector<offset_t> ids;
  ids.reserve(to_size(cu.back()));
  for (offset_t b = 0; b < sequences; ++b) {
    const offset_t length = cu[to_size(b + 1)] - cu[to_size(b)];
    for (offset_t s = 0; s < length; ++s) ids.push_back(id_of(b, s));
  }
  return ids;
}

/// One object on one line, written as it is found out. Tokens are [b, s], padding and ignored labels
/// are null.
template <class Layout>
void write_json(std::ostream& out, const Layout& layout, offset_t label_shift) {
  const auto cu = layout.cu_seqlens();
  json_writer json(out);
  json.begin_object();
  json.key("cu_seqlens");
  json.numbers(cu);
  json.key("cu_seqlens_padded");
  json.numbers(layout.cu_seqlens_padded());
  json.key("max_seqlen");
  json.number(layout.max_seqlen());
  json.key("total_tokens");
  json.number(layout.total_tokens());
  json.key("has_padding");
  json.flag(layout.has_padding());

  // A ragged batch, so that a wide row costs no memory.
  const std::vector<offset_t> values = make_ids(cu, layout.batch_size());
  const seqpack::ragged_view ids(seqpack::row_view{values}, cu.data(), layout.batch_size());
  report_memory memory;
  memory.numbers.resize(to_size(std::max(layout.total_tokens(), layout.sequences())));
  memory.flags.resize(to_size(layout.shard_tokens()));
  json.key("row");
  const auto row = std::span(memory.numbers).first(to_size(layout.total_tokens()));
  seqpack::pack(seqpack::host, layout, seqpack::full_row, seqpack::field(ids, row, no_token));
  json.tokens(row);
  json.key("shards");
  json.begin_array();
  for (offset_t rank = 0; out && rank < layout.context_parallel().size(); ++rank) {
    write_shard(json, layout, seqpack::shard{rank}, ids, label_shift, memory);
  }
  json.end_array();
  json.end_object();
  out << '\n';
}

}  // namespace inspect
