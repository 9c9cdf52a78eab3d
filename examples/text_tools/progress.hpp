// How far the work is, for what takes longer than a moment.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

namespace text_tools {

/// A bar on a terminal, which appears where the work takes longer than a moment; elsewhere a line
/// after two seconds and then every ten, so that a log shows it too.
class progress {
 public:
  using clock = std::chrono::steady_clock;

  /// On standard error.
  /// \param unit of the numbers, as "steps"
  explicit progress(std::string unit);
  /// \param out must outlive the object
  /// \param now the time
  progress(std::string unit, std::ostream& out, bool terminal,
           std::function<clock::time_point()> now = clock::now);
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  void show(std::uintmax_t done, std::uintmax_t total);

 private:
  std::string unit_;
  std::ostream& out_;
  bool terminal_;
  std::function<clock::time_point()> now_;
  bool shown_ = false;  // a bar that has to go
  clock::time_point next_;
};

}  // namespace text_tools
