/// \file
/// Checks of labels and results, and of the columns of all tensor-parallel ranks.
// For the folders above too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/logprob/detail/logits_checks.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/tokens/targets.hpp"

namespace seqpack::detail {

/// \throws invalid_input for a label that is neither ignored nor in the vocabulary; host only.
inline void require_labels(row_view<const std::int64_t> labels, const column_range& columns) {
  for (offset_t row = 0; row < labels.rows; ++row) {
    const std::int64_t label = *labels.at(row);
    if (label == ignored_label || (label >= 0 && label < columns.total)) continue;
    reject(entry_name("labels", row), label,
           "it must be from 0 to " + std::to_string(columns.total - 1) + ", or " +
               std::to_string(ignored_label) + " for none");
  }
}

/// \throws invalid_input for logits that are not of the columns, or not there.
template <class T>
void require_logits_of(const matrix_view<T>& logits, const column_range& columns) {
  require_column_range(columns);
  require_equal(alone, "logits columns", logits.columns, columns.size(),
                "the columns of the vocabulary that they are");
  require_logits(logits);
}

/// \throws invalid_input for that, and unless there is a label for each row.
template <class T>
void require_labelled_logits(const matrix_view<T>& logits, const column_range& columns,
                             const row_view<const std::int64_t>& labels) {
  require_logits_of(logits, columns);
  require_equal(alone, "labels", labels.rows, logits.rows, "one for each row of logits");
  require_equal(alone, "labels payload", labels.payload, 1, "one for each row");
  require_memory(alone, "labels", labels.data, labels.rows);
}

/// \throws invalid_input unless there is a number for each row of logits.
template <class C>
void require_result_rows(const char* name, const row_view<C>& rows, offset_t expected) {
  require_equal(alone, name, rows.rows, expected, "one for each row of logits");
  require_equal(alone, (std::string(name) + " payload").c_str(), rows.payload, 1,
                "one for each row");
  require_memory(alone, name, rows.data, expected);
}

/// One rank's columns, as they travel; unknown on a rank that failed before it had any.
struct column_record {
  bool known = false;
  column_range columns;

  void write(records::writer& to) const {
    to.flag(known);
    for (const offset_t n : {columns.first, columns.last, columns.total}) to.put(n);
  }
  static column_record read(records::reader& from) {
    column_record r;
    r.known = from.flag("kind of the columns");
    r.columns.first = from.get<offset_t>();
    r.columns.last = from.get<offset_t>();
    r.columns.total = from.get<offset_t>();
    return r;
  }
};

/// \throws collective_mismatch where the ranks' columns are not, in the order of the ranks, the
/// whole vocabulary. Nothing can be said where they are not known on all ranks.
template <communicator TP>
void require_tiling(TP& tp, const std::optional<column_range>& mine) {
  if constexpr (one_rank<TP>) {
    tp.rank();  // throws where the caller is no member
    if (mine) require_all_columns(*mine);
  } else if (tp.size() == 1) {
    if (mine) require_all_columns(*mine);
  } else {
    const auto records = exchange_records(
        tp, "vocabulary columns", column_record{mine.has_value(), mine.value_or(column_range{})});
    for (const column_record& r : records) {
      if (!r.known) return;
    }
    const auto refuse = [&](std::size_t r, const std::string& must) {
      const column_range& found = records[r].columns;
      const group_rank rank{static_cast<offset_t>(r)};
      throw collective_mismatch(rank, "vocabulary columns on " + rank_name(tp.members(), rank),
                                "[" + std::to_string(found.first) + ", " +
                                    std::to_string(found.last) + ") of " +
                                    std::to_string(found.total),
                                must);
    };
    const offset_t total = records.front().columns.total;
    offset_t end = 0;
    for (std::size_t r = 0; r < records.size(); ++r) {
      const column_range& columns = records[r].columns;
      if (columns.total != total || columns.first != end) {
        refuse(r, "they must begin at " + std::to_string(end) +
                      ", where the ranks before it end, of " + std::to_string(total));
      }
      end = columns.last;
    }
    if (end != total) {
      refuse(records.size() - 1, "the last rank must hold those up to " + std::to_string(total));
    }
  }
}

}  // namespace seqpack::detail
