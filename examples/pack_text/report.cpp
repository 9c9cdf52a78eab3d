#include "report.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <string>

#include "../text_tools/format.hpp"

namespace pack_text {

namespace {

using text_tools::counted;
using text_tools::percent;
using text_tools::with_separators;
using text_tools::with_unit;

std::string rate(double bytes, double seconds) {
  return seconds > 0 ? with_unit(bytes / seconds, "B/s") : "-";
}

using cells = std::array<std::string, 9>;

cells cells_of(const scenario& s, const totals& sum) {
  return {std::to_string(s.cp),
          s.padding,
          with_separators(s.rows),
          with_separators(s.rows_in_order),
          with_separators(s.padded_tokens),
          with_separators(s.tokens_in_order),
          percent(sum.positions - s.padded_tokens, sum.positions - sum.real_tokens),
          rate(s.bytes_packed, s.pack_seconds),
          rate(s.bytes_unpacked, s.unpack_seconds)};
}

void print_row(std::ostream& out, const cells& row, const std::array<std::size_t, 9>& widths) {
  for (std::size_t column = 0; column < row.size(); ++column) {
    const bool name = column == 1;
    out << (column == 0 ? "" : "  ") << (name ? std::left : std::right)
        << std::setw(static_cast<int>(widths[column])) << row[column];
  }
  out << '\n';
}

}  // namespace

void print_input(std::ostream& out, const totals& sum, offset_t files) {
  out << counted(files, "file") << ": " << counted(sum.sequences, "sequence") << ", "
      << counted(sum.real_tokens, "token") << ", " << counted(sum.batches, "batch", "es")
      << "\nAs [B, S]: " << counted(sum.positions, "token") << ", "
      << percent(sum.positions - sum.real_tokens, sum.positions) << " of them padding; "
      << with_unit(static_cast<double>(sum.positions * token_bytes / sum.batches), "B")
      << " per batch\n\n";
}

void print_legend(std::ostream& out, int threads, int repeats) {
  out << "\nEvery round trip was exact: ids and " << feature_count << " features of each token, "
      << token_bytes << " bytes.\n"
      << "rows, tokens:  planned, padding included; in order: of rows of neighbours\n"
      << "padding saved: the part of the padding of [B, S] that was not packed\n"
      << "pack, unpack:  bytes written per second, " << counted(threads, "thread")
      << ", fastest of " << counted(repeats, "run") << " on each batch\n";
}

void print_table(std::ostream& out, const std::vector<scenario>& scenarios, const totals& sum) {
  std::vector<cells> rows{{"cp", "padding", "rows", "in order", "tokens", "in order",
                           "padding saved", "pack", "unpack"}};
  for (const scenario& s : scenarios) rows.push_back(cells_of(s, sum));
  std::array<std::size_t, 9> widths{};
  for (const cells& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  for (std::size_t k = 0; k < rows.size(); ++k) {
    // A blank line before every context-parallel size.
    if (k > 0 && (k == 1 || rows[k][0] != rows[k - 1][0])) out << '\n';
    print_row(out, rows[k], widths);
  }
}

}  // namespace pack_text
