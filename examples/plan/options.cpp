#include "options.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <limits>
#include <seqpack/core/error.hpp>
#include <string>

#include "../command_line/command_line.hpp"
#include "../command_line/lengths.hpp"

namespace plan_text {

namespace {

using command_line::add_number;
using command_line::parse_choice;
using command_line::parse_number;
using command_line::whole_range;
using seqpack::plan_method;
using seqpack::too_long;

/// An option whose text is read once the whole line is known to be one.
template <class F>
void add(CLI::App& app, const char* name, const char* unit, const char* meaning, F&& read) {
  app.add_option_function<std::string>(name, std::forward<F>(read), meaning)->type_name(unit);
}

void add_source(CLI::App& app, options& o) {
  app.add_option(
         "files", o.files,
         "Text files, whose paragraphs are the sequences; without any, licence texts of the "
         "system")
      ->type_name("");
  add_number(app, "--longest", o.longest, "Bytes of a sequence; longer paragraphs are cut",
             {1, most_entries});
  add(app, "--lengths", "LIST", "Tokens per sequence instead, as 5,3,8; \"\" for none",
      [&o](const std::string& text) {
        o.lengths.emplace();
        command_line::append_numbers("lengths", text, *o.lengths);
      });
  add(app, "--lengths-file", "FILE", "The same from a file, one or a comma-separated list per line",
      [&o](const std::string& path) { o.lengths = command_line::read_lengths(path); });
  add_number(app, "--log-normal", o.log_normal,
             "So many lengths of a log-normal distribution instead, of median 1024 and standard "
             "deviation 1, cut at 8192",
             {0, most_entries});
  app.add_option_function<std::string>(
         "--seed",
         [&o](const std::string& text) {
           o.seed = static_cast<std::uint64_t>(
               parse_number("--seed", text, {0, std::numeric_limits<std::int64_t>::max()}));
         },
         "Of these (1)")
      ->type_name("N");
}

void add_plan(CLI::App& app, options& o) {
  add_number(app, "--capacity", o.capacity, "Tokens that a row holds (8192, or --pad-total-to)",
             {1, most_tokens});
  add_number(app, "--ranks", o.ranks,
             "Data-parallel ranks: plans steps too, in which each of them has one row",
             {1, most_ranks});
  add(app, "--method", "NAME",
      "decreasing (few rows), in_order (rows of neighbours), balanced (rows of equal cost), or all "
      "(what text shows by default)",
      [&o](const std::string& text) {
        o.method =
            parse_choice<std::optional<plan_method>>("--method", text,
                                                     {{"decreasing", plan_method::decreasing},
                                                      {"in_order", plan_method::in_order},
                                                      {"balanced", plan_method::balanced},
                                                      {"all", std::nullopt}});
      });
  add(app, "--cost", "NAME",
      "What is balanced: tokens, or attention: 6 h n + n^2 for n tokens, a layer of a transformer",
      [&o](const std::string& text) {
        o.attention = parse_choice<bool>("--cost", text, {{"tokens", false}, {"attention", true}});
      });
  add_number(app, "--hidden", o.hidden, "h of --cost attention", {1, 1 << 20});
  add(app, "--too-long", "NAME",
      "Sequences that no row has room for: refuse, truncate or split (into pieces, each listed "
      "under "
      "the number of its sequence)",
      [&o](const std::string& text) {
        o.too_long = parse_choice<too_long>("--too-long", text,
                                            {{"refuse", too_long::refuse},
                                             {"truncate", too_long::truncate},
                                             {"split", too_long::split}});
      });
}

void require_one_source(const CLI::App& app, const options& o) {
  std::string given;
  for (const char* name : {"files", "--lengths", "--lengths-file", "--log-normal"}) {
    if (app.count(name) == 0) continue;
    if (!given.empty()) {
      seqpack::reject("source of the lengths", given + " and " + name, "give one of them");
    }
    given = name;
  }
  if (!o.log_normal && app.count("--seed") > 0) {
    seqpack::reject("--seed", o.seed, "it goes with --log-normal");
  }
}

}  // namespace

std::optional<options> parse_options(int argc, const char* const* argv) {
  CLI::App app("Plans which sequences share a packed row, and which rank gets which rows",
               "seqpack-plan");
  options o;
  add_source(app, o);
  add_plan(app, o);
  command_line::add_padding(app, o);
  add(app, "--format", "NAME", "text, json or svg", [&o](const std::string& text) {
    o.format = parse_choice<format_choice>("--format", text,
                                           {{"text", format_choice::text},
                                            {"json", format_choice::json},
                                            {"svg", format_choice::svg}});
  });
  if (const auto help = command_line::parse(app, argc, argv)) {
    std::cout << *help;
    return std::nullopt;
  }
  require_one_source(app, o);
  if (!o.method && o.format != format_choice::text) {
    if (app.count("--method") > 0) {
      seqpack::reject("--method", "all",
                      "it must be one of decreasing, in_order, balanced where "
                      "the format is not text");
    }
    o.method = plan_method::decreasing;
  }
  return o;
}

}  // namespace plan_text
