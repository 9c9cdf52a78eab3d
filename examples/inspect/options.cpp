#include "options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <iterator>
#include <limits>
#include <seqpack/core/error.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace inspect {

namespace {

// The values as they were typed: CLI11 only splits the command line, so that every refusal has
// one form.
struct raw_options {
  std::string lengths, lengths_file, width, pad_each, pad_total_multiple, pad_total_to, cp_size,
      label_shift;
  std::string tail = "absorb";
  std::string sharding = "zigzag";
  std::string format = "text";
};

/// A value as an error shows it.
std::string shown(std::string_view text) {
  constexpr std::size_t most = 60;
  if (text.empty()) return "empty";
  return text.size() <= most ? std::string(text) : std::string(text.substr(0, most)) + "...";
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

offset_t parse_number(const std::string& entry, std::string_view text) {
  using limits = std::numeric_limits<offset_t>;
  offset_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end) {
    seqpack::reject(entry, shown(text),
                    "it must be a whole number from " + std::to_string(limits::min()) + " to " +
                        std::to_string(limits::max()));
  }
  return number;
}

template <class Choice>
Choice parse_choice(const char* entry, const std::string& text,
                    std::initializer_list<std::pair<const char*, Choice>> choices) {
  std::string names;
  for (const auto& [name, choice] : choices) {
    if (text == name) return choice;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  seqpack::reject(entry, shown(text), "it must be one of " + names);
}

/// Appends the numbers of a comma-separated line; an empty line has none.
void append_lengths(std::string_view line, std::vector<offset_t>& lengths) {
  if (trimmed(line).empty()) return;
  for (bool more = true; more;) {
    const std::size_t comma = line.find(',');
    const auto index = static_cast<offset_t>(lengths.size());
    lengths.push_back(
        parse_number(seqpack::entry_name("lengths", index), trimmed(line.substr(0, comma))));
    more = comma != std::string_view::npos;
    if (more) line.remove_prefix(comma + 1);
  }
}

std::vector<offset_t> read_lengths(const std::string& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path)) {
    seqpack::reject("--lengths-file", shown(path), "it must be a file that can be read");
  }
  std::vector<offset_t> lengths;
  for (std::string line; std::getline(file, line);) append_lengths(line, lengths);
  if (file.bad()) seqpack::reject("--lengths-file", shown(path), "reading it failed");
  return lengths;
}

/// The arguments, last one first as CLI11 wants them. "--name=" becomes "--name" and an empty
/// value, which CLI11 would otherwise look for in the next argument.
std::vector<std::string> reversed_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
      arguments.emplace_back();
      arguments.push_back(argument.substr(0, argument.size() - 1));
    } else {
      arguments.push_back(argument);
    }
  }
  return arguments;
}

std::optional<offset_t> optional_number(const CLI::App& app, const char* name,
                                        const std::string& text) {
  if (app.count(name) == 0) return std::nullopt;
  return parse_number(name, text);
}

offset_t number_or(const CLI::App& app, const char* name, const std::string& text,
                   offset_t absent) {
  return optional_number(app, name, text).value_or(absent);
}

void describe(CLI::App& app, raw_options& raw) {
  app.add_option("--lengths", raw.lengths, "Real tokens per sequence, as 5,3,8; \"\" for none")
      ->type_name("LIST");
  app.add_option("--lengths-file", raw.lengths_file,
                 "The same from a file, separated by commas or line breaks")
      ->type_name("FILE");
  app.add_option("--width", raw.width, "Width of a batch row, which no length may pass")
      ->type_name("S");
  app.add_option("--pad-each", raw.pad_each, "Pad each sequence to a multiple (1)")->type_name("M");
  app.add_option("--pad-total-multiple", raw.pad_total_multiple, "Pad the total to a multiple")
      ->type_name("M");
  app.add_option("--pad-total-to", raw.pad_total_to, "Pad the total to a number of tokens")
      ->type_name("N");
  app.add_option("--tail", raw.tail, "Who gets the tail: absorb (the last sequence) or ghost")
      ->type_name("NAME");
  app.add_option("--cp-size", raw.cp_size, "Context-parallel ranks (1)")->type_name("CP");
  app.add_option("--sharding", raw.sharding, "zigzag, contiguous or striped")->type_name("NAME");
  app.add_option("--label-shift", raw.label_shift, "The label is the K-th next token (1)")
      ->type_name("K");
  app.add_option("--format", raw.format, "text, json or svg")->type_name("NAME");
}

/// Whether to go on: false after printing the help.
bool parse_command_line(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(reversed_arguments(argc, argv));
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return false;
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(error.what());
  }
  return true;
}

}  // namespace

std::optional<options> parse_options(int argc, const char* const* argv) {
  CLI::App app("Shows how sequences are packed into one row and sharded over ranks",
               "seqpack-inspect");
  raw_options raw;
  describe(app, raw);
  if (!parse_command_line(app, argc, argv)) return std::nullopt;

  const bool from_file = app.count("--lengths-file") > 0;
  if (from_file == (app.count("--lengths") > 0)) {
    seqpack::reject("lengths", from_file ? "given twice" : "missing",
                    "give either --lengths or --lengths-file");
  }
  options result;
  if (from_file) {
    result.lengths = read_lengths(raw.lengths_file);
  } else {
    append_lengths(raw.lengths, result.lengths);
  }
  result.width = number_or(app, "--width", raw.width, result.width);
  result.pad_each = number_or(app, "--pad-each", raw.pad_each, 1);
  result.pad_total_multiple = optional_number(app, "--pad-total-multiple", raw.pad_total_multiple);
  result.pad_total_to = optional_number(app, "--pad-total-to", raw.pad_total_to);
  result.ghost_tail = parse_choice<bool>("--tail", raw.tail, {{"absorb", false}, {"ghost", true}});
  result.cp_size = number_or(app, "--cp-size", raw.cp_size, 1);
  result.sharding = parse_choice<sharding_choice>("--sharding", raw.sharding,
                                                  {{"zigzag", sharding_choice::zigzag},
                                                   {"contiguous", sharding_choice::contiguous},
                                                   {"striped", sharding_choice::striped}});
  result.label_shift = number_or(app, "--label-shift", raw.label_shift, 1);
  result.format = parse_choice<format_choice>(
      "--format", raw.format,
      {{"text", format_choice::text}, {"json", format_choice::json}, {"svg", format_choice::svg}});
  return result;
}

}  // namespace inspect
