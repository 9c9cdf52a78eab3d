#include "options.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <seqpack/core/error.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "../command_line/command_line.hpp"

namespace inspect {

namespace {

using command_line::parse_choice;
using command_line::parse_number;
using command_line::shown;
using command_line::whole_range;

// The values as they were typed: CLI11 only splits the command line, so that every refusal has
// one form.
struct raw_options {
  std::string lengths, lengths_file, width, pad_each, pad_total_multiple, pad_total_to, cp_size,
      label_shift;
  std::string tail = "absorb";
  std::string sharding = "zigzag";
  std::string format = "text";
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
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

/// A file of lengths, which may be an endless one.
std::string read_text(const std::string& path) {
  constexpr std::size_t most_bytes = std::size_t{1} << 26;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) {
    seqpack::reject("--lengths-file", shown(path), "it must be a file that can be read");
  }
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_bytes) {
      seqpack::reject("--lengths-file", shown(path),
                      "it must be a file of at most " + std::to_string(most_bytes) + " bytes");
    }
  }
  if (file.bad()) seqpack::reject("--lengths-file", shown(path), "reading it failed");
  return text;
}

std::vector<offset_t> read_lengths(const std::string& path) {
  std::istringstream text(read_text(path));
  std::vector<offset_t> lengths;
  for (std::string line; std::getline(text, line);) append_lengths(line, lengths);
  return lengths;
}

std::optional<offset_t> optional_number(const CLI::App& app, const char* name,
                                        const std::string& text, whole_range range) {
  if (app.count(name) == 0) return std::nullopt;
  return parse_number(name, text, range);
}

void describe(CLI::App& app, raw_options& raw) {
  app.add_option("--lengths", raw.lengths, "Real tokens per sequence, as 5,3,8; \"\" for none")
      ->type_name("LIST");
  app.add_option("--lengths-file", raw.lengths_file,
                 "The same from a file, separated by commas or line breaks")
      ->type_name("FILE");
  app.add_option("--width", raw.width, "Width of the batch, which no length may pass")
      ->type_name("S");
  app.add_option("--pad-each", raw.pad_each, "Pad each sequence to a multiple (1)")->type_name("M");
  app.add_option("--pad-total-multiple", raw.pad_total_multiple, "Pad the total to a multiple")
      ->type_name("M");
  app.add_option("--pad-total-to", raw.pad_total_to, "Pad the total to a number of tokens")
      ->type_name("N");
  app.add_option("--tail", raw.tail, "Who gets the tail: absorb (the last sequence) or ghost")
      ->type_name("NAME");
  app.add_option("--cp-size", raw.cp_size, "Context-parallel ranks (1)")->type_name("CP");
  app.add_option("--sharding", raw.sharding, "zigzag, contiguous, striped or row_contiguous")
      ->type_name("NAME");
  app.add_option("--label-shift", raw.label_shift, "The label is the K-th next token (1)")
      ->type_name("K");
  app.add_option("--format", raw.format, "text, json or svg")->type_name("NAME");
}

}  // namespace

std::optional<options> parse_options(int argc, const char* const* argv) {
  CLI::App app("Shows how sequences are packed into one row and sharded over ranks",
               "seqpack-inspect");
  raw_options raw;
  describe(app, raw);
  if (const auto help = command_line::parse(app, argc, argv)) {
    std::cout << *help;
    return std::nullopt;
  }

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
  // A number that pads to more than can be shown, or cuts into more, has its name in the error.
  const auto number = [&](const char* name, const std::string& text, whole_range range) {
    return optional_number(app, name, text, range);
  };
  constexpr whole_range tokens{1, most_entries};
  result.width = number("--width", raw.width, {0, seqpack::max_tokens}).value_or(result.width);
  result.pad_each = number("--pad-each", raw.pad_each, tokens).value_or(1);
  result.pad_total_multiple = number("--pad-total-multiple", raw.pad_total_multiple, tokens);
  result.pad_total_to = number("--pad-total-to", raw.pad_total_to, tokens);
  result.ghost_tail = parse_choice<bool>("--tail", raw.tail, {{"absorb", false}, {"ghost", true}});
  result.cp_size = number("--cp-size", raw.cp_size, {1, most_ranks}).value_or(1);
  using seqpack::sharding_kind;
  result.sharding =
      parse_choice<sharding_kind>("--sharding", raw.sharding,
                                  {{"zigzag", sharding_kind::zigzag},
                                   {"contiguous", sharding_kind::contiguous},
                                   {"striped", sharding_kind::striped},
                                   {"row_contiguous", sharding_kind::row_contiguous}});
  result.label_shift =
      number("--label-shift", raw.label_shift, {1, whole_range{}.most}).value_or(1);
  result.format = parse_choice<format_choice>(
      "--format", raw.format,
      {{"text", format_choice::text}, {"json", format_choice::json}, {"svg", format_choice::svg}});
  return result;
}

}  // namespace inspect
