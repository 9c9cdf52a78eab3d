// A progress bar for what takes longer than a moment.
#pragma once

#include <chrono>
#include <cstdint>

namespace text_tools {

/// A bar on standard error that appears where the work takes longer than a moment, and only on a
/// terminal.
class progress_bar {
 public:
  progress_bar();
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  void show(std::uintmax_t done, std::uintmax_t total);

 private:
  using clock = std::chrono::steady_clock;
  bool terminal_;
  bool shown_ = false;
  clock::time_point next_;
};

}  // namespace text_tools
