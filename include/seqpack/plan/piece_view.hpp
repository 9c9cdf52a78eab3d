/// \file
/// piece_view: a batch of sequences as a batch of their pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/plan/row_plan.hpp"

namespace seqpack {

/// A token table whose row p is piece p of a plan, for pack, unpack and everything else that takes a
/// batch:
///
///     pack(host, layout, full_row, field(piece_view(ids, plan.pieces()), packed_ids));
///     unpack(host, layout, full_row, field(packed_logits, piece_view(logits, plan.pieces())));
///
/// The columns of a row of the batch belong to its pieces: those before its token 0 to the first one,
/// those after the last token that a piece has to the last one. Unpack so writes the whole batch: tokens
/// that were truncated, like other columns without a token, get the fill.
///
/// It refers to the pieces and to the memory of the batch. Trivially copyable; on a device where the
/// pieces are in its memory.
template <token_table Table>
class piece_view {
 public:
  using element_type = typename Table::element_type;
  using value_type = typename Table::value_type;

  constexpr piece_view() = default;
  /// \param table the batch of the sequences
  /// \param pieces those of sequence 0, then those of sequence 1, and so on, at least one of each; of a
  /// sequence each begins where the one before ends. So row_plan::pieces() has them.
  constexpr piece_view(const Table& table, std::span<const sequence_piece> pieces) noexcept
      : table_(table), pieces_(pieces.data()), count_(static_cast<offset_t>(pieces.size())) {}

  SEQPACK_HD constexpr offset_t batch() const noexcept { return count_; }
  SEQPACK_HD constexpr offset_t payload() const noexcept { return table_.payload(); }
  SEQPACK_HD constexpr offset_t stride() const noexcept { return table_.stride(); }
  SEQPACK_HD constexpr offset_t positions() const noexcept { return table_.positions(); }
  SEQPACK_HD constexpr offset_t first_position(offset_t p) const noexcept {
    if (p == count_) return positions();
    return table_.first_position(pieces_[p].sequence) + begin(p);
  }
  /// O(log pieces), besides that of the batch.
  SEQPACK_HD constexpr table_position locate(offset_t position) const noexcept {
    const table_position in_table = table_.locate(position);
    offset_t low = 0;
    offset_t high = count_;  // the first piece that starts behind the position is in (low, high]
    while (high - low > 1) {
      const offset_t middle = low + (high - low) / 2;
      const offset_t sequence = pieces_[middle].sequence;
      const bool after =
          sequence > in_table.row || (sequence == in_table.row && begin(middle) > in_table.column);
      (after ? high : low) = middle;
    }
    return {low, in_table.column - begin(low)};
  }
  SEQPACK_HD constexpr offset_t columns(offset_t p) const noexcept {
    const bool last = p + 1 == count_ || pieces_[p + 1].sequence != pieces_[p].sequence;
    return (last ? table_.columns(pieces_[p].sequence) : begin(p + 1)) - begin(p);
  }
  SEQPACK_HD constexpr offset_t lead(offset_t p) const noexcept {
    return pieces_[p].first == 0 ? table_.lead(pieces_[p].sequence) : 0;
  }
  SEQPACK_HD constexpr element_type* at(offset_t p, offset_t column) const noexcept {
    return table_.at(pieces_[p].sequence, begin(p) + column);
  }
  constexpr const Table& table() const noexcept { return table_; }

  footprint touched() const noexcept { return table_.touched(); }
  footprint bounds_touched() const noexcept { return bytes_of(pieces_, count_); }
  std::uint64_t address_bits() const noexcept { return table_.address_bits(); }

 private:
  /// The column of the batch where the columns of a piece begin.
  SEQPACK_HD constexpr offset_t begin(offset_t p) const noexcept {
    const sequence_piece& piece = pieces_[p];
    return piece.first == 0 ? 0 : table_.lead(piece.sequence) + piece.first;
  }

  Table table_;
  const sequence_piece* pieces_ = nullptr;
  offset_t count_ = 0;
};

namespace detail {

/// For unpack: pieces share no position where the rows of the batch do not.
template <class Table>
void require_distinct_positions(subject whose, const piece_view<Table>& view) {
  require_distinct_positions(whose, view.table());
}

}  // namespace detail

}  // namespace seqpack
