// A batch as a model's data loader makes it: right-padded [B, S] tensors, the real lengths, and
// which fields there are. Its tensors live where the executor works.
#pragma once

#include <algorithm>
#include <cstdint>
#include <seqpack/parallel/agree_plan.hpp>
#include <seqpack/plan/step_plan.hpp>
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

inline std::vector<offset_t> lengths_of(std::span<const std::string> sequences) {
  std::vector<offset_t> lengths;
  for (const std::string& sequence : sequences) {
    lengths.push_back(static_cast<offset_t>(sequence.size()));
  }
  return lengths;
}

/// \param width_multiple what S is a multiple of: without packing, rows are cut as they are
template <seqpack::executor E>
text_batch make_batch(const E& where, std::span<const std::string> sequences,
                      const context_rows& rows, offset_t width_multiple) {
  text_batch batch;
  batch.lengths = lengths_of(sequences);
  for (const offset_t length : batch.lengths) batch.width = std::max(batch.width, length);
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

/// The batch of one step: what this data-parallel rank takes one after the other, and the counts of
/// all ranks.
template <class MicroBatches>
struct global_batch {
  MicroBatches micro_batches;
  seqpack::global_counts counts;
};

/// Rows of a plan, packed.
using planned_batch = global_batch<seqpack::micro_batches<text_batch>>;
/// Batches [B, S] as they are.
using plain_batch = global_batch<std::vector<text_batch>>;

/// Deals sequences to steps, `size` to each: which ones a step has does not depend on how they are
/// planned, nor on the ranks, and so the loss does not.
/// \param make gives the batch of the sequences of a step
template <class Make>
auto deal(std::span<const std::string> sequences, offset_t size, const Make& make) {
  std::vector<decltype(make(sequences))> steps;
  while (!sequences.empty()) {
    const auto some = sequences.first(std::min(to_size(size), sequences.size()));
    steps.push_back(make(some));
    sequences = sequences.subspan(some.size());
  }
  return steps;
}

/// The steps of planned rows. Every rank plans for all of them, and comes to the same plan; if not,
/// all are told. **Collective** over the group.
/// \param size sequences of a step
/// \param plan makes a step_plan of lengths
template <seqpack::executor E, seqpack::communicator DP, class Plan>
std::vector<planned_batch> make_planned(const E& where, DP& group,
                                        std::span<const std::string> sequences, offset_t size,
                                        const context_rows& rows, const Plan& plan) {
  return deal(sequences, size, [&](std::span<const std::string> some) {
    const seqpack::step_plan steps = plan(lengths_of(some));
    seqpack::agree(group, steps);
    const seqpack::micro_batches mine(make_batch(where, some, rows, 1), steps, group.rank().value);
    const auto counts = seqpack::count_valid(where, mine.all(), &text_batch::lengths);
    return planned_batch{mine, seqpack::sum_counts(group, counts)};
  });
}

/// The same sequences as batches of batch_size each. **Collective** over the group.
template <seqpack::executor E, seqpack::communicator DP>
std::vector<plain_batch> make_plain(const E& where, DP& group,
                                    std::span<const std::string> sequences, offset_t batch_size,
                                    offset_t size, const context_rows& rows,
                                    offset_t width_multiple) {
  return deal(sequences, size, [&](std::span<const std::string> some) {
    plain_batch step;
    seqpack::global_counts mine;
    for (offset_t k = 0; !some.empty(); ++k) {
      const auto part = some.first(std::min(to_size(batch_size), some.size()));
      some = some.subspan(part.size());
      if (k % group.size() != group.rank().value) continue;
      step.micro_batches.push_back(make_batch(where, part, rows, width_multiple));
      mine += seqpack::count_valid(where, step.micro_batches.back(), &text_batch::lengths);
    }
    step.counts = seqpack::sum_counts(group, mine);
    return step;
  });
}

}  // namespace train_text
