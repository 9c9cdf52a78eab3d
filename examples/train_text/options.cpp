#include "options.hpp"

#include <CLI/CLI.hpp>
#include <limits>
#include <map>
#include <string>

namespace train_text {

namespace {

void add_number(CLI::App& app, const char* name, std::int64_t& value, const char* meaning,
                std::int64_t least, std::int64_t most) {
  app.add_option(name, value, meaning)
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(least, most)
                  .description("from " + std::to_string(least) + " to " + std::to_string(most)));
}

void add_training(CLI::App& app, options& o) {
  constexpr std::int64_t million = 1'000'000;
  add_number(app, "--longest", o.longest, "Bytes of a sequence; longer paragraphs are cut", 2,
             million);
  add_number(app, "--batch", o.batch, "Sequences of a micro-batch", 1, million);
  add_number(app, "--micro-batches", o.micro_batches,
             "Micro-batches of a step, which the data-parallel ranks share", 1, million);
  add_number(app, "--epochs", o.epochs, "How often the text is read", 1, million);
  add_number(app, "--steps", o.steps, "Steps at most; 0 for all of the epochs", 0, million);
  add_number(app, "--buckets", o.buckets, "Rows of the table for each of the longer contexts", 1,
             million);
  add_number(app, "--repeats", o.repeats,
             "Runs when speed is measured, the fastest of which counts", 1, 1000);
  app.add_option("--learning-rate", o.learning_rate, "Of Adam; it falls to 0 in a line")
      ->type_name("X")
      ->capture_default_str()
      ->check(CLI::Range(1e-9, 10.0).description("from 1e-9 to 10"));
}

void add_ranks(CLI::App& app, options& o) {
  constexpr std::int64_t most = 1 << 20;
  add_number(app, "--cp", o.cp, "Context-parallel ranks, which share the packed row", 1, most);
  add_number(app, "--tp", o.tp, "Tensor-parallel ranks, which share the vocabulary", 1, most);
  const std::map<std::string, sharding_kind> shardings{{"zigzag", sharding_kind::zigzag},
                                                       {"contiguous", sharding_kind::contiguous},
                                                       {"striped", sharding_kind::striped}};
  app.add_option("--sharding", o.sharding, "Who gets which tokens: zigzag, contiguous, striped")
      ->type_name("NAME")
      ->transform(CLI::CheckedTransformer(shardings).description(""))
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
  constexpr std::int64_t most = 1 << 30;
  add_number(app, "--pad-each", o.pad_each,
             "What each padded length is a multiple of; 0 for the least that is possible", 0, most);
  add_number(app, "--pad-total", o.pad_total, "What the packed row is a multiple of", 1, most);
  if (able.threads) add_number(app, "--threads", o.threads, "Host threads", 1, 4096);
  if (able.ranks) add_ranks(app, o);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    throw help_wanted{app.help()};
  }
  return o;
}

}  // namespace train_text
