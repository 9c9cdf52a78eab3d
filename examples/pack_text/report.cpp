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

using cells = std::array<std::string, 8>;

cells cells_of(const scenario& s, offset_t positions) {
  return {std::to_string(s.cp),
          s.padding,
          with_separators(s.sequences),
          with_separators(s.real_tokens),
          with_separators(s.padded_tokens),
          percent(positions - s.padded_tokens, positions - s.real_tokens),
          rate(s.bytes_packed, s.pack_seconds),
          rate(s.bytes_unpacked, s.unpack_seconds)};
}

void print_row(std::ostream& out, const cells& row, const std::array<std::size_t, 8>& widths) {
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
      << "padding saved: the part of the padding of [B, S] that was not packed\n"
      << "pack, unpack:  bytes written per second, " << counted(threads, "thread")
      << ", fastest of " << counted(repeats, "run") << " on each batch\n";
}

void print_table(std::ostream& out, const std::vector<scenario>& scenarios, const totals& sum) {
  std::vector<cells> rows{{"cp", "padding", "sequences", "real tokens", "padded tokens",
                           "padding saved", "pack", "unpack"}};
  for (const scenario& s : scenarios) rows.push_back(cells_of(s, sum.positions));
  std::array<std::size_t, 8> widths{};
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
