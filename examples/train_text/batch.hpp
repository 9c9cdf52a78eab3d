// A batch as a model's data loader makes it: right-padded [B, S] tensors, the real lengths, and
// which fields there are. Its tensors live where the executor works.
#pragma once

#include <algorithm>
#include <cstdint>
#include <seqpack/seqpack.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace train_text {

using seqpack::offset_t;

inline constexpr offset_t vocabulary = 256;

inline std::size_t to_size(offset_t count) {
  return static_cast<std::size_t>(count);
}

/// A per-token field of our own: which rows of the model's table the text up to a token chooses. As
/// a field it is packed and sharded with the ids, so that a token has its context also where the
/// bytes before it are on another context-parallel rank.
struct contexts_t {
  static constexpr std::string_view name = "contexts";
};
inline constexpr contexts_t contexts{};

/// A row for the last byte, one for the last two, and so on up to the last four.
inline constexpr offset_t orders = 4;

/// Finds the rows. There are too many longer contexts for a row each: they share some by a hash.
class context_rows {
 public:
  explicit context_rows(offset_t buckets) : buckets_(buckets) {}

  offset_t count() const noexcept { return vocabulary + (orders - 1) * buckets_; }

  /// \param history the bytes so far, as `append` makes it
  std::int32_t row(offset_t order, std::uint64_t history) const noexcept {
    const std::uint64_t key = history & ((std::uint64_t{1} << (bits * (order + 1))) - 1);
    if (order == 0) return static_cast<std::int32_t>(key) - 1;
    const std::uint64_t mixed = (key * 0x9E3779B97F4A7C15) >> 32;
    return static_cast<std::int32_t>(vocabulary + (order - 1) * buckets_ +
                                     static_cast<offset_t>(mixed) % buckets_);
  }
  /// 0 is the history at the start of a sequence: a context never begins in the one before.
  static std::uint64_t append(std::uint64_t history, unsigned char byte) noexcept {
    return (history << bits) | (byte + 1U);
  }

 private:
  static constexpr offset_t bits = 9;  // a byte, or none
  offset_t buckets_;
};

/// How values come to where an executor works; this form serves those of the host.
template <class E>
struct upload_to {
  static_assert(seqpack::host_executor<E>);
  template <class T>
  static void copy(const E&, T* to, const std::vector<T>& from) {
    std::copy(from.begin(), from.end(), to);
  }
};

template <seqpack::executor E, class T>
seqpack::executor_array<T> upload(const E& where, const std::vector<T>& values) {
  const seqpack::executor_array<T> memory(where, static_cast<offset_t>(values.size()));
  upload_to<E>::copy(where, memory.data(), values);
  return memory;
}

/// Copies share the tensors.
struct text_batch {
  std::vector<offset_t> lengths;
  offset_t width = 0;                                ///< S
  seqpack::executor_array<std::int32_t> ids;         ///< [B, S]
  seqpack::executor_array<std::int32_t> table_rows;  ///< [B, S, orders]

  auto fields() const {
    const auto size = static_cast<offset_t>(lengths.size());
    return seqpack::field_list(
        seqpack::token_field(seqpack::input_ids,
                             seqpack::batch_view<const std::int32_t>(ids.data(), size, width)),
        seqpack::token_field(contexts, seqpack::batch_view<const std::int32_t>(
                                           table_rows.data(), size, width, orders)));
  }
};

static_assert(seqpack::batch<text_batch>);

/// \param width_multiple what S is a multiple of: without packing, rows are cut as they are
template <seqpack::executor E>
text_batch make_batch(const E& where, std::span<const std::string> sequences,
                      const context_rows& rows, offset_t width_multiple) {
  text_batch batch;
  for (const std::string& sequence : sequences) {
    batch.lengths.push_back(static_cast<offset_t>(sequence.size()));
    batch.width = std::max(batch.width, batch.lengths.back());
  }
  batch.width = (batch.width + width_multiple - 1) / width_multiple * width_multiple;

  const std::size_t positions = sequences.size() * to_size(batch.width);
  std::vector<std::int32_t> ids(positions);
  std::vector<std::int32_t> table_rows(positions * orders);
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    std::size_t at = b * to_size(batch.width);
    std::uint64_t history = 0;
    for (const char c : sequences[b]) {
      const auto byte = static_cast<unsigned char>(c);
      history = context_rows::append(history, byte);
      ids[at] = byte;
      for (offset_t k = 0; k < orders; ++k) {
        table_rows[at * orders + to_size(k)] = rows.row(k, history);
      }
      ++at;
    }
  }
  batch.ids = upload(where, ids);
  batch.table_rows = upload(where, table_rows);
  return batch;
}

/// The batch of one step: the micro-batches of this data-parallel rank, and the counts of all
/// ranks.
struct global_batch {
  std::vector<text_batch> micro_batches;
  seqpack::global_counts counts;
};

/// Deals sequences to steps, and those of a step to the data-parallel ranks, a micro-batch at a
/// time. Which sequences a step has does not depend on the ranks. **Collective** over the group.
template <seqpack::executor E, seqpack::communicator DP>
std::vector<global_batch> make_batches(const E& where, DP& group,
                                       std::span<const std::string> sequences, offset_t batch_size,
                                       offset_t per_step, const context_rows& rows,
                                       offset_t width_multiple) {
  std::vector<global_batch> steps;
  for (offset_t micro_batch = 0; !sequences.empty(); ++micro_batch) {
    const offset_t within = micro_batch % per_step;
    if (within == 0) steps.emplace_back();
    const std::size_t size = std::min(to_size(batch_size), sequences.size());
    if (within % group.size() == group.rank().value) {
      steps.back().micro_batches.push_back(
          make_batch(where, sequences.first(size), rows, width_multiple));
    }
    sequences = sequences.subspan(size);
  }
  for (global_batch& step : steps) {
    seqpack::global_counts mine;
    for (const text_batch& batch : step.micro_batches) {
      mine += seqpack::count_valid(where, batch, &text_batch::lengths);
    }
    step.counts = seqpack::sum_counts(group, mine);
  }
  return steps;
}

}  // namespace train_text
