/// \file
/// The table of the gates, and its judgement.
#pragma once

#include <cstdio>
#include <string>

namespace bench {

enum class judgement { met, missed, not_judged };

/// One row: the time of what is measured, in milliseconds, against that of its floor.
struct row {
  std::string what;
  double measured = 0;
  double floor = 0;
  double limit = 0;  ///< the largest ratio; 0: no gate
  int decimals = 3;

  double ratio() const { return measured / floor; }
};

/// A gate without a time is missed: nothing shows that it is met.
/// \param judged false where the times are too few to be judged
inline judgement judge(const row& r, bool judged) {
  if (r.limit == 0 || !judged) return judgement::not_judged;
  return r.measured > 0 && r.floor > 0 && r.ratio() <= r.limit ? judgement::met : judgement::missed;
}

inline std::string text_of(const row& r, judgement j) {
  char numbers[160];
  char limit[32] = "-";
  if (r.limit > 0) std::snprintf(limit, sizeof limit, "%.2f", r.limit);
  std::snprintf(numbers, sizeof numbers, " | %.*f ms | %.*f ms | %.2f | %s | ", r.decimals,
                r.measured, r.decimals, r.floor, r.ratio(), limit);
  const char* const words[] = {"met |", "missed |", "|"};
  return "| " + r.what + numbers + words[static_cast<int>(j)] + "\n";
}

/// Prints rows, and keeps whether one of them is missed.
class table {
 public:
  explicit table(bool judged, std::FILE* out = stdout) : judged_(judged), out_(out) {}

  void print_header() {
    std::fputs("| gate | seqpack | floor | measured | limit | |\n|---|--:|--:|--:|--:|---|\n",
               out_);
  }
  void print(const row& r) {
    const judgement j = judge(r, judged_);
    missed_ = missed_ || j == judgement::missed;
    std::fputs(text_of(r, j).c_str(), out_);
    std::fflush(out_);
  }
  /// The exit status of the program: 1 where a gate is missed.
  int status() const { return missed_ ? 1 : 0; }

 private:
  bool judged_;
  std::FILE* out_;
  bool missed_ = false;
};

}  // namespace bench
