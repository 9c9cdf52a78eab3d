/// \file
/// What operations check of a batch before they write anything.
// For the folders above too.
#pragma once

#include <cstdint>
#include <string>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/detail/checks.hpp"

namespace seqpack::detail {

[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_row(const std::string& row, offset_t room,
                                                              offset_t length, bool exact) {
  reject({row, " size"}, room,
         {exact ? "it must be " : "it must be at least ", length,
          ", the real length of the sequence"});
}

/// Errors of bounds that are arrays say what the caller's array says.
template <class Table>
std::string bound_text(const Table& table, offset_t b) {
  if constexpr (requires { table.bounds()[b]; }) {
    return std::to_string(table.bounds()[b]);
  } else {
    return std::to_string(is_ragged<Table> ? table.first_position(b) : table.lead(b));
  }
}

/// The rows of a table whose bounds can be read here.
template <class View, token_table Table>
void require_rows(subject whose, const char* what, const View& view, const Table& table,
                  bool exact) {
  for (offset_t b = 0; b < table.batch(); ++b) {
    const offset_t slot = view.slot(b);
    const offset_t length = slot < 0 ? 0 : view.length(slot);
    const offset_t lead = table.lead(b);
    const offset_t first = table.first_position(b);
    const offset_t columns = table.columns(b);
    const auto row = [&] { return error_text{whose.name(what), " row ", b}.joined(); };
    if (first < 0) reject({row(), " begin"}, bound_text(table, b), "it must be at least 0");
    if (lead < 0) reject({row(), " start column"}, bound_text(table, b), "it must be at least 0");
    if (!is_ragged<Table> && lead > columns) {
      reject({row(), " start column"}, bound_text(table, b),
             {"it must be at most ", columns, ", the columns of the row"});
    }
    if (is_ragged<Table> && columns < 0) {
      reject({row(), " end"}, bound_text(table, b + 1),
             {"it must be at least ", bound_text(table, b), ", where the row begins"});
    }
    const offset_t room = columns - lead;
    if (room < length || (exact && room != length)) refuse_row(row(), room, length, exact);
    if (first + columns > table.positions()) {
      reject({row(), " end"},
             is_ragged<Table> ? bound_text(table, b + 1) : std::to_string(first + columns),
             {"it must be at most ", table.positions(), ", the rows of the values"});
    }
  }
  if (!exact) return;
  if (table.batch() == 0) {
    return require_equal(whose, "target values", table.positions(), 0, "as there are no sequences");
  }
  require_equal(whose, "target row 0 begin", table.first_position(0), 0,
                "as every value of a target is written");
  require_equal(whose, "target values", table.positions(), table.first_position(table.batch()),
                "the last offset");
}

/// Where the tokens of a table are.
template <token_table Table>
auto data_of(const Table& table) {
  using T = typename Table::value_type;
  if constexpr (requires { table.data(); }) {
    return static_cast<const T*>(table.data());
  } else if constexpr (requires { table.table().data(); }) {
    return static_cast<const T*>(table.table().data());
  } else if constexpr (is_ragged<Table>) {
    return static_cast<const T*>(table.values().data);
  } else {
    return reinterpret_cast<const T*>(table.touched().first);
  }
}

/// What the batch of a field must be for the layout. Bounds that are arrays in device memory cannot
/// be looked at from here; the device functions stay inside of them instead.
template <class Executor, class View, token_table Table>
void require_table(subject whose, const char* what, const View& view, const Table& table,
                   bool exact) {
  require_equal(whose, (std::string(what) + " rows").c_str(), table.batch(), view.batch,
                "the batch size of the layout");
  require_memory(whose, what, data_of(table), table.positions() * table.payload());
  if constexpr (!bounds_in_memory<Table>) {
    if (table.batch() > 0 && view.longest > table.columns(0)) {
      reject({whose.name(what), " width"}, table.columns(0),
             {"it must be at least ", view.longest, ", the longest real length of the layout"});
    }
  } else {
    if constexpr (requires { table.bounds(); }) {
      require_memory(whose, (std::string(what) + " bounds").c_str(), table.bounds(), table.batch());
    }
    if constexpr (host_executor<Executor>) require_rows(whose, what, view, table, exact);
  }
}

/// \throws invalid_input for a table whose rows overlap each other in memory.
template <class T>
void require_distinct_positions(subject whose, const batch_view<T>& table) {
  if (table.batch() * table.width() <= 1) return;
  const offset_t token = table.stride() < 0 ? -table.stride() : table.stride();
  const offset_t row = table.batch_stride() < 0 ? -table.batch_stride() : table.batch_stride();
  const bool tokens_apart = table.width() <= 1 || token >= table.payload();
  const bool rows_apart =
      table.batch() <= 1 || row >= (table.width() - 1) * token + table.payload();
  // Columns outermost: rows interleave inside of one token stride.
  const bool interleaved =
      table.width() <= 1 ||
      (row >= table.payload() && token >= (table.batch() - 1) * row + table.payload());
  if (!(tokens_apart && (rows_apart || interleaved))) {
    reject({whose.name("target"), " strides"}, {table.batch_stride(), " and ", table.stride()},
           "the positions of an output must not overlap");
  }
}
template <class T, class Start>
void require_distinct_positions(subject whose, const left_padded_view<T, Start>& table) {
  require_distinct_positions(whose, table.table());
}
/// Ragged values are dense.
template <class T, class Offset>
void require_distinct_positions(subject, const ragged_view<T, Offset>&) {}

}  // namespace seqpack::detail
