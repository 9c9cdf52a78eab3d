/// \file
/// What SVG pictures share: a page that grows from the top down, its colours, and the document around it.
#pragma once

#include <string>
#include <string_view>

#include "seqpack/core/config.hpp"
#include "seqpack/draw/detail/drawing.hpp"
#include "seqpack/draw/draw_options.hpp"

namespace seqpack::detail::drawing {

/// All lengths are pixels. A sequence keeps its colour everywhere.
class svg_page {
 protected:
  static constexpr double margin = 28;
  static constexpr double left = 160;          // where the bands begin, right of their labels
  static constexpr offset_t ghost_colour = 8;  // after those of the sequences

  explicit svg_page(const draw_options& options) : options_(options) {}

  void text(std::string_view kind, double x, double y, std::string_view content) {
    write(body_, "<text class='", kind, "' x='", x, "' y='", y, "'>", content, "</text>\n");
  }
  void rect(std::string_view kind, double x, double y, double w, double h, std::string_view fill) {
    write(body_, "<rect class='", kind, "' x='", x, "' y='", y, "' width='", w, "' height='", h,
          "' fill='", fill, "'/>\n");
  }
  void heading(std::string_view content) { text("head", margin, y_ += 34, content); }
  void title() {
    if (!options_.title.empty()) text("title", margin, y_ += 24, escaped(options_.title));
  }

  static constexpr std::string_view colours[] = {"#8db9e8", "#f6b26b", "#8fd19e", "#ef9fa4",
                                                 "#c2a5e6", "#79cfcb", "#f2d675", "#cbb39b",
                                                 "#d5d9df"};  // the last is the ghost's
  static std::string fill_of(offset_t colour, bool real) {
    return real ? std::string(colours[colour]) : join("url(#pad", colour, ")");
  }

  /// What the kinds of padding that there are look like.
  void legend(bool padding, bool ghost) {
    double x = margin;
    y_ += 26;
    const auto sample = [&](offset_t colour, std::string_view name) {
      rect("legend", x, y_, 26, 14, join("url(#pad", colour, ")"));
      text("muted", x + 34, y_ + 11, name);
      x += 110;
    };
    if (padding) sample(0, "padding");
    if (ghost) sample(ghost_colour, "ghost, padding of no sequence");
    y_ += padding || ghost ? 14 : -26;
  }

  /// \param name where the options give no title
  /// \param stroke of the boxes
  /// \param more styles
  std::string document(std::string_view name, double stroke, std::string_view more = {}) const {
    std::string out;
    const double height = y_ + margin;
    write(out, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 ", options_.width, " ", height,
          "' width='", options_.width, "' height='", height,
          "' role='img' font-family='system-ui, Helvetica, Arial, sans-serif' font-size='12'>\n",
          "<title>", escaped(options_.title.empty() ? name : options_.title),
          "</title>\n<style>text{fill:#24292f}.muted,.label,.bound{fill:#59636e}"
          ".title{font-size:17px;font-weight:600}.head{font-weight:600}.label{text-anchor:end}"
          ".bound,.token,.rank{text-anchor:middle;font-size:11px}text.rank{fill:#fff}"
          ".flow{opacity:.45}.tick{stroke:#24292f;fill:none}"
          ".batch,.row,.shard,.owner{stroke:#fff;stroke-width:",
          stroke, "}", more, "</style>\n<defs>\n");
    for (offset_t k = 0; k < 9; ++k) {
      write(out, "<pattern id='pad", k, "' width='7' height='7' patternUnits='userSpaceOnUse' ",
            "patternTransform='rotate(45)'><path d='M0 0h7v7h-7z' fill='#fff'/>",
            "<path d='M0 0h3v7h-3z' fill='", colours[k], "'/></pattern>\n");
    }
    write(out, "</defs>\n<rect class='paper' width='100%' height='100%' rx='10' fill='#fdfdfe'/>\n",
          body_, "</svg>\n");
    return out;
  }

  const draw_options& options_;
  double y_ = 14;
  std::string body_;
};

}  // namespace seqpack::detail::drawing
