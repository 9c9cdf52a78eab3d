/// \file
/// The table of gates: printed, and as JSON.
#pragma once

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// Which side of the limit is good.
enum class limit_kind { at_least, at_most };

struct limit {
  limit_kind kind;
  double value;
};

/// A number with the name that it has in JSON, and its unit.
struct quantity {
  std::string name;
  double value;
  std::string unit;

  std::string text() const {
    char number[32];
    std::snprintf(number, sizeof number, value < 1000 ? "%.3g" : "%.0f", value);
    return number + (unit.empty() ? "" : " " + unit);
  }
};

/// One gate: a number, what it must be, and numbers beside it. Results come first: where they are
/// not those of the host, or there are none, no time counts.
struct gate {
  std::string what;
  quantity measured{};
  std::optional<limit> bound{};  ///< none: the number is reported, and cannot be missed
  std::vector<quantity> beside{};
  bool right = false;   ///< whether the results are those of the host
  std::string error{};  ///< why there is no number
};

/// All gates of a run.
class report {
 public:
  /// \param judged whether times count; results always do
  explicit report(bool judged) : judged_(judged) {}

  void add(gate g) {
    print_progress(g);
    gates_.push_back(std::move(g));
  }

  /// Whether all results are right and no gate is missed.
  bool good() const {
    for (const gate& g : gates_) {
      const std::string s = state(g);
      if (s != "met" && s != "reported") return false;
    }
    return true;
  }

  void print() const {
    std::printf("| gate | measured | limit | | beside |\n|---|--:|--:|---|---|\n");
    for (const gate& g : gates_) {
      std::printf("| %s | %s | %s | %s | %s |\n", g.what.c_str(),
                  g.error.empty() ? g.measured.text().c_str() : "-", limit_text(g).c_str(),
                  state(g).c_str(), g.error.empty() ? beside(g).c_str() : g.error.c_str());
    }
  }

  /// \param about what the table is about: the device, the date, the sizes
  void write(const std::string& path, nlohmann::json about) const {
    nlohmann::json rows = nlohmann::json::array();
    for (const gate& g : gates_) rows.push_back(to_json(g));
    about["gates"] = std::move(rows);
    about["good"] = good();
    std::ofstream(path) << about.dump(2) << '\n';
  }

 private:
  std::string state(const gate& g) const {
    if (!g.error.empty()) return "failed";
    if (!g.right) return "wrong result";
    if (!g.bound || !judged_) return "reported";
    const bool met = g.bound->kind == limit_kind::at_least ? g.measured.value >= g.bound->value
                                                           : g.measured.value <= g.bound->value;
    return met ? "met" : "missed";
  }
  static std::string limit_text(const gate& g) {
    if (!g.bound) return "-";
    return (g.bound->kind == limit_kind::at_least ? ">= " : "<= ") +
           quantity{"", g.bound->value, g.measured.unit}.text();
  }
  static std::string beside(const gate& g) {
    std::string text;
    for (const quantity& q : g.beside) text += (text.empty() ? "" : ", ") + q.name + " " + q.text();
    return text;
  }
  void print_progress(const gate& g) const {
    std::fprintf(stderr, "%s: %s\n", g.what.c_str(), state(g).c_str());
  }
  nlohmann::json to_json(const gate& g) const {
    nlohmann::json row{{"gate", g.what}, {"state", state(g)}, {"results_right", g.right}};
    if (!g.error.empty()) {
      row["error"] = g.error;
      return row;
    }
    row["measured"] = g.measured.value;
    row["unit"] = g.measured.unit;
    if (g.bound) row["limit"] = g.bound->value;
    if (g.bound) row["limit_is"] = g.bound->kind == limit_kind::at_least ? "least" : "most";
    for (const quantity& q : g.beside) {
      row["beside"][q.name] = {{"value", q.value}, {"unit", q.unit}};
    }
    return row;
  }

  bool judged_;
  std::vector<gate> gates_;
};

}  // namespace bench
