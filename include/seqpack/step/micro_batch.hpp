/// \file
/// Micro-batches: a batch and an order, and those of a plan over one batch.
#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/layout/order.hpp"
#include "seqpack/plan/piece_view.hpp"
#include "seqpack/tokens/batch_fields.hpp"

namespace seqpack {

template <batch B>
class micro_batches;

namespace detail {

template <class Table>
inline constexpr bool is_piece_view = false;
template <class Table>
inline constexpr bool is_piece_view<piece_view<Table>> = true;

}  // namespace detail

/// Some sequences of a batch, in the slots of one packed row: a batch with an order. It shares the
/// batch and its own numbers with its copies, so that a loss keeps both as long as it lives, and
/// copies are cheap. It may be empty. Besides its own tokens, a step costs O(B) numbers of the whole
/// batch: which slot each sequence has, and a value for each tuple.
///
///     micro_batch last(all, std::vector<offset_t>{7, 2, 5});   // slot 0 holds sequence 7
///
/// What finds the lengths in the batch finds them in it: `&text::lengths`, or a function of
/// `const text&`.
template <batch B>
class micro_batch {
 public:
  /// \param whole the batch, copied or moved
  /// \param order the sequence of each slot
  micro_batch(B whole, std::vector<offset_t> order)
      : micro_batch(std::make_shared<const B>(std::move(whole)), std::move(order)) {}
  /// \param whole a batch that others have too; not null
  micro_batch(std::shared_ptr<const B> whole, std::vector<offset_t> order)
      : whole_(std::move(whole)),
        sequences_(std::make_shared<const std::vector<offset_t>>(std::move(order))),
        count_(sequences_->size()) {}

  /// The sequence of each slot; valid as long as a copy of the micro-batch lives.
  std::span<const offset_t> order() const noexcept {
    return std::span(*sequences_).subspan(first_, count_);
  }
  /// Whether it has no sequences.
  bool empty() const noexcept { return count_ == 0; }
  /// The fields of the whole batch.
  auto fields() const { return whole_->fields(); }

  /// The whole batch.
  const B& operator*() const noexcept { return *whole_; }
  const B* operator->() const noexcept { return whole_.get(); }
  operator const B&() const noexcept { return *whole_; }

 private:
  friend class micro_batches<B>;
  using shared_sequences = std::shared_ptr<const std::vector<offset_t>>;

  micro_batch(std::shared_ptr<const B> whole, shared_sequences sequences, std::size_t first,
              std::size_t count)
      : whole_(std::move(whole)), sequences_(std::move(sequences)), first_(first), count_(count) {}

  std::shared_ptr<const B> whole_;
  shared_sequences sequences_;
  std::size_t first_ = 0;
  std::size_t count_;
};

template <batch B>
micro_batch(std::shared_ptr<const B>, std::vector<offset_t>) -> micro_batch<B>;
template <batch B>
micro_batch(std::shared_ptr<B>, std::vector<offset_t>) -> micro_batch<B>;

/// A plan of packed rows: how many, and the sequences of each in the order of their slots. A row_plan
/// is one.
template <class P>
concept planned_rows = requires(const P& plan, offset_t k) {
  { plan.rows() } -> std::convertible_to<offset_t>;
  { plan.row(k) } -> std::convertible_to<std::span<const offset_t>>;
};

/// A plan of micro-batches for data-parallel ranks, as many for each. A step_plan is one.
template <class P>
concept planned_steps = requires(const P& plan, offset_t k) {
  { plan.steps() } -> std::convertible_to<offset_t>;
  { plan.ranks() } -> std::convertible_to<offset_t>;
  { plan.micro_batch(k, k) } -> std::convertible_to<std::span<const offset_t>>;
  { plan.micro_batches() } -> planned_rows;
};

/// The micro-batches of a plan over one batch: a range, whose iterators forward_step takes.
///
///     micro_batches parts(std::move(all), plan);
///     const auto counts = sum_counts(dp, count_valid(host, parts.all(), &text::lengths));
///     for (auto next = parts.begin(); next != parts.end();) {
///       auto step = forward_step(host, no_timer{}, next, model, nll{}, setup,
///                                {.global_valid_toks = counts.tokens});
///       step.loss(step.output.rows).value();
///     }
///
/// All ranks of a context- or tensor-parallel group have the same micro-batches; data-parallel ranks
/// have as many of them, some of which may be empty. Copies of the range, its iterators and micro-batches
/// share the batch and the plan, and may outlive it.
template <batch B>
class micro_batches {
 public:
  using value_type = micro_batch<B>;
  class iterator;

  /// \param whole the batch: copied or moved or, as a std::shared_ptr<const B> that is not null, shared
  /// \param plan its rows are copied
  /// \throws invalid_input for a plan of pieces of sequences, unless the fields of the batch are a
  /// piece_view of them
  ///
  /// O(sequences of the plan).
  template <planned_rows Plan>
  micro_batches(B whole, const Plan& plan)
      : micro_batches(std::make_shared<const B>(std::move(whole)), plan) {}
  template <planned_rows Plan>
  micro_batches(std::shared_ptr<const B> whole, const Plan& plan) : whole_(std::move(whole)) {
    require_sequences(plan);
    copy_rows(static_cast<offset_t>(plan.rows()), [&](offset_t k) { return plan.row(k); });
  }
  /// Those of one data-parallel rank, one for each step.
  /// \throws invalid_input also for a rank that the plan does not have
  template <planned_steps Plan>
  micro_batches(B whole, const Plan& plan, offset_t rank)
      : micro_batches(std::make_shared<const B>(std::move(whole)), plan, rank) {}
  template <planned_steps Plan>
  micro_batches(std::shared_ptr<const B> whole, const Plan& plan, offset_t rank)
      : whole_(std::move(whole)) {
    require_sequences(plan.micro_batches());
    const auto ranks = static_cast<offset_t>(plan.ranks());
    if (rank < 0 || rank >= ranks) {
      reject("rank", rank, {"it must be from 0 to ", ranks - 1, ", as the plan has ", ranks});
    }
    copy_rows(static_cast<offset_t>(plan.steps()),
              [&](offset_t k) { return plan.micro_batch(k, rank); });
  }

  /// How many there are.
  offset_t size() const noexcept { return static_cast<offset_t>(bounds_->size()) - 1; }
  /// \param k from 0 to size() - 1
  micro_batch<B> operator[](offset_t k) const {
    const auto at = static_cast<std::size_t>(k);
    const std::size_t first = (*bounds_)[at];
    return {whole_, sequences_, first, (*bounds_)[at + 1] - first};
  }
  iterator begin() const { return {*this, 0}; }
  iterator end() const { return {*this, size()}; }

  /// All of them as one: what count_valid is given, so that it counts each sequence of the plan once.
  micro_batch<B> all() const { return {whole_, sequences_, 0, sequences_->size()}; }
  /// The batch.
  const B& whole() const noexcept { return *whole_; }

 private:
  /// The entries of a plan number sequences of the batch, or pieces, of which it has a row each.
  template <class Plan>
  void require_sequences([[maybe_unused]] const Plan& plan) const {
    if constexpr (requires { plan.pieces().size(); }) {
      const auto pieces = static_cast<offset_t>(plan.pieces().size());
      if (pieces == 0) return;
      const auto fields = whole_->fields();
      const auto& ids = tokens_of(input_ids, fields);
      if (!detail::is_piece_view<std::remove_cvref_t<decltype(ids)>> || ids.batch() != pieces) {
        reject("number of pieces of the plan", pieces,
               "the input_ids of the batch must be a piece_view with a row for each of them");
      }
    }
  }
  template <class Row>
  void copy_rows(offset_t count, const Row& row_of) {
    std::vector<offset_t> sequences;
    std::vector<std::size_t> bounds{0};
    for (offset_t k = 0; k < count; ++k) {
      const std::span<const offset_t> row = row_of(k);
      sequences.insert(sequences.end(), row.begin(), row.end());
      bounds.push_back(sequences.size());
    }
    sequences_ = std::make_shared<const std::vector<offset_t>>(std::move(sequences));
    bounds_ = std::make_shared<const std::vector<std::size_t>>(std::move(bounds));
  }

  std::shared_ptr<const B> whole_;
  std::shared_ptr<const std::vector<offset_t>> sequences_;
  std::shared_ptr<const std::vector<std::size_t>> bounds_;
};

/// Holds the range, so that it may outlive it.
template <batch B>
class micro_batches<B>::iterator {
 public:
  using value_type = micro_batch<B>;
  using difference_type = std::ptrdiff_t;
  using reference = micro_batch<B>;
  using iterator_concept = std::forward_iterator_tag;
  using iterator_category = std::input_iterator_tag;

  /// Of no range.
  iterator() = default;
  iterator(const micro_batches& all, offset_t at) : all_(all), at_(at) {}

  micro_batch<B> operator*() const { return (*all_)[at_]; }
  iterator& operator++() {
    ++at_;
    return *this;
  }
  iterator operator++(int) {
    iterator before = *this;
    ++at_;
    return before;
  }
  friend bool operator==(const iterator& a, const iterator& b) noexcept { return a.at_ == b.at_; }

 private:
  std::optional<micro_batches> all_;
  offset_t at_ = 0;
};

template <batch B, class Plan>
micro_batches(std::shared_ptr<const B>, const Plan&) -> micro_batches<B>;
template <batch B, class Plan>
micro_batches(std::shared_ptr<B>, const Plan&) -> micro_batches<B>;
template <batch B, class Plan>
micro_batches(std::shared_ptr<const B>, const Plan&, offset_t) -> micro_batches<B>;
template <batch B, class Plan>
micro_batches(std::shared_ptr<B>, const Plan&, offset_t) -> micro_batches<B>;

}  // namespace seqpack
