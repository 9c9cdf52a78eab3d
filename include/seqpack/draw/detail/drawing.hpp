/// \file
/// What the pictures of a layout share.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/draw/draw_options.hpp"
#include "seqpack/layout/layout_view.hpp"

namespace seqpack::detail::drawing {

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
    f(row + real, token_run{{first.slot, first.index + real, first.length}, run.count - real});
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

inline void require_options(const draw_options& options) {
  const auto require = [](const char* name, offset_t value, offset_t least) {
    if (value < least || value > max_drawn) {
      reject(name, value, join("it must be from ", least, " to ", max_drawn));
    }
  };
  require("columns", options.columns, 40);
  require("longest", options.longest, 1);
  require("entries", options.entries, 0);
  require("rows", options.rows, 0);
  require("width", options.width, 640);
}

}  // namespace seqpack::detail::drawing
