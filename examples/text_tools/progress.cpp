#include "progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <utility>

namespace text_tools {

namespace {

using std::chrono::milliseconds;

/// The time before the first bar or line, and between two.
struct intervals {
  milliseconds first;
  milliseconds next;
};
constexpr intervals intervals_of(bool terminal) {
  return terminal ? intervals{milliseconds(500), milliseconds(100)}
                  : intervals{milliseconds(2000), milliseconds(10000)};
}

std::string bar(double share) {
  constexpr int width = 40;
  const auto filled = static_cast<std::size_t>(share * width);
  return "\r[" + std::string(filled, '#') + std::string(width - filled, '.') + "] ";
}

}  // namespace

progress::progress(std::string unit)
    : progress(std::move(unit), std::cerr, isatty(STDERR_FILENO) != 0) {}

progress::progress(std::string unit, std::ostream& out, bool terminal,
                   std::function<clock::time_point()> now)
    : unit_(std::move(unit)),
      out_(out),
      terminal_(terminal),
      now_(std::move(now)),
      next_(now_() + intervals_of(terminal).first) {}

progress::~progress() {
  if (shown_) out_ << "\r\033[K" << std::flush;
}

void progress::show(std::uintmax_t done, std::uintmax_t total) {
  if (total == 0 || now_() < next_) return;
  done = std::min(done, total);
  const double share = static_cast<double>(done) / static_cast<double>(total);
  const std::string percent = std::to_string(static_cast<int>(share * 100)) + " %";
  if (terminal_) {
    out_ << bar(share) << percent << std::flush;
    shown_ = true;
  } else {
    out_ << std::to_string(done) + " of " + std::to_string(total) + ' ' + unit_ + ", " + percent +
                '\n'
         << std::flush;
  }
  next_ = now_() + intervals_of(terminal_).next;
}

}  // namespace text_tools
