#include "options.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "../command_line/command_line.hpp"
#include "../text_tools/format.hpp"

namespace train_text {

namespace {

using command_line::add_number;

void add_training(CLI::App& app, options& o) {
  constexpr std::int64_t million = 1'000'000;
  add_number(app, "--longest", o.longest, "Bytes of a sequence; longer paragraphs are cut",
             {2, million});
  add_number(app, "--batch", o.batch, "Sequences of a micro-batch that is not planned",
             {1, million});
  add_number(app, "--micro-batches", o.micro_batches,
             "Such micro-batches of a step, whose sequences the data-parallel ranks share",
             {1, million});
  add_number(app, "--epochs", o.epochs, "How often the text is read", {1, million});
  add_number(app, "--steps", o.steps, "Steps at most; 0 for all of the epochs", {0, million});
  add_number(app, "--buckets", o.buckets, "Rows of the table for each of the longer contexts",
             {1, million});
  add_number(app, "--repeats", o.repeats,
             "Runs when speed is measured, the fastest of which counts", {1, 1000});
  const std::string range = "from 1e-9 to 10";
  app.add_option_function<std::string>(
         "--learning-rate",
         [&o, range](const std::string& text) {
           o.learning_rate = command_line::parse_real("--learning-rate", text, 1e-9, 10, range);
         },
         "Of Adam; it falls to 0 in a line; " + range)
      ->type_name("X")
      ->default_str(text_tools::with_decimals(o.learning_rate, 2));
}

void add_packing(CLI::App& app, options& o) {
  constexpr std::int64_t most = 1 << 30;
  app.add_option_function<std::string>(
         "--plan",
         [&o](const std::string& text) {
           o.plan = command_line::parse_choice<planning>("--plan", text,
                                                         {{"balanced", planning::balanced},
                                                          {"in_order", planning::in_order},
                                                          {"none", planning::none}});
         },
         "Micro-batches of a step: as few rows as possible, of equal cost (balanced), rows of "
         "neighbours (in_order), or --batch sequences each (none)")
      ->type_name("NAME")
      ->default_str("balanced");
  add_number(app, "--row", o.row,
             "Most tokens of a planned row; 0 for room for two of the longest sequence", {0, most});
  add_number(app, "--pad-each", o.pad_each,
             "What each padded length is a multiple of; 0 for the least that is possible",
             {0, most});
  add_number(app, "--pad-total", o.pad_total,
             "What the packed row is a multiple of; 0 for the least that is possible", {0, most});
}

void add_ranks(CLI::App& app, options& o) {
  constexpr std::int64_t most = 1 << 20;
  add_number(app, "--cp", o.cp, "Context-parallel ranks, which share the packed row", {1, most});
  add_number(app, "--tp", o.tp, "Tensor-parallel ranks, which share the vocabulary", {1, most});
  app.add_option_function<std::string>(
         "--sharding",
         [&o](const std::string& text) {
           using seqpack::sharding_kind;
           o.sharding = command_line::parse_choice<sharding_kind>(
               "--sharding", text,
               {{"zigzag", sharding_kind::zigzag},
                {"contiguous", sharding_kind::contiguous},
                {"striped", sharding_kind::striped},
                {"row_contiguous", sharding_kind::row_contiguous}});
         },
         "Who gets which tokens: zigzag, contiguous, striped, row_contiguous")
      ->type_name("NAME")
      ->default_str("zigzag");
}

}  // namespace

options parse_options(int argc, char** argv, const abilities& able) {
  options o;
  o.output = TRAIN_TEXT_OUTPUT;
  CLI::App app("Trains a language model on the paragraphs of text files", "seqpack-train-text");
  app.add_option("files", o.files, "Text files; without any, licence texts of the system")
      ->type_name("");
  app.add_option("--output", o.output, "Folder for the loss curve")
      ->type_name("DIR")
      ->capture_default_str();
  add_training(app, o);
  add_packing(app, o);
  if (able.threads) add_number(app, "--threads", o.threads, "Host threads", {1, 4096});
  if (able.ranks) add_ranks(app, o);
  if (const auto help = command_line::parse(app, argc, argv)) throw help_wanted{*help};
  return o;
}

}  // namespace train_text
