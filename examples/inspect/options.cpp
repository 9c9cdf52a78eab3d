#include "options.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <seqpack/core/error.hpp>
#include <string>
#include <vector>

#include "../command_line/command_line.hpp"
#include "../command_line/lengths.hpp"
#include "../command_line/padding.hpp"

namespace inspect {

namespace {

using command_line::append_numbers;
using command_line::parse_choice;
using command_line::parse_number;
using command_line::read_lengths;
using command_line::whole_range;

// The values as they were typed: CLI11 only splits the command line, so that every refusal has
// one form.
struct raw_options {
  std::string lengths, lengths_file, segment_ids, position_ids, padding_id, position_start,
      tail_tokens, width, cp_size, label_shift;
  std::string sharding = "zigzag";
  std::string format = "text";
};

std::optional<offset_t> optional_number(const CLI::App& app, const char* name,
                                        const std::string& text, whole_range range) {
  if (app.count(name) == 0) return std::nullopt;
  return parse_number(name, text, range);
}

/// The lengths, from where they are given.
std::optional<std::vector<offset_t>> lengths_of(const CLI::App& app, const raw_options& raw) {
  const bool from_file = app.count("--lengths-file") > 0;
  const bool in_words = app.count("--lengths") > 0;
  if (from_file && in_words) {
    seqpack::reject("lengths", "given twice", "give either --lengths or --lengths-file");
  }
  if (from_file) return read_lengths(raw.lengths_file);
  if (!in_words) return std::nullopt;
  std::vector<offset_t> lengths;
  append_numbers("lengths", raw.lengths, lengths);
  return lengths;
}

/// \throws invalid_input for an option that another one has no use for.
void require_absent(const CLI::App& app, const char* name, const char* reason) {
  if (app.count(name) > 0) seqpack::reject(name, "given", reason);
}

/// Where the row comes from, and what goes with that.
void read_source(const CLI::App& app, const raw_options& raw, options& result) {
  const bool segments = app.count("--segment-ids") > 0;
  const bool positions = app.count("--position-ids") > 0;
  if (segments && positions) {
    seqpack::reject("ids", "given twice", "give either --segment-ids or --position-ids");
  }
  result.lengths = lengths_of(app, raw);
  if (!segments) require_absent(app, "--padding-id", "it goes with --segment-ids");
  if (!positions) require_absent(app, "--position-start", "it goes with --position-ids");
  if (!segments && !positions) {
    if (!result.lengths) {
      seqpack::reject("lengths", "missing",
                      "give either --lengths or --lengths-file, --segment-ids or --position-ids");
    }
    require_absent(app, "--tail-tokens", "it goes with --segment-ids or --position-ids");
    return;
  }
  for (const char* padding : {"--pad-each", "--pad-total-multiple", "--pad-total-to"}) {
    require_absent(app, padding, "a row that is given as ids has its padding");
  }
  result.source = segments ? row_source::segment_ids : row_source::position_ids;
  append_numbers(segments ? "segment_ids" : "position_ids",
                 segments ? raw.segment_ids : raw.position_ids, result.ids);
  if (raw.padding_id == "none") {
    result.padding_id.reset();
  } else {
    result.padding_id = optional_number(app, "--padding-id", raw.padding_id, {}).value_or(0);
  }
  result.position_start =
      optional_number(app, "--position-start", raw.position_start, {}).value_or(0);
  result.tail_tokens = optional_number(app, "--tail-tokens", raw.tail_tokens, {0, most_entries})
                           .value_or(seqpack::dynamic);
}

void describe(CLI::App& app, raw_options& raw, options& result) {
  app.add_option("--lengths", raw.lengths, "Real tokens per sequence, as 5,3,8; \"\" for none")
      ->type_name("LIST");
  app.add_option("--lengths-file", raw.lengths_file,
                 "The same from a file, separated by commas or line breaks")
      ->type_name("FILE");
  app.add_option(
         "--segment-ids", raw.segment_ids,
         "A row that is packed already, as an id per token: 1,1,2,2,2,0; with --lengths, the "
         "real ones")
      ->type_name("LIST");
  app.add_option("--padding-id", raw.padding_id, "The segment id of padding (0), or none")
      ->type_name("ID");
  app.add_option("--position-ids", raw.position_ids, "The same as positions: 0,1,0,1,2")
      ->type_name("LIST");
  app.add_option("--position-start", raw.position_start, "The position of a first token (0)")
      ->type_name("N");
  app.add_option("--tail-tokens", raw.tail_tokens,
                 "Tokens at the end of such a row that are a tail")
      ->type_name("N");
  app.add_option("--width", raw.width, "Width of the batch, which no length may pass")
      ->type_name("S");
  command_line::add_padding(app, result);
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
  options result;
  describe(app, raw, result);
  if (const auto help = command_line::parse(app, argc, argv)) {
    std::cout << *help;
    return std::nullopt;
  }

  read_source(app, raw, result);
  // A number that pads to more than can be shown, or cuts into more, has its name in the error.
  const auto number = [&](const char* name, const std::string& text, whole_range range) {
    return optional_number(app, name, text, range);
  };
  result.width = number("--width", raw.width, {0, seqpack::max_tokens}).value_or(result.width);
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
