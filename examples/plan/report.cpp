#include "report.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <iomanip>
#include <map>
#include <sstream>
#include <string>

#include "../text_tools/format.hpp"

namespace plan_text {

namespace {

using text_tools::counted;
using text_tools::percent;
using text_tools::with_decimals;
using text_tools::with_separators;
using text_tools::with_unit;

using lines = std::vector<std::vector<std::string>>;

/// Aligns columns, the first one to the left.
void print_table(std::ostream& out, const lines& table) {
  std::vector<std::size_t> widths(table.front().size());
  for (const auto& line : table) {
    for (std::size_t k = 0; k < line.size(); ++k) widths[k] = std::max(widths[k], line[k].size());
  }
  for (const auto& line : table) {
    for (std::size_t k = 0; k < line.size(); ++k) {
      out << (k == 0 ? std::left : std::right) << (k == 0 ? "" : "  ")
          << std::setw(static_cast<int>(widths[k])) << line[k];
    }
    out << '\n';
  }
}

std::string share(double part) {
  return with_decimals(100 * part, 1) + " %";
}
std::string milliseconds(double seconds) {
  return with_decimals(1000 * seconds, 2) + " ms";
}
std::string cost_text(double cost) {
  if (cost < 1e6) return with_separators(static_cast<std::int64_t>(cost + 0.5));
  std::string text = with_unit(cost, "");
  while (text.back() == ' ') text.pop_back();
  return text;
}

const char* name_of(seqpack::plan_method method) {
  switch (method) {
    case seqpack::plan_method::in_order: return "in_order";
    case seqpack::plan_method::balanced: return "balanced";
    case seqpack::plan_method::decreasing: break;
  }
  return "decreasing";
}

/// A bar for each range of lengths between powers of two.
void print_histogram(std::ostream& out, std::span<const offset_t> lengths, offset_t longest) {
  std::map<int, offset_t> counts;  // by the bits of the length
  offset_t most = 1;
  for (const offset_t length : lengths) {
    most = std::max(most,
                    ++counts[static_cast<int>(std::bit_width(static_cast<std::uint64_t>(length)))]);
  }
  if (counts.empty()) return;
  const int first = counts.begin()->first;
  const int last = counts.rbegin()->first;
  lines table{{"length", "sequences"}};
  std::vector<std::string> bars{""};
  for (int bits = first; bits <= last; ++bits) {
    const offset_t low = bits == 0 ? 0 : offset_t{1} << (bits - 1);
    const offset_t high = bits == 0 ? 0 : std::min(2 * low - 1, longest);
    const offset_t count = counts[bits];
    table.push_back({with_separators(low) + (high > low ? " to " + with_separators(high) : ""),
                     with_separators(count)});
    constexpr offset_t width = 50;
    bars.emplace_back(static_cast<std::size_t>((count * width + most - 1) / most), '#');
  }
  std::ostringstream text;
  print_table(text, table);
  std::istringstream printed(text.str());
  std::string line;
  for (const std::string& bar : bars) {
    std::getline(printed, line);
    out << line << (bar.empty() ? "" : "  ") << bar << '\n';
  }
  out << '\n';
}

void print_cost(std::ostream& out, const options& o) {
  out << "cost: the padded tokens of a sequence";
  if (o.attention) {
    out << ", n, as 6 h n + n^2 with h = " << with_separators(o.hidden)
        << ": a layer of a transformer";
  }
  out << '\n';
}

/// What is printed of a step.
std::vector<std::string> step_line(const planned_steps& steps, offset_t step) {
  const auto ranks = static_cast<std::size_t>(steps.plan.ranks());
  const auto first = static_cast<std::size_t>(step) * ranks;
  const auto of_step = [&](const std::vector<offset_t>& rows) {
    return std::span(rows).subspan(first, ranks);
  };
  offset_t sequences = 0;
  for (offset_t rank = 0; rank < steps.plan.ranks(); ++rank) {
    sequences += static_cast<offset_t>(steps.plan.micro_batch(step, rank).size());
  }
  const auto tokens = of_step(steps.summary.micro_batches.row_tokens);
  const auto [least, most] = std::minmax_element(tokens.begin(), tokens.end());
  const auto costs = of_step(steps.summary.micro_batches.row_costs);
  const auto dearest = static_cast<double>(*std::max_element(costs.begin(), costs.end()));
  double mean = 0;
  for (const offset_t cost : costs) mean += static_cast<double>(cost) / static_cast<double>(ranks);
  return {std::to_string(step),
          with_separators(sequences),
          with_separators(*least),
          with_separators(*most),
          cost_text(dearest),
          cost_text(mean),
          share(dearest > 0 ? 1 - mean / dearest : 0)};
}

/// Writes lists of JSON.
class list_writer {
 public:
  explicit list_writer(std::ostream& out) : out_(out) {}

  /// \param write writes entry k
  template <class F>
  void list(offset_t size, const F& write) {
    out_ << '[';
    for (offset_t k = 0; k < size; ++k) {
      if (k > 0) out_ << ',';
      write(k);
    }
    out_ << ']';
  }
  /// The sequences of a row. Of pieces, those that they are of.
  void row(const seqpack::row_plan& plan, offset_t k) {
    const auto entries = plan.row(k);
    list(static_cast<offset_t>(entries.size()), [&](offset_t slot) {
      const offset_t entry = entries[static_cast<std::size_t>(slot)];
      out_ << (plan.pieces().empty() ? entry
                                     : plan.pieces()[static_cast<std::size_t>(entry)].sequence);
    });
  }

 private:
  std::ostream& out_;
};

/// In as few digits as say which number it is.
std::string shortest(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

}  // namespace

void print_lengths(std::ostream& out, const std::string& source,
                   std::span<const offset_t> lengths) {
  offset_t tokens = 0;
  offset_t longest = 0;
  for (const offset_t length : lengths) {
    tokens += length;
    longest = std::max(longest, length);
  }
  const auto count = static_cast<offset_t>(lengths.size());
  out << source << ": " << counted(count, "sequence") << ", " << counted(tokens, "token")
      << ", the longest of " << with_separators(longest)
      << "\nAs [B, S]: " << counted(count * longest, "token") << ", "
      << percent(count * longest - tokens, count * longest) << " of them padding\n\n";
  print_histogram(out, lengths, longest);
}

void print_rows(std::ostream& out, const options& o, std::span<const planned_rows> plans) {
  lines table{{"method", "rows", "lower bound", "fill", "longest row", "largest cost", "mean cost",
               "time"}};
  for (const planned_rows& p : plans) {
    const seqpack::plan_summary& s = p.summary;
    table.push_back({name_of(p.method), with_separators(s.rows), with_separators(s.lower_bound),
                     share(s.fill), with_separators(s.longest_row),
                     cost_text(static_cast<double>(s.largest_cost)), cost_text(s.mean_cost),
                     milliseconds(p.seconds)});
  }
  print_table(out, table);
  print_cost(out, o);
}

void print_steps(std::ostream& out, const planned_steps& steps) {
  const seqpack::step_summary& s = steps.summary;
  const auto cost = static_cast<double>(s.cost);
  out << '\n'
      << counted(s.ranks, "rank") << ": " << counted(s.steps, "step") << ", "
      << counted(s.ranks * s.steps, "micro-batch", "es") << ", " << with_separators(s.empty)
      << " of them empty; fill " << share(s.micro_batches.fill) << "; ranks wait "
      << share(cost > 0 ? 1 - s.mean_cost / cost : 0) << " of the time; planned in "
      << milliseconds(steps.seconds) << "\n\n";
  if (s.steps == 0) return;
  constexpr offset_t most = 6;  // at either end
  lines table{{"step", "sequences", "fewest tokens", "most tokens", "largest cost", "mean cost",
               "waiting"}};
  for (offset_t step = 0; step < s.steps; ++step) {
    if (step < most || s.steps - step <= most) {
      table.push_back(step_line(steps, step));
    } else if (step == most) {
      table.push_back({"..."});
    }
  }
  print_table(out, table);
  out << "waiting: for the rank with the largest cost\n";
}

void write_json(std::ostream& out, const planned_rows& rows,
                const std::optional<planned_steps>& steps) {
  list_writer writer(out);
  out << "{\"rows\":";
  writer.list(rows.plan.rows(), [&](offset_t k) { writer.row(rows.plan, k); });
  out << ",\"row_tokens\":";
  const auto& tokens = rows.summary.row_tokens;
  writer.list(static_cast<offset_t>(tokens.size()),
              [&](offset_t k) { out << tokens[static_cast<std::size_t>(k)]; });
  out << ",\"lower_bound\":" << rows.summary.lower_bound
      << ",\"fill\":" << shortest(rows.summary.fill);
  if (steps) {
    const seqpack::step_plan& plan = steps->plan;
    out << ",\"steps\":";
    writer.list(plan.steps(), [&](offset_t step) {
      writer.list(plan.ranks(), [&](offset_t rank) {
        writer.row(plan.micro_batches(), step * plan.ranks() + rank);
      });
    });
  }
  out << "}\n";
}

}  // namespace plan_text
