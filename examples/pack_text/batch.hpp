// A batch as a model's data loader makes it: right-padded [B, S] tensors and the real lengths.
#pragma once

#include <algorithm>
#include <cstdint>
#include <seqpack/seqpack.hpp>
#include <string>
#include <vector>

#include "../text_tools/memory.hpp"

namespace pack_text {

using seqpack::offset_t;

/// Elements of a token's features: one for each bit of its byte.
inline constexpr offset_t feature_count = 8;

/// Bytes of a token in both tensors.
inline constexpr offset_t token_bytes = sizeof(std::int32_t) + feature_count * sizeof(float);

inline std::size_t to_size(offset_t count) {
  return static_cast<std::size_t>(count);
}

struct batch {
  std::vector<offset_t> lengths;
  offset_t width = 0;             ///< S, the longest sequence
  std::vector<std::int32_t> ids;  ///< [B, S], 0 behind the real tokens
  std::vector<float> features;    ///< [B, S, feature_count], 0 behind the real tokens

  offset_t size() const noexcept { return static_cast<offset_t>(lengths.size()); }
  offset_t positions() const noexcept { return size() * width; }
  seqpack::batch_view<const std::int32_t> id_view() const { return {ids.data(), size(), width}; }
  seqpack::batch_view<const float> feature_view() const {
    return {features.data(), size(), width, feature_count};
  }
};

/// The sizes of several batches.
struct totals {
  offset_t batches = 0;
  offset_t sequences = 0;
  offset_t real_tokens = 0;
  offset_t positions = 0;  ///< B * S

  void add(const batch& text) {
    ++batches;
    sequences += text.size();
    for (const offset_t length : text.lengths) real_tokens += length;
    positions += text.positions();
  }
};

/// Refuses paragraphs that take too much memory as [B, S], before and after the round trip.
/// \throws seqpack::invalid_input
inline void require_memory_for(const std::vector<std::string>& sequences) {
  std::size_t width = 0;
  for (const std::string& sequence : sequences) width = std::max(width, sequence.size());
  text_tools::require_memory("memory for a batch [B, S]",
                             2.0 * token_bytes * static_cast<double>(sequences.size() * width));
}

inline batch make_batch(const std::vector<std::string>& sequences) {
  batch result;
  for (const std::string& sequence : sequences) {
    result.lengths.push_back(static_cast<offset_t>(sequence.size()));
    result.width = std::max(result.width, result.lengths.back());
  }
  result.ids.resize(to_size(result.positions()));
  result.features.resize(to_size(result.positions() * feature_count));
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    std::size_t position = b * to_size(result.width);
    for (const char character : sequences[b]) {
      const auto byte = static_cast<unsigned char>(character);
      result.ids[position] = byte;
      for (unsigned bit = 0; bit < feature_count; ++bit) {
        result.features[position * to_size(feature_count) + bit] =
            static_cast<float>((byte >> bit) & 1u);
      }
      ++position;
    }
  }
  return result;
}

}  // namespace pack_text
