// What the example prints: a table of the results and, while it works, a progress bar.
#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <vector>

#include "round_trip.hpp"

namespace pack_text {

/// What was read, and what it is as [B, S] tensors.
void print_input(std::ostream& out, const totals& sum, offset_t files);

/// One line for each scenario.
void print_table(std::ostream& out, const std::vector<scenario>& scenarios, const totals& sum);

/// What the columns mean.
void print_legend(std::ostream& out, int threads, int repeats);

/// A bar on standard error that appears where the input takes longer than a moment, and only on a
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

}  // namespace pack_text
