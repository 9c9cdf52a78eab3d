/// \file
/// Pictures of a layout: text for a terminal, SVG for a document.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/pack/field.hpp"
#include "seqpack/pack/layout_view.hpp"

namespace seqpack {

/// How a layout is drawn.
struct draw_options {
  bool colour = false;      ///< text: ANSI colours, one per sequence
  offset_t columns = 100;   ///< text: characters of a line of tokens, at least 40
  offset_t longest = 2000;  ///< text: a row of more tokens is scaled down to so many characters
  offset_t entries = 12;    ///< sequences that are listed, and ranks that the text shows
  offset_t width = 960;     ///< SVG: its width, at least 640
  std::string title{};      ///< a line above the picture; none where it is empty
};

namespace drawing {

inline constexpr offset_t max_drawn = 1'000'000;

inline void put(std::string& out, std::string_view text) {
  out += text;
}
inline void put(std::string& out, offset_t number) {
  out += std::to_string(number);
}
/// Two decimals, and always a point: the locale is not asked.
inline void put(std::string& out, double number) {
  const auto hundredths = static_cast<offset_t>(std::llround(number * 100));
  const offset_t part = hundredths % 100;
  put(out, hundredths / 100);
  if (part != 0)
    out += {'.', static_cast<char>('0' + part / 10), static_cast<char>('0' + part % 10)};
}
template <class... Parts>
void write(std::string& out, const Parts&... parts) {
  (put(out, parts), ...);
}
template <class... Parts>
std::string join(const Parts&... parts) {
  std::string out;
  write(out, parts...);
  return out;
}

inline std::string count_of(offset_t number, std::string_view what) {
  return join(number, " ", what, number == 1 ? "" : "s");
}

inline char letter(offset_t sequence) {
  return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[sequence % 52];
}

inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default: out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

/// for_each_run over a whole place, with every run cut where its real tokens end.
template <class View, class Place, class F>
void for_each_piece(const View& view, Place at, F&& f) {
  for_each_run(view, at, 0, view.rows(at), [&](offset_t row, const token_run& run) {
    const token_ref& first = run.first;
    const offset_t real = max_of(min_of(first.length - first.index, run.count), 0);
    if (real > 0) f(row, token_run{first, real});
    if (real == run.count) return;
    f(row + real, token_run{{first.sequence, first.index + real, first.length}, run.count - real});
  });
}

/// "3 sequences, 20 tokens: 16 real, 20.0 % padding; cp 2, max_seqlen 8".
template <class View>
std::string summary(const View& view) {
  offset_t real = 0;
  for (offset_t s = 0; s < view.sequences; ++s) real += view.length(s);
  const offset_t total = max_of(view.total, 1);
  const offset_t permille = divide((view.total - real) * 1000 + total / 2, total);
  return join(count_of(view.sequences, "sequence"), ", ", count_of(view.total, "token"), ": ", real,
              " real, ", permille / 10, ".", permille % 10, " % padding; cp ", view.cp.size(),
              ", max_seqlen ", view.max_seqlen());
}

/// One character of a text: what it shows and whose it is (-1: nobody's).
struct cell {
  char glyph = ' ';
  offset_t sequence = -1;
  friend bool operator==(const cell&, const cell&) = default;
};

template <class View>
class text_picture {
 public:
  text_picture(const View& view, const draw_options& options)
      : view_(view),
        options_(options),
        label_width_(max_of(8, 7 + digits(view.cp.size() - 1))),
        line_width_(options.columns - label_width_),
        per_cell_(max_of(1, divide(view.total + options.longest - 1, options.longest))) {}

  std::string draw() {
    if (!options_.title.empty()) write(out_, options_.title, "\n");
    write(out_, summary(view_), "\n");
    if (per_cell_ > 1) {
      write(out_, "scaled down: one character is ", per_cell_, " tokens, + where they differ\n");
    }
    if (view_.total > 0) {
      out_ += '\n';
      row();
      if (view_.cp.size() > 1) shards();
    }
    legend();
    return std::move(out_);
  }

 private:
  using line = std::vector<cell>;
  struct labelled {
    std::string label;
    line cells;
  };

  static offset_t digits(offset_t n) { return static_cast<offset_t>(std::to_string(n).size()); }

  line blank(offset_t tokens) const {
    return line(static_cast<std::size_t>(divide(tokens + per_cell_ - 1, per_cell_)));
  }

  void mark(line& cells, offset_t first, offset_t count, const cell& value) const {
    const offset_t end = divide(first + count - 1, per_cell_) + 1;
    for (offset_t k = divide(first, per_cell_); k < end; ++k) {
      cell& at = cells[static_cast<std::size_t>(k)];
      at = at == cell{} || at == value ? value : cell{'+', -1};
    }
  }

  template <class Place>
  line tokens(Place at) const {
    line cells = blank(view_.rows(at));
    for_each_piece(view_, at, [&](offset_t row, const token_run& run) {
      const offset_t s = run.first.sequence;
      const bool ghost = s >= view_.sequences;
      mark(cells, row, run.count,
           ghost ? cell{'~', -1} : cell{run.first.real() ? letter(s) : '.', s});
    });
    return cells;
  }

  line owners() const {
    line cells = blank(view_.total);
    for_each_run(view_, all_shards, 0, view_.total, [&](offset_t row, const token_run& run) {
      const offset_t rank = divide(row, view_.shard_tokens());
      mark(cells, view_.row_of(full_row, run.first.sequence, run.first.index), run.count,
           {"0123456789abcdefghijklmnopqrstuvwxyz"[rank % 36], -1});
    });
    return cells;
  }

  /// The numbers of cu_seqlens_padded, each where its sequence begins, as far as there is room.
  line bounds() const {
    line cells = blank(view_.total);
    offset_t free = 0;
    for_each_run(view_, full_row, 0, view_.total, [&](offset_t row, const token_run&) {
      const offset_t at = divide(row, per_cell_);
      const std::string number = std::to_string(row);
      const offset_t end = at + static_cast<offset_t>(number.size());
      if (at < free || end > static_cast<offset_t>(cells.size())) return;
      if (remainder(at, line_width_) + end - at > line_width_) return;
      for (offset_t k = at; k < end; ++k) {
        cells[static_cast<std::size_t>(k)].glyph = number[static_cast<std::size_t>(k - at)];
      }
      free = end + 1;
    });
    return cells;
  }

  void row() {
    std::vector<labelled> lines{{"bounds", bounds()}, {"tokens", tokens(full_row)}};
    if (view_.cp.size() > 1) lines.push_back({"owners", owners()});
    wrapped(lines);
    out_ += '\n';
  }

  void shards() {
    const offset_t shown = min_of(view_.cp.size(), options_.entries);
    for (offset_t r = 0; r < shown; ++r) wrapped({{join("rank ", r), tokens(shard{r})}});
    const offset_t more = view_.cp.size() - shown;
    if (more > 0) write(out_, "... and ", count_of(more, "more rank"), "\n");
    out_ += '\n';
  }

  void wrapped(const std::vector<labelled>& lines) {
    const auto width = static_cast<std::size_t>(line_width_);
    for (std::size_t first = 0; first < lines.front().cells.size(); first += width) {
      if (first > 0 && lines.size() > 1) out_ += '\n';
      for (const labelled& l : lines) {
        std::string label = first == 0 ? l.label : std::string();
        label.resize(static_cast<std::size_t>(label_width_), ' ');
        out_ += label;
        for (std::size_t k = first; k < std::min(first + width, l.cells.size()); ++k) {
          emit(l.cells[k]);
        }
        style(-1, false);
        out_.erase(out_.find_last_not_of(' ') + 1);
        if (out_.back() != '\n') out_ += '\n';  // nothing on it: no line
      }
    }
  }

  void emit(const cell& c) {
    style(c.sequence, c.glyph == '.');
    out_ += c.glyph;
  }

  /// Changes the colour where it is not that of the character before.
  void style(offset_t sequence, bool padding) {
    if (!options_.colour) return;
    const offset_t code = sequence < 0 ? 0 : 31 + sequence % 6 + (padding ? 100 : 0);
    if (code == style_) return;
    if (code == 0) {
      out_ += "\x1b[0m";
    } else {
      write(out_, padding ? "\x1b[0;2;" : "\x1b[0;1;", code % 100, "m");
    }
    style_ = code;
  }

  void legend() {
    for (offset_t s = 0; s < min_of(view_.sequences, options_.entries); ++s) {
      style(s, false);
      out_ += letter(s);
      style(-1, false);
      write(out_, "  batch row ", view_.batch_row(s), ": ", count_of(view_.length(s), "token"),
            ", padded to ", view_.padded_length(s), "\n");
    }
    const offset_t more = view_.sequences - min_of(view_.sequences, options_.entries);
    if (more > 0) write(out_, "... and ", count_of(more, "more sequence"), "\n");
    if (view_.sequences > 52) write(out_, "letters repeat after 52 sequences\n");
    const offset_t unpacked = view_.batch - view_.sequences;
    if (unpacked > 0) write(out_, count_of(unpacked, "batch row"), " not packed\n");
    if (view_.has_padding()) write(out_, ".  padding\n");
    if (view_.segments > view_.sequences) {
      write(out_, "~  ghost, padding of no sequence: ",
            count_of(view_.padded_length(view_.sequences), "token"), "\n");
    }
  }

  const View& view_;
  const draw_options& options_;
  offset_t label_width_;
  offset_t line_width_;
  offset_t per_cell_;
  offset_t style_ = 0;
  std::string out_;
};

/// Built from the top down; all lengths are pixels. A sequence keeps its colour everywhere.
template <class View>
class svg_picture {
 public:
  svg_picture(const View& view, const draw_options& options)
      : view_(view),
        options_(options),
        right_(static_cast<double>(options.width) - margin),
        gap_(std::min(10.0, (right_ - left) / 4 / static_cast<double>(view.cp.size()))) {
    const auto total = static_cast<double>(max_of(view.total, 1));
    unit_ = (right_ - left) / total;
    shard_unit_ = (right_ - left - gap_ * static_cast<double>(view.cp.size() - 1)) / total;
    for_each_run(view, all_shards, 0, view.total, [&](offset_t, const token_run&) { ++runs_; });
  }

  std::string draw() {
    if (!options_.title.empty()) text("title", margin, y_ += 24, escaped(options_.title));
    text("muted", margin, y_ += 22, summary(view_));
    batch();
    if (view_.total > 0) row();
    if (view_.total > 0 && view_.cp.size() > 1) ranks();
    legend();
    return document();
  }

 private:
  static constexpr double margin = 28;
  static constexpr double left = 160;  // where the bands begin, right of their labels
  static constexpr double band = 30;
  static constexpr double flow = 80;            // from the row to the shards
  static constexpr offset_t finest_runs = 300;  // above it, who owns what is too fine to be drawn

  double x_of(offset_t row) const { return left + static_cast<double>(row) * unit_; }
  double shard_x(offset_t rank, offset_t index) const {
    const offset_t row = rank * view_.shard_tokens() + index;
    return left + static_cast<double>(row) * shard_unit_ + static_cast<double>(rank) * gap_;
  }
  bool fine() const { return runs_ > finest_runs; }

  void text(std::string_view kind, double x, double y, std::string_view content) {
    write(body_, "<text class='", kind, "' x='", x, "' y='", y, "'>", content, "</text>\n");
  }
  void rect(std::string_view kind, double x, double y, double w, double h, std::string_view fill) {
    write(body_, "<rect class='", kind, "' x='", x, "' y='", y, "' width='", w, "' height='", h,
          "' fill='", fill, "'/>\n");
  }
  void heading(std::string_view content) { text("head", margin, y_ += 34, content); }

  static constexpr std::string_view colours[] = {"#8db9e8", "#f6b26b", "#8fd19e", "#ef9fa4",
                                                 "#c2a5e6", "#79cfcb", "#f2d675", "#cbb39b",
                                                 "#d5d9df"};  // the last is the ghost's
  static std::string_view rank_colour(offset_t rank) {
    constexpr std::string_view dark[] = {"#28527a", "#8a4b14", "#2c6e49", "#8c2f39",
                                         "#5b3f8c", "#176b6b", "#7a6413", "#5e4a36"};
    return dark[rank % 8];
  }
  std::string fill_of(const token_ref& token) const {
    const offset_t colour = token.sequence < view_.sequences ? token.sequence % 8 : 8;
    return token.real() ? std::string(colours[colour]) : join("url(#pad", colour, ")");
  }

  void piece(std::string_view kind, double x, double unit, double height, const token_run& run) {
    const double w = unit * static_cast<double>(run.count);
    rect(kind, x, y_, w, height, fill_of(run.first));
    if (!run.first.real()) return;
    const char name[] = {letter(run.first.sequence), '\0'};
    const double base = y_ + height / 2 + 4;
    if (unit >= 22) {
      for (offset_t k = 0; k < run.count; ++k) {
        text("token", x + unit * (static_cast<double>(k) + 0.5), base,
             join(name, run.first.index + k));
      }
    } else if (w >= 14) {
      text("token", x + w / 2, base, name);
    }
  }

  void batch() {
    const offset_t shown = min_of(view_.batch, options_.entries);
    heading(join("batch: ", count_of(view_.batch, "row"), ", longest ", view_.max_length()));
    const auto longest = static_cast<double>(max_of(view_.max_length(), 1));
    const double unit = std::max(unit_, std::min(240.0, right_ - left) / longest);
    y_ += 12;
    for (offset_t b = 0; b < shown; ++b, y_ += 24) {
      const offset_t slot = view_.slot(b);
      const offset_t length = slot < 0 ? 0 : view_.length(slot);
      text("label", left - 12, y_ + 14,
           slot < 0 ? join("row ", b, ": not packed") : join("row ", b, ": ", length));
      rect("width", left, y_, unit * longest, 20, "#eef0f3");
      if (length > 0) piece("batch", left, unit, 20, {{slot, 0, length}, length});
    }
    y_ -= shown > 0 ? 4 : 0;
    const offset_t more = view_.batch - shown;
    if (more > 0) text("muted", left, y_ += 18, join("... and ", count_of(more, "more row")));
  }

  void row() {
    heading(join("packed row: ", count_of(view_.total, "token")));
    bounds();
    text("label", left - 12, y_ + band / 2 + 4, "tokens");
    for_each_piece(view_, full_row, [&](offset_t row, const token_run& run) {
      piece("row", x_of(row), unit_, band, run);
    });
    ticks();
    y_ += band;
  }

  /// The numbers of cu_seqlens_padded above the row, as far as there is room.
  void bounds() {
    text("label", left - 12, y_ += 22, "cu_seqlens_padded");
    const auto room = [](offset_t n) { return 4 + 3.5 * static_cast<double>(join(n).size()); };
    const double last = right_ - room(view_.total);
    double free = 0;
    const auto number = [&](offset_t row, double limit) {
      if (x_of(row) - room(row) < free || x_of(row) + room(row) > limit) return;
      text("bound", x_of(row), y_, join(row));
      free = x_of(row) + room(row);
    };
    for_each_run(view_, full_row, 0, view_.total,
                 [&](offset_t row, const token_run&) { number(row, last); });
    number(view_.total, right_ + margin);
    y_ += 8;
  }

  void ticks() {
    std::string path;
    double free = 0;
    const auto tick = [&](offset_t row) {
      if (x_of(row) < free) return;
      write(path, "M", x_of(row), " ", y_ - 5, "v", band + 5);
      free = x_of(row) + 2;
    };
    for_each_run(view_, full_row, 0, view_.total,
                 [&](offset_t row, const token_run&) { tick(row); });
    tick(view_.total);
    write(body_, "<path class='tick' d='", path, "'/>\n");
  }

  void ranks() {
    if (fine()) {
      text("muted", left, y_ += 24,
           join("the ranks share the row in ", runs_, " pieces: too fine to draw"));
    } else {
      owners();
      flows();
    }
    heading("shards");
    y_ += 12;
    text("label", left - 12, y_ + band / 2 + 4, count_of(view_.shard_tokens(), "token") + " each");
    for (offset_t r = 0; r < view_.cp.size(); ++r) shard_of(r);
    y_ += band + 20;
  }

  void owners() {
    y_ += 2;
    text("label", left - 12, y_ + 12, "owner");
    for_each_run(view_, all_shards, 0, view_.total, [&](offset_t row, const token_run& run) {
      const offset_t rank = divide(row, view_.shard_tokens());
      const double x = x_of(view_.row_of(full_row, run.first.sequence, run.first.index));
      const double w = unit_ * static_cast<double>(run.count);
      rect("owner", x, y_, w, 16, rank_colour(rank));
      if (w >= 12) text("rank", x + w / 2, y_ + 12, join(rank));
    });
    y_ += 16;
  }

  void flows() {
    const double from = y_ + 1;
    const double to = y_ + flow;
    for_each_piece(view_, all_shards, [&](offset_t row, const token_run& run) {
      const offset_t rank = divide(row, view_.shard_tokens());
      const auto count = static_cast<double>(run.count);
      const double a = x_of(view_.row_of(full_row, run.first.sequence, run.first.index));
      const double b = shard_x(rank, row - rank * view_.shard_tokens());
      const double c = b + count * shard_unit_;
      const double d = a + count * unit_;
      const double middle = (from + to) / 2;
      write(body_, "<path class='flow' fill='", fill_of(run.first), "' d='M", a, " ", from, "C", a,
            " ", middle, " ", b, " ", middle, " ", b, " ", to, "H", c, "C", c, " ", middle, " ", d,
            " ", middle, " ", d, " ", from, "Z'/>\n");
    });
    y_ = to - 46;  // the heading stands beside the flows
  }

  /// One band; pieces too thin to be seen are joined with their like.
  void shard_of(offset_t rank) {
    offset_t begin = 0;
    token_run joined{};
    const auto flush = [&] {
      if (joined.count > 0) piece("shard", shard_x(rank, begin), shard_unit_, band, joined);
    };
    for_each_piece(view_, shard{rank}, [&](offset_t index, const token_run& run) {
      const bool alike =
          run.first.sequence == joined.first.sequence && run.first.real() == joined.first.real();
      if (fine() && joined.count > 0 && alike) {
        joined.count += run.count;
        return;
      }
      flush();
      begin = index;
      joined = run;
    });
    flush();
    const double x = shard_x(rank, 0);
    const double w = static_cast<double>(view_.shard_tokens()) * shard_unit_;
    rect("rank", x, y_ + band + 2, w, 18, rank_colour(rank));
    if (w >= 12)
      text("rank", x + w / 2, y_ + band + 15, w >= 50 ? join("rank ", rank) : join(rank));
  }

  void legend() {
    double x = margin;
    y_ += 26;
    const auto sample = [&](offset_t colour, std::string_view name) {
      rect("legend", x, y_, 26, 14, join("url(#pad", colour, ")"));
      text("muted", x + 34, y_ + 11, name);
      x += 110;
    };
    if (view_.has_padding()) sample(0, "padding");
    if (view_.segments > view_.sequences) sample(8, "ghost, padding of no sequence");
    y_ += view_.has_padding() || view_.segments > view_.sequences ? 14 : -26;
  }

  std::string document() const {
    std::string out;
    const double height = y_ + margin;
    write(out, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 ", options_.width, " ", height,
          "' width='", options_.width, "' height='", height,
          "' role='img' font-family='system-ui, Helvetica, Arial, sans-serif' font-size='12'>\n",
          "<title>", escaped(options_.title.empty() ? "packed layout" : options_.title),
          "</title>\n<style>text{fill:#24292f}.muted,.label,.bound{fill:#59636e}"
          ".title{font-size:17px;font-weight:600}.head{font-weight:600}.label{text-anchor:end}"
          ".bound,.token,.rank{text-anchor:middle;font-size:11px}text.rank{fill:#fff}"
          ".flow{opacity:.45}.tick{stroke:#24292f;fill:none}"
          ".batch,.row,.shard,.owner{stroke:#fff;stroke-width:",
          runs_ > 100 ? 0.2 : 1.0, "}</style>\n<defs>\n");
    for (offset_t k = 0; k < 9; ++k) {
      write(out, "<pattern id='pad", k, "' width='7' height='7' patternUnits='userSpaceOnUse' ",
            "patternTransform='rotate(45)'><path d='M0 0h7v7h-7z' fill='#fff'/>",
            "<path d='M0 0h3v7h-3z' fill='", colours[k], "'/></pattern>\n");
    }
    write(out, "</defs>\n<rect class='paper' width='100%' height='100%' rx='10' fill='#fdfdfe'/>\n",
          body_, "</svg>\n");
    return out;
  }

  const View& view_;
  const draw_options& options_;
  double right_;
  double gap_;
  double unit_ = 0;        // of one token of the row
  double shard_unit_ = 0;  // of one token of a shard
  offset_t runs_ = 0;
  double y_ = 14;
  std::string body_;
};

inline void require_options(const draw_options& options) {
  const auto require = [](const char* name, offset_t value, offset_t least) {
    if (value < least || value > max_drawn) {
      reject(name, value, join("it must be from ", least, " to ", max_drawn));
    }
  };
  require("columns", options.columns, 40);
  require("longest", options.longest, 1);
  require("entries", options.entries, 0);
  require("width", options.width, 640);
}

}  // namespace drawing

/// Draws a layout as lines of text: the packed row (a letter per sequence, '.' for padding, '~' for
/// a ghost), which rank owns each token, and every rank's shard.
///
///     std::fputs(draw_text(layout, {.colour = true}).c_str(), stdout);
///
/// Rows of more than options.longest tokens are scaled down, and the text says so. Each line ends
/// in '\n'; without colour and title it is plain ASCII. Allocates. O(runs of the layout).
/// \throws invalid_input for options out of range.
template <layout L>
  requires runs_on<host_t, L>
std::string draw_text(const L& layout, const draw_options& options = {}) {
  drawing::require_options(options);
  const auto view = layout.view();
  return drawing::text_picture(view, options).draw();
}

/// Draws a layout as an SVG document: the batch, the packed row with its bounds, and every rank's
/// shard with what flows into it. It brings its own background and asks for no font. For up to some
/// thousand tokens: there is a rectangle for every run of tokens, and where the ranks share the row
/// in too many pieces, the picture says so instead of who owns what. Allocates. O(runs of the
/// layout).
/// \throws invalid_input for options out of range.
template <layout L>
  requires runs_on<host_t, L>
std::string draw_svg(const L& layout, const draw_options& options = {}) {
  drawing::require_options(options);
  const auto view = layout.view();
  return drawing::svg_picture(view, options).draw();
}

}  // namespace seqpack
