/// \file
/// Draws a layout as text.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/draw/detail/drawing.hpp"
#include "seqpack/draw/draw_options.hpp"
#include "seqpack/layout/layout_view.hpp"

namespace seqpack::detail::drawing {

/// One character of a text: what it shows and whose it is (-1: nobody's).
struct cell {
  char glyph = ' ';
  offset_t sequence = -1;
  friend bool operator==(const cell&, const cell&) = default;
};

/// Writes cells, coloured by sequence where asked.
class cell_writer {
 public:
  cell_writer(std::string& out, bool colour) : out_(out), colour_(colour) {}

  void emit(const cell& c) {
    style(c.sequence, c.glyph == '.');
    out_ += c.glyph;
  }
  /// Changes the colour where it is not that of the character before.
  /// \param sequence -1: none
  void style(offset_t sequence, bool padding) {
    if (!colour_) return;
    const offset_t code = sequence < 0 ? 0 : 31 + sequence % 6 + (padding ? 100 : 0);
    if (code == style_) return;
    if (code == 0) {
      out_ += "\x1b[0m";
    } else {
      write(out_, padding ? "\x1b[0;2;" : "\x1b[0;1;", code % 100, "m");
    }
    style_ = code;
  }

 private:
  std::string& out_;
  bool colour_;
  offset_t style_ = 0;
};

/// Cells of a line that show some tokens each.
class scaled_line {
 public:
  scaled_line(offset_t tokens, offset_t per_cell)
      : cells(static_cast<std::size_t>(divide(tokens + per_cell - 1, per_cell))),
        per_cell_(per_cell) {}

  /// Shows tokens in all cells that they are in, '+' where they share one with others.
  void mark(offset_t first, offset_t count, const cell& value) {
    const offset_t end = divide(first + count - 1, per_cell_) + 1;
    for (offset_t k = divide(first, per_cell_); k < end; ++k) {
      cell& at = cells[static_cast<std::size_t>(k)];
      at = at == cell{} || at == value ? value : cell{'+', -1};
    }
  }

  std::vector<cell> cells;

 private:
  offset_t per_cell_;
};

template <class View>
class text_picture {
 public:
  text_picture(const View& view, const draw_options& options)
      : view_(view),
        options_(options),
        label_width_(max_of(8, 7 + digits(view.cp.size() - 1))),
        line_width_(options.columns - label_width_),
        per_cell_(max_of(1, divide(view.total + options.longest - 1, options.longest))),
        cells_(out_, options.colour) {}

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
  using cell_line = std::vector<cell>;
  struct labelled {
    std::string label;
    cell_line cells;
  };

  static offset_t digits(offset_t n) { return static_cast<offset_t>(std::to_string(n).size()); }

  scaled_line blank(offset_t tokens) const { return {tokens, per_cell_}; }

  template <class Place>
  cell_line tokens(Place at) const {
    scaled_line line = blank(view_.rows(at));
    for_each_piece(view_, at, [&](offset_t row, const token_run& run) {
      const offset_t s = run.first.slot;
      const bool ghost = s >= view_.sequences;
      line.mark(row, run.count,
                ghost ? cell{'~', -1} : cell{run.first.real() ? letter(s) : '.', s});
    });
    return line.cells;
  }

  cell_line owners() const {
    scaled_line line = blank(view_.total);
    for_each_run(view_, all_shards, 0, view_.total, [&](offset_t row, const token_run& run) {
      const offset_t rank = divide(row, view_.shard_tokens());
      line.mark(view_.row_of(full_row, run.first.slot, run.first.index), run.count,
                {"0123456789abcdefghijklmnopqrstuvwxyz"[rank % 36], -1});
    });
    return line.cells;
  }

  /// The numbers of cu_seqlens_padded, each where its sequence begins, as far as there is room.
  cell_line bounds() const {
    scaled_line line = blank(view_.total);
    offset_t free = 0;
    for_each_run(view_, full_row, 0, view_.total, [&](offset_t row, const token_run&) {
      const offset_t at = divide(row, per_cell_);
      const std::string number = std::to_string(row);
      const offset_t end = at + static_cast<offset_t>(number.size());
      if (at < free || end > static_cast<offset_t>(line.cells.size())) return;
      if (remainder(at, line_width_) + end - at > line_width_) return;
      for (offset_t k = at; k < end; ++k) {
        line.cells[static_cast<std::size_t>(k)].glyph = number[static_cast<std::size_t>(k - at)];
      }
      free = end + 1;
    });
    return line.cells;
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
          cells_.emit(l.cells[k]);
        }
        cells_.style(-1, false);
        out_.erase(out_.find_last_not_of(' ') + 1);
        if (out_.back() != '\n') out_ += '\n';  // nothing on it: no line
      }
    }
  }

  void legend() {
    for (offset_t s = 0; s < min_of(view_.sequences, options_.entries); ++s) {
      cells_.style(s, false);
      out_ += letter(s);
      cells_.style(-1, false);
      write(out_, "  sequence ", view_.sequence_in(s), ": ", count_of(view_.length(s), "token"),
            ", padded to ", view_.padded_length(s), "\n");
    }
    const offset_t more = view_.sequences - min_of(view_.sequences, options_.entries);
    if (more > 0) write(out_, "... and ", count_of(more, "more sequence"), "\n");
    if (view_.sequences > 52) write(out_, "letters repeat after 52 sequences\n");
    const offset_t unpacked = view_.batch - view_.sequences;
    if (unpacked > 0) write(out_, count_of(unpacked, "sequence"), " not packed\n");
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
  std::string out_;
  cell_writer cells_;
};

}  // namespace seqpack::detail::drawing
