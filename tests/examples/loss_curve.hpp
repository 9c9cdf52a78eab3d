/// \file
/// Runs of the training example, and the loss curves that they write.
#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "run_program.hpp"
#include "temporary.hpp"

namespace seqpack::testing {

/// A line of loss_curve.csv; NaN where a cell is empty.
struct curve_line {
  double step = NAN;
  double epoch = NAN;
  double training = NAN;
  double validation = NAN;
  double unigram = NAN;
};

inline std::vector<curve_line> parse_curve(const std::string& csv) {
  std::istringstream text(csv);
  std::string line;
  std::getline(text, line);
  BOOST_TEST(line == "step,epoch,training,validation,unigram");
  std::vector<curve_line> curve;
  while (std::getline(text, line)) {
    std::vector<double> cells;
    std::istringstream columns(line);
    for (std::string cell; std::getline(columns, cell, ',');) {
      cells.push_back(cell.empty() ? NAN : std::stod(cell));
    }
    BOOST_TEST_REQUIRE(cells.size() == 5u);
    curve.push_back({cells[0], cells[1], cells[2], cells[3], cells[4]});
  }
  return curve;
}

/// Standard error without the lines of progress, which slow machines get to see.
inline std::string without_progress(const std::string& err) {
  std::istringstream text(err);
  std::string rest;
  for (std::string line; std::getline(text, line);) {
    if (line.find(" steps, ") == std::string::npos) rest += line + "\n";
  }
  return rest;
}

/// What a run of the example left.
struct training_run {
  program_result result;
  std::vector<curve_line> curve;
  std::string svg;
};

inline training_run run_training(const std::string& program, std::vector<std::string> arguments) {
  const temporary_folder folder;
  arguments.insert(arguments.end(), {"--output", folder.path()});
  training_run run{run_program(program, arguments), {}, {}};
  const std::string csv = folder.read("loss_curve.csv");
  if (!csv.empty()) run.curve = parse_curve(csv);
  run.svg = folder.read("loss_curve.svg");
  return run;
}

inline void require_same_curve(const std::vector<curve_line>& a, const std::vector<curve_line>& b) {
  BOOST_TEST_REQUIRE(!a.empty());
  BOOST_TEST_REQUIRE(a.size() == b.size());
  const auto same = [](double x, double y) {
    return std::isnan(x) ? std::isnan(y) : std::abs(x - y) < 1e-4;
  };
  for (std::size_t k = 0; k < a.size(); ++k) {
    BOOST_TEST_CONTEXT("line " << k) {
      BOOST_TEST(same(a[k].step, b[k].step));
      BOOST_TEST(same(a[k].training, b[k].training),
                 a[k].training << " and " << b[k].training << " differ");
      BOOST_TEST(same(a[k].validation, b[k].validation),
                 a[k].validation << " and " << b[k].validation << " differ");
    }
  }
}

}  // namespace seqpack::testing
