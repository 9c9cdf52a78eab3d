#include "progress_bar.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>

namespace text_tools {

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

}  // namespace text_tools
