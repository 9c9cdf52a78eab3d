/// \file
/// step_plan: which micro-batch each data-parallel rank gets in each step.
#pragma once

#include <compare>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <span>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/plan/row_plan.hpp"

namespace seqpack {

/// The micro-batches of one rank, step by step: a random-access range of spans of sequences, which a
/// rank walks through. It refers to the plan and does not own it; its iterators live as long as the plan.
class rank_micro_batches : public std::ranges::view_base {
 public:
  /// Its entries are made when they are asked for.
  class iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = std::span<const offset_t>;
    using reference = value_type;
    using iterator_concept = std::random_access_iterator_tag;
    using iterator_category = std::input_iterator_tag;

    constexpr iterator() = default;
    constexpr iterator(const row_plan& rows, offset_t ranks, offset_t rank, offset_t step) noexcept
        : rows_(&rows), ranks_(ranks), rank_(rank), step_(step) {}

    /// \throws invalid_input past the last step.
    constexpr value_type operator*() const { return rows_->row(step_ * ranks_ + rank_); }
    constexpr value_type operator[](difference_type n) const { return *(*this + n); }
    /// The step of the micro-batch.
    constexpr offset_t step() const noexcept { return step_; }

    constexpr iterator& operator+=(difference_type n) noexcept {
      step_ += n;
      return *this;
    }
    constexpr iterator& operator-=(difference_type n) noexcept { return *this += -n; }
    constexpr iterator& operator++() noexcept { return *this += 1; }
    constexpr iterator& operator--() noexcept { return *this -= 1; }
    constexpr iterator operator++(int) noexcept { return std::exchange(*this, *this + 1); }
    constexpr iterator operator--(int) noexcept { return std::exchange(*this, *this - 1); }
    friend constexpr iterator operator+(iterator a, difference_type n) noexcept { return a += n; }
    friend constexpr iterator operator+(difference_type n, iterator a) noexcept { return a += n; }
    friend constexpr iterator operator-(iterator a, difference_type n) noexcept { return a -= n; }
    friend constexpr difference_type operator-(const iterator& a, const iterator& b) noexcept {
      return a.step_ - b.step_;
    }
    friend constexpr bool operator==(const iterator& a, const iterator& b) noexcept {
      return a.step_ == b.step_;
    }
    friend constexpr std::strong_ordering operator<=>(const iterator& a,
                                                      const iterator& b) noexcept {
      return a.step_ <=> b.step_;
    }

   private:
    const row_plan* rows_ = nullptr;
    offset_t ranks_ = 1;
    offset_t rank_ = 0;
    offset_t step_ = 0;
  };

  constexpr rank_micro_batches() = default;
  constexpr rank_micro_batches(const row_plan& rows, offset_t ranks, offset_t rank,
                               offset_t steps) noexcept
      : begin_(rows, ranks, rank, 0), end_(rows, ranks, rank, steps) {}

  constexpr iterator begin() const noexcept { return begin_; }
  constexpr iterator end() const noexcept { return end_; }
  /// The number of steps.
  constexpr std::size_t size() const noexcept { return static_cast<std::size_t>(end_ - begin_); }
  constexpr bool empty() const noexcept { return begin_ == end_; }
  /// \throws invalid_input for a step that does not exist.
  constexpr std::span<const offset_t> operator[](offset_t step) const { return begin_[step]; }

 private:
  iterator begin_;
  iterator end_;
};

/// The micro-batches of data-parallel ranks. In every step each rank has one, so all ranks have the same
/// number of them; a micro-batch may be empty. One of them makes the order of a layout:
///
///     auto layout = make_layout(lengths, padding, cp, {.order = plan.micro_batch(step, rank)});
///
/// They are the rows of a row_plan: that of a rank in a step is row step * ranks + rank. A value: copies
/// are deep. Usable in constant expressions.
class step_plan {
 public:
  /// No steps of one rank.
  constexpr step_plan() = default;
  /// Takes over what was planned elsewhere.
  /// \param micro_batches steps * ranks rows; what they hold is checked by require_plan, and where a
  /// layout is made
  /// \throws invalid_input for ranks below 1 or above max_tokens, and a number of rows that is no multiple
  /// of them.
  constexpr step_plan(row_plan micro_batches, offset_t ranks)
      : micro_batches_(std::move(micro_batches)), ranks_(ranks) {
    if (ranks < 1 || ranks > max_tokens) {
      reject("ranks", ranks, {"it must be from 1 to ", max_tokens});
    }
    if (micro_batches_.rows() % ranks != 0) {
      reject("number of micro-batches", micro_batches_.rows(),
             {"it must be a multiple of ", ranks, ", the number of ranks"});
    }
  }

  constexpr offset_t steps() const noexcept { return micro_batches_.rows() / ranks_; }
  constexpr offset_t ranks() const noexcept { return ranks_; }

  /// The sequences of a micro-batch, in slot order. Valid until the plan is assigned to, moved from or
  /// destroyed.
  /// \throws invalid_input for a step or a rank that does not exist.
  constexpr std::span<const offset_t> micro_batch(offset_t step, offset_t rank) const {
    require("step", step, steps());
    require("rank", rank, ranks_);
    return micro_batches_.row(step * ranks_ + rank);
  }
  /// Whether a micro-batch has no sequences: its rank takes part in the step all the same.
  /// \throws invalid_input as micro_batch does.
  constexpr bool is_empty(offset_t step, offset_t rank) const {
    return micro_batch(step, rank).empty();
  }
  /// How many micro-batches of all steps have no sequences. O(steps * ranks).
  constexpr offset_t empty_micro_batches() const noexcept {
    const std::span<const offset_t> bounds = micro_batches_.bounds();
    offset_t count = 0;
    for (std::size_t k = 1; k < bounds.size(); ++k) count += bounds[k] == bounds[k - 1];
    return count;
  }
  /// The micro-batches of a rank, one for each step. The plan must outlive them.
  /// \throws invalid_input for a rank that does not exist.
  constexpr rank_micro_batches of_rank(offset_t rank) const& {
    require("rank", rank, ranks_);
    return {micro_batches_, ranks_, rank, steps()};
  }
  rank_micro_batches of_rank(offset_t rank) const&& = delete;

  /// All of them: that of a rank in a step is row step * ranks() + rank.
  constexpr const row_plan& micro_batches() const noexcept { return micro_batches_; }

  friend constexpr bool operator==(const step_plan&, const step_plan&) = default;

 private:
  static constexpr void require(const char* what, offset_t value, offset_t count) {
    if (value >= 0 && value < count) return;
    if (count == 0) reject(what, value, "the plan has no steps");
    reject(what, value, {"it must be from 0 to ", count - 1});
  }

  row_plan micro_batches_;
  offset_t ranks_ = 1;
};

}  // namespace seqpack

/// \cond
// Its iterators refer to the plan.
template <>
inline constexpr bool std::ranges::enable_borrowed_range<seqpack::rank_micro_batches> = true;
/// \endcond
