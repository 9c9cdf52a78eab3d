// A line chart as SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace train_text {

struct chart_line {
  std::string name;
  std::string colour;
  std::vector<std::pair<double, double>> points;  ///< (x, y)
  double width = 2;
  bool marked = false;  ///< a dot at each point
};

/// A horizontal line.
struct chart_level {
  std::string name;
  double y = 0;
};

struct line_chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<chart_line> lines;
  std::vector<chart_level> levels;
};

/// A document of its own. The axes begin at 0 and end at round numbers; all values must be finite
/// and not negative.
std::string to_svg(const line_chart& chart);

}  // namespace train_text
