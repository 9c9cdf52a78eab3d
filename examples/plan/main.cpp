// seqpack-plan: plans which sequences share a packed row, and which data-parallel rank gets which rows:
// of text files, of lengths that are given, or of a log-normal distribution.
#include <chrono>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <optional>
#include <seqpack/draw/draw_plan_svg.hpp>
#include <seqpack/plan/plan_rows.hpp>
#include <seqpack/plan/plan_steps.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../command_line/command_line.hpp"
#include "../text_tools/corpus.hpp"
#include "../text_tools/format.hpp"
#include "log_normal.hpp"
#include "options.hpp"
#include "report.hpp"

namespace {

using namespace plan_text;
using seqpack::plan_method;

struct source {
  std::string name;
  std::vector<offset_t> lengths;
};

/// The paragraphs of text files, as pack_text and train_text have them.
source read_files(const options& o) {
  std::vector<std::filesystem::path> files(o.files.begin(), o.files.end());
  if (files.empty()) files = text_tools::default_files();
  source result{text_tools::counted(static_cast<offset_t>(files.size()), "file"), {}};
  text_tools::paragraph_reader reader(std::move(files), static_cast<std::size_t>(o.longest));
  for (auto some = reader.next(1024); !some.empty(); some = reader.next(1024)) {
    for (const std::string& paragraph : some) {
      result.lengths.push_back(static_cast<offset_t>(paragraph.size()));
    }
  }
  if (result.lengths.empty()) throw std::runtime_error("there is no text in the input");
  return result;
}

/// What the library would plan but sums here need not hold.
void require_shown(const std::vector<offset_t>& lengths) {
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    if (lengths[k] <= most_tokens) continue;
    seqpack::reject(seqpack::entry_name("lengths", static_cast<offset_t>(k)), lengths[k],
                    "it must be at most " + std::to_string(most_tokens));
  }
}

source read_source(const options& o) {
  if (o.lengths) {
    require_shown(*o.lengths);
    return {"Lengths as given", *o.lengths};
  }
  if (o.log_normal) {
    return {"Log-normal lengths, seed " + std::to_string(o.seed),
            log_normal_lengths(*o.log_normal, o.seed)};
  }
  return read_files(o);
}

/// Calls f, and says how long it took.
template <class F>
auto timed(double& seconds, const F& f) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  auto result = f();
  seconds = std::chrono::duration<double>(clock::now() - start).count();
  return result;
}

template <class Padding>
planned_rows plan(const std::vector<offset_t>& lengths, const Padding& padding, const options& o,
                  plan_method method) {
  planned_rows result;
  result.method = method;
  const offset_t capacity = o.row_capacity();
  result.plan = timed(result.seconds, [&] {
    return seqpack::plan_rows(lengths, capacity, padding, {},
                              {.method = method, .too_long = o.too_long, .cost = o.cost()});
  });
  result.summary = seqpack::summary_of(result.plan, lengths, capacity, padding, {}, o.cost());
  return result;
}

template <class Padding>
std::optional<planned_steps> plan_steps(const std::vector<offset_t>& lengths,
                                        const Padding& padding, const options& o) {
  if (!o.ranks) return std::nullopt;
  planned_steps result;
  const offset_t budget = o.row_capacity();
  result.plan = timed(result.seconds, [&] {
    return seqpack::plan_steps(lengths, budget, *o.ranks, padding, {},
                               {.cost = o.cost(), .too_long = o.too_long});
  });
  result.summary = seqpack::summary_of(result.plan, lengths, budget, padding, {}, o.cost());
  return result;
}

/// The plan of the method that was chosen, in all its numbers or as a picture.
template <class Padding>
void show(std::ostream& out, const std::vector<offset_t>& lengths, const Padding& padding,
          const options& o) {
  const planned_rows rows = plan(lengths, padding, o, *o.method);
  const std::optional<planned_steps> steps = plan_steps(lengths, padding, o);
  if (o.format == format_choice::json) {
    write_json(out, rows, steps);
  } else if (steps) {
    out << seqpack::draw_plan_svg(steps->plan, lengths, o.row_capacity(), padding);
  } else {
    out << seqpack::draw_plan_svg(rows.plan, lengths, o.row_capacity(), padding);
  }
}

/// The numbers of one plan or of all.
template <class Padding>
void tell(std::ostream& out, const source& from, const Padding& padding, const options& o) {
  std::vector<planned_rows> plans;
  for (const auto method :
       {plan_method::decreasing, plan_method::in_order, plan_method::balanced}) {
    if (o.method.value_or(method) == method) {
      plans.push_back(plan(from.lengths, padding, o, method));
    }
  }
  const std::optional<planned_steps> steps = plan_steps(from.lengths, padding, o);
  print_lengths(out, from.name, from.lengths);
  print_rows(out, o, plans);
  if (steps) print_steps(out, *steps);
}

void run(std::ostream& out, const options& o) {
  const source from = read_source(o);
  command_line::with_padding(o, [&](const auto& padding) {
    if (o.format == format_choice::text) return tell(out, from, padding, o);
    show(out, from.lengths, padding, o);
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto options = parse_options(argc, argv);
    if (options) run(std::cout, *options);
    if (!std::cout.flush()) throw std::runtime_error("cannot write to standard output");
    return 0;
  } catch (const std::bad_alloc&) {
    return command_line::tell_error("seqpack-plan", "there is not enough memory");
  } catch (const std::exception& error) {
    return command_line::tell_error("seqpack-plan", error.what());
  }
}
