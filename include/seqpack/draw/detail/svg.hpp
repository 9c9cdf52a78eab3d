/// \file
/// Draws a layout as SVG.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/draw/detail/drawing.hpp"
#include "seqpack/draw/detail/svg_page.hpp"
#include "seqpack/draw/draw_options.hpp"
#include "seqpack/layout/layout_view.hpp"

namespace seqpack::detail::drawing {

/// The batch, the packed row, and the shards.
template <class View>
class svg_picture : svg_page {
 public:
  svg_picture(const View& view, const draw_options& options)
      : svg_page(options),
        view_(view),
        right_(static_cast<double>(options.width) - margin),
        gap_(std::min(10.0, (right_ - left) / 4 / static_cast<double>(view.cp.size()))) {
    const auto total = static_cast<double>(max_of(view.total, 1));
    unit_ = (right_ - left) / total;
    shard_unit_ = (right_ - left - gap_ * static_cast<double>(view.cp.size() - 1)) / total;
    for_each_run(view, all_shards, 0, view.total, [&](offset_t, const token_run&) { ++runs_; });
  }

  std::string draw() {
    title();
    text("muted", margin, y_ += 22, summary(view_));
    batch();
    if (view_.total > 0) row();
    if (view_.total > 0 && view_.cp.size() > 1) ranks();
    legend(view_.has_padding(), view_.segments > view_.sequences);
    return document("packed layout", runs_ > 100 ? 0.2 : 1.0);
  }

 private:
  static constexpr double band = 30;
  static constexpr double flow = 80;            // from the row to the shards
  static constexpr offset_t finest_runs = 300;  // above it, who owns what is too fine to be drawn

  double x_of(offset_t row) const { return left + static_cast<double>(row) * unit_; }
  double shard_x(offset_t rank, offset_t index) const {
    const offset_t row = rank * view_.shard_tokens() + index;
    return left + static_cast<double>(row) * shard_unit_ + static_cast<double>(rank) * gap_;
  }
  bool fine() const { return runs_ > finest_runs; }

  static std::string_view rank_colour(offset_t rank) {
    constexpr std::string_view dark[] = {"#28527a", "#8a4b14", "#2c6e49", "#8c2f39",
                                         "#5b3f8c", "#176b6b", "#7a6413", "#5e4a36"};
    return dark[rank % 8];
  }
  std::string fill_of(const token_ref& token) const {
    const bool ghost = token.slot >= view_.sequences;
    return svg_page::fill_of(ghost ? ghost_colour : token.slot % 8, token.real());
  }

  void piece(std::string_view kind, double x, double unit, double height, const token_run& run) {
    const double w = unit * static_cast<double>(run.count);
    rect(kind, x, y_, w, height, fill_of(run.first));
    if (!run.first.real()) return;
    const char name[] = {letter(run.first.slot), '\0'};
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
      const double x = x_of(view_.row_of(full_row, run.first.slot, run.first.index));
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
      const double a = x_of(view_.row_of(full_row, run.first.slot, run.first.index));
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
          run.first.slot == joined.first.slot && run.first.real() == joined.first.real();
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

  const View& view_;
  double right_;
  double gap_;
  double unit_ = 0;        // of one token of the row
  double shard_unit_ = 0;  // of one token of a shard
  offset_t runs_ = 0;
};

}  // namespace seqpack::detail::drawing
