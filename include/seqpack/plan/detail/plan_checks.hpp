/// \file
/// What a plan that was made elsewhere must satisfy.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/plan/detail/rooms.hpp"
#include "seqpack/plan/detail/row_rules.hpp"
#include "seqpack/plan/row_plan.hpp"

namespace seqpack::detail {

/// \throws invalid_input for pieces that are not those of sequence 0, then of sequence 1, and so on,
/// each from its first token on and without gaps.
constexpr void require_pieces(std::span<const sequence_piece> pieces,
                              std::span<const offset_t> lengths) {
  offset_t sequence = -1;
  offset_t end = 0;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const sequence_piece& piece = pieces[p];
    if (piece.sequence != sequence) {
      ++sequence;
      end = 0;
      if (piece.sequence != sequence) {
        reject({"sequence of piece ", p}, piece.sequence,
               {"it must be ", sequence, ", as pieces follow the sequences"});
      }
      if (nth(sequence) >= lengths.size()) {
        reject({"sequence of piece ", p}, sequence, {"there are ", lengths.size(), " sequences"});
      }
    }
    if (piece.sequence == sequence && end == 0 && p > 0 && pieces[p - 1].sequence == sequence) {
      reject({"length of piece ", p - 1}, 0, "an empty piece must be the only one of its sequence");
    }
    if (piece.first != end) {
      reject({"first token of piece ", p}, piece.first,
             {"it must be ", end, ", the next of sequence ", sequence});
    }
    end += piece.length;
    if (end > lengths[nth(sequence)]) {
      reject(
          {"end of piece ", p}, end,
          {"it must be at most ", lengths[nth(sequence)], ", the length of sequence ", sequence});
    }
  }
  if (nth(sequence + 1) != lengths.size()) {
    reject("sequences of the pieces", sequence + 1,
           {"they must be ", lengths.size(), ", as many as there are lengths"});
  }
}

/// The row of each item, or -1.
/// \throws invalid_input for an entry that is no item, and for an item in two slots.
constexpr std::vector<offset_t> rows_of_items(const row_plan& plan, offset_t items) {
  const char* const item = plan.pieces().empty() ? "a sequence" : "a piece";
  std::vector<offset_t> row_of(nth(items), -1);
  for (offset_t k = 0; k < plan.rows(); ++k) {
    const auto row = plan.row(k);
    for (std::size_t slot = 0; slot < row.size(); ++slot) {
      if (row[slot] < 0 || row[slot] >= items) {
        reject({"slot ", slot, " of row ", k}, row[slot],
               {"it must be ", item, ", from 0 to ", items - 1});
      }
      offset_t& of = row_of[nth(row[slot])];
      if (of >= 0) {
        reject({"slot ", slot, " of row ", k}, row[slot],
               {item, " may be in one slot, and row ", of, " has it"});
      }
      of = k;
    }
  }
  return row_of;
}

/// \throws invalid_input for a tuple that does not share a row.
constexpr void require_tuples_whole(std::span<const offset_t> row_of, offset_t tuple) {
  const auto place = [](offset_t row) {
    return row < 0 ? error_text("in no row").joined() : error_text{"in row ", row}.joined();
  };
  for (std::size_t s = 0; s < row_of.size(); ++s) {
    const std::size_t first = s - s % nth(tuple);
    if (row_of[s] == row_of[first]) continue;
    reject({"sequence ", s}, place(row_of[s]),
           {"sequence ", first, " of its tuple is ", place(row_of[first])});
  }
}

constexpr void require_all(std::span<const offset_t> row_of, bool pieces) {
  for (std::size_t k = 0; k < row_of.size(); ++k) {
    if (row_of[k] < 0) {
      reject({pieces ? "piece " : "sequence ", k}, "in no row", "each must be in one row");
    }
  }
}

/// Whether rows may be empty where the padding wants a sequence that absorbs the tail: those of a step_plan
/// may, as forward_step gives them a slot that does not count.
enum class empty_rows { as_layouts, legal };

/// \throws invalid_input for a row that holds too much, or that make_layout would refuse.
template <class Rounding>
constexpr void require_rows(const row_plan& plan, const row_rules<Rounding>& rules,
                            std::span<const offset_t> lengths, offset_t most_sequences,
                            empty_rows empty) {
  const char* const name = plan.pieces().empty() ? "lengths" : "piece_lengths";
  for (offset_t k = 0; k < plan.rows(); ++k) {
    const auto row = plan.row(k);
    if (row.empty() && empty == empty_rows::legal) continue;
    if (static_cast<offset_t>(row.size()) > most_sequences) {
      reject({"number of sequences of row ", k}, row.size(),
             {"it must be at most ", most_sequences});
    }
    offset_t content = 0;
    for (const offset_t entry : row) {
      content = min_of(content + rules.padded(lengths[nth(entry)]), saturated_sum);
    }
    if (content > rules.most_content) {
      reject({"padded lengths of row ", k, " together"}, content,
             {"it must be at most ", rules.most_content, ", what a row of capacity ",
              rules.capacity, " has room for"});
    }
    require_row_layout(rules, k, row, lengths, name);
  }
}

}  // namespace seqpack::detail
