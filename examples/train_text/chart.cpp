#include "chart.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "../text_tools/format.hpp"

namespace train_text {

namespace {

using text_tools::with_decimals;

constexpr double width = 760;
constexpr double height = 440;
constexpr double left = 70;
constexpr double right = width - 30;
constexpr double top = 50;
constexpr double bottom = height - 60;

/// An axis from 0, with marks at round numbers.
struct axis {
  double largest;
  double step;
  int decimals;

  explicit axis(double reached) {
    constexpr double about = 6;  // marks
    const double rough = std::max(reached, 1e-9) / about;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double factor = rough / power;
    step = power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
    largest = step * std::ceil(reached / step - 1e-9);
    decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  }
  int marks() const { return static_cast<int>(std::lround(largest / step)); }
  double share(double value) const { return value / largest; }
  std::string text(int mark) const { return with_decimals(mark * step, decimals); }
};

struct plot {
  axis x;
  axis y;
  std::ostringstream out;

  double at_x(double value) const { return left + x.share(value) * (right - left); }
  double at_y(double value) const { return bottom - y.share(value) * (bottom - top); }

  void line(double x1, double y1, double x2, double y2, const std::string& style) {
    out << "<line x1='" << x1 << "' y1='" << y1 << "' x2='" << x2 << "' y2='" << y2 << "' " << style
        << "/>\n";
  }
  void text(double px, double py, const std::string& words, const std::string& style) {
    out << "<text x='" << px << "' y='" << py << "' " << style << '>';
    for (const char c : words) {
      if (c == '<' || c == '&') {
        out << (c == '<' ? "&lt;" : "&amp;");
      } else {
        out << c;
      }
    }
    out << "</text>\n";
  }
};

void draw_axes(plot& p, const line_chart& chart) {
  for (int k = 0; k <= p.y.marks(); ++k) {
    const double at = p.at_y(k * p.y.step);
    p.line(left, at, right, at, "stroke='#e4e4e4'");
    p.text(left - 8, at + 4, p.y.text(k), "text-anchor='end'");
  }
  for (int k = 0; k <= p.x.marks(); ++k) {
    const double at = p.at_x(k * p.x.step);
    p.line(at, bottom, at, bottom + 5, "stroke='#444'");
    p.text(at, bottom + 20, p.x.text(k), "text-anchor='middle'");
  }
  p.line(left, bottom, right, bottom, "stroke='#444'");
  p.line(left, top, left, bottom, "stroke='#444'");
  p.text((left + right) / 2, height - 16, chart.x_label, "text-anchor='middle'");
  const double middle = (top + bottom) / 2;
  p.text(22, middle, chart.y_label,
         "text-anchor='middle' transform='rotate(-90 22 " + with_decimals(middle, 0) + ")'");
  p.text(left, 28, chart.title, "font-size='16' font-weight='bold'");
}

void draw_line(plot& p, const chart_line& line) {
  p.out << "<polyline fill='none' stroke-linejoin='round' stroke='" << line.colour
        << "' stroke-width='" << line.width << "' points='";
  for (const auto& [x, y] : line.points) p.out << p.at_x(x) << ',' << p.at_y(y) << ' ';
  p.out << "'/>\n";
  if (!line.marked) return;
  for (const auto& [x, y] : line.points) {
    p.out << "<circle cx='" << p.at_x(x) << "' cy='" << p.at_y(y) << "' r='3.5' fill='"
          << line.colour << "'/>\n";
  }
}

/// At the upper right, where a curve that falls leaves room.
void draw_legend(plot& p, const line_chart& chart) {
  double at = top + 14;
  const auto entry = [&](const std::string& name, const std::string& style) {
    p.line(right - 210, at, right - 180, at, style);
    p.text(right - 172, at + 4, name, "");
    at += 20;
  };
  p.out << "<rect x='" << right - 220 << "' y='" << top << "' width='220' height='"
        << 20 * (chart.lines.size() + chart.levels.size()) + 8
        << "' fill='#ffffff' fill-opacity='0.9' stroke='#d0d0d0'/>\n";
  for (const chart_line& line : chart.lines) {
    entry(line.name,
          "stroke='" + line.colour + "' stroke-width='" + with_decimals(line.width, 1) + "'");
  }
  for (const chart_level& level : chart.levels) {
    entry(level.name, "stroke='#777' stroke-width='1.5' stroke-dasharray='7 5'");
  }
}

}  // namespace

std::string to_svg(const line_chart& chart) {
  double x = 0;
  double y = 0;
  for (const chart_line& line : chart.lines) {
    for (const auto& point : line.points) {
      x = std::max(x, point.first);
      y = std::max(y, point.second);
    }
  }
  for (const chart_level& level : chart.levels) y = std::max(y, level.y);

  plot p{axis(x), axis(y), {}};
  p.out << "<?xml version='1.0' encoding='UTF-8'?>\n<svg xmlns='http://www.w3.org/2000/svg' width='"
        << width << "' height='" << height << "' viewBox='0 0 " << width << ' ' << height
        << "' font-family='sans-serif' font-size='13' fill='#222'>\n"
        << "<rect width='100%' height='100%' fill='#ffffff'/>\n";
  draw_axes(p, chart);
  for (const chart_level& level : chart.levels) {
    p.line(left, p.at_y(level.y), right, p.at_y(level.y),
           "stroke='#777' stroke-width='1.5' stroke-dasharray='7 5'");
  }
  for (const chart_line& line : chart.lines) draw_line(p, line);
  draw_legend(p, chart);
  p.out << "</svg>\n";
  return p.out.str();
}

}  // namespace train_text
