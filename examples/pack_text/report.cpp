#include "report.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>

namespace pack_text {

namespace {

std::string with_separators(offset_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string with_decimals(double number, int decimals) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << number;
  return text.str();
}

std::string percent(offset_t part, offset_t whole) {
  if (whole == 0) return "-";
  return with_decimals(100.0 * static_cast<double>(part) / static_cast<double>(whole), 1) + " %";
}

std::string counted(offset_t number, const char* what, const char* plural = "s") {
  return with_separators(number) + " " + what + (number == 1 ? "" : plural);
}

std::string with_unit(double value, const std::string& unit) {
  const char* prefix = "";
  for (const char* larger : {"k", "M", "G", "T"}) {
    if (value < 1000) break;
    value /= 1000;
    prefix = larger;
  }
  return with_decimals(value, 2) + ' ' + prefix + unit;
}

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

progress_bar::progress_bar()
    : terminal_(isatty(STDERR_FILENO) != 0), next_(clock::now() + std::chrono::milliseconds(500)) {}

progress_bar::~progress_bar() {
  if (shown_) std::cerr << "\r\033[K" << std::flush;
}

void progress_bar::show(std::uintmax_t done, std::uintmax_t total) {
  if (!terminal_ || total == 0 || clock::now() < next_) return;
  constexpr int width = 40;
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<std::size_t>(share * width);
  std::cerr << "\r[" << std::string(filled, '#') << std::string(width - filled, '.') << "] "
            << static_cast<int>(share * 100) << " %" << std::flush;
  shown_ = true;
  next_ = clock::now() + std::chrono::milliseconds(100);
}

}  // namespace pack_text
