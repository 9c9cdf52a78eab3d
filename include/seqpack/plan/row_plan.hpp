/// \file
/// row_plan: which sequences share a packed row.
#pragma once

#include <cstddef>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/layout/layout.hpp"

namespace seqpack {

/// The tokens [first, first + length) of a sequence.
struct sequence_piece {
  offset_t sequence = 0;
  offset_t first = 0;
  offset_t length = 0;

  friend constexpr bool operator==(const sequence_piece&, const sequence_piece&) = default;
};

/// The lengths of pieces, as make_layout wants them. Allocates them.
constexpr std::vector<offset_t> piece_lengths(std::span<const sequence_piece> pieces) {
  std::vector<offset_t> lengths;
  lengths.reserve(pieces.size());
  for (const sequence_piece& piece : pieces) lengths.push_back(piece.length);
  return lengths;
}

/// Which sequences share a packed row, and in which slots: two arrays, the sequences of all rows, one
/// row after another, and where each row begins. A row makes the order of a layout:
///
///     auto layout = make_layout(lengths, padding, cp, {.order = plan.row(k)});
///
/// Where sequences were truncated or split, the entries number pieces, and the lengths of the layout
/// are `plan.piece_lengths()`.
///
/// A value: copies are deep. Usable in constant expressions.
class row_plan {
 public:
  /// No rows.
  constexpr row_plan() = default;
  /// Takes over what was planned elsewhere.
  /// \param sequences by row, in slot order
  /// \param bounds row k holds the entries bounds[k] to bounds[k + 1] - 1; rows + 1 numbers
  /// \param pieces what the entries number, if not sequences
  /// \throws invalid_input for bounds that do not begin with 0, that decrease, or that do not end with
  /// the number of entries, and for a piece of a number below 0. The entries are checked by
  /// require_plan, and where a layout is made.
  constexpr row_plan(std::vector<offset_t> sequences, std::vector<offset_t> bounds,
                     std::vector<sequence_piece> pieces = {})
      : sequences_(std::move(sequences)), bounds_(std::move(bounds)), pieces_(std::move(pieces)) {
    require_bounds();
    require_pieces();
  }
  /// The same from arrays of integers of any type. Copies them.
  template <integer_range Sequences, integer_range Bounds>
  constexpr row_plan(const Sequences& sequences, const Bounds& bounds)
      : row_plan(offsets_of("sequences", sequences), offsets_of("bounds", bounds)) {}

  constexpr offset_t rows() const noexcept {
    return bounds_.empty() ? 0 : static_cast<offset_t>(bounds_.size()) - 1;
  }
  /// The sequences of a row, in slot order. Valid until the plan is assigned to, moved from or destroyed,
  /// as are the other spans.
  /// \throws invalid_input for a row that does not exist.
  constexpr std::span<const offset_t> row(offset_t k) const {
    if (k < 0 || k >= rows()) reject("row", k, {"the plan has ", rows(), " rows, from 0 on"});
    const auto at = static_cast<std::size_t>(k);
    return sequences().subspan(static_cast<std::size_t>(bounds_[at]),
                               static_cast<std::size_t>(bounds_[at + 1] - bounds_[at]));
  }
  /// Those of all rows, one row after another.
  constexpr std::span<const offset_t> sequences() const noexcept { return sequences_; }
  /// Where each row begins in sequences(), and where the last one ends: rows + 1 numbers.
  constexpr std::span<const offset_t> bounds() const noexcept { return bounds_; }
  /// What the entries number where sequences were truncated or split: all pieces of sequence 0, then
  /// those of sequence 1, and so on. Else empty, and the entries number sequences.
  constexpr std::span<const sequence_piece> pieces() const noexcept { return pieces_; }
  /// The lengths of the pieces, as make_layout wants them. Allocates them.
  constexpr std::vector<offset_t> piece_lengths() const { return seqpack::piece_lengths(pieces()); }

  friend constexpr bool operator==(const row_plan&, const row_plan&) = default;

 private:
  template <integer_range Numbers>
  static constexpr std::vector<offset_t> offsets_of(const char* name, const Numbers& numbers) {
    std::vector<offset_t> result;
    if constexpr (std::ranges::sized_range<const Numbers>) {
      result.reserve(static_cast<std::size_t>(std::ranges::size(numbers)));
    }
    for (const auto number : numbers) {
      const offset_t value = detail::to_bounded_offset(number);
      if (value < 0 || value > max_tokens) {
        reject(entry_name(name, static_cast<offset_t>(result.size())), number,
               {"it must be from 0 to ", max_tokens});
      }
      result.push_back(value);
    }
    return result;
  }

  constexpr void require_bounds() const {
    if (bounds_.empty()) reject("size of bounds", 0, "it must be at least 1, the rows plus 1");
    if (bounds_.front() != 0) reject("bounds[0]", bounds_.front(), "the first entry must be 0");
    for (std::size_t k = 1; k < bounds_.size(); ++k) {
      if (bounds_[k] < bounds_[k - 1]) {
        reject(entry_name("bounds", static_cast<offset_t>(k)), bounds_[k],
               {"entries must not decrease, and the one before is ", bounds_[k - 1]});
      }
    }
    if (bounds_.back() != static_cast<offset_t>(sequences_.size())) {
      reject(entry_name("bounds", rows()), bounds_.back(),
             {"the last entry must be ", sequences_.size(), ", the number of entries of all rows"});
    }
  }
  constexpr void require_pieces() const {
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      const auto require = [&](const char* what, offset_t value) {
        if (value >= 0 && value <= max_tokens) return;
        reject({what, " of piece ", p}, value, {"it must be from 0 to ", max_tokens});
      };
      require("sequence", pieces_[p].sequence);
      require("first token", pieces_[p].first);
      require("length", pieces_[p].length);
    }
  }

  std::vector<offset_t> sequences_;
  std::vector<offset_t> bounds_ = {0};
  std::vector<sequence_piece> pieces_;
};

}  // namespace seqpack
