#define BOOST_TEST_MODULE examples_train_text
#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "loss_curve.hpp"

namespace {

using seqpack::testing::program_result;
using seqpack::testing::require_same_curve;
using seqpack::testing::run_training;
using seqpack::testing::temporary_file;
using seqpack::testing::temporary_folder;
using seqpack::testing::training_run;
using seqpack::testing::without_progress;
using arguments = std::vector<std::string>;

training_run train(const arguments& args) {
  return run_training(SEQPACK_EXAMPLE, args);
}

/// Real text, and as few steps as it takes to learn something.
arguments small_training() {
  return {"--longest", "200", "--batch",         "3",   "--micro-batches", "4", "--epochs",     "2",
          "--buckets", "256", "--learning-rate", "0.1", "--repeats",       "1", SEQPACK_LICENSE};
}
/// The run that several cases look at.
const training_run& plain_run() {
  static const training_run run = train(small_training());
  return run;
}

/// More arguments, in the place of those that say something else.
arguments with(arguments args, const arguments& more) {
  for (const std::string& name : more) {
    const auto before = std::find(args.begin(), args.end(), name);
    if (name.starts_with("--") && before != args.end()) args.erase(before, before + 2);
  }
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

/// The names in a folder.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The cells of a line of output that starts with a name.
std::string line_of(const std::string& out, const std::string& name) {
  std::istringstream text(out);
  for (std::string line; std::getline(text, line);) {
    if (line.rfind(name, 0) == 0) return line;
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_learns) {
  const training_run& run = plain_run();
  BOOST_TEST(run.result.status == 0);
  BOOST_TEST(without_progress(run.result.err) == "");
  BOOST_TEST_REQUIRE(run.curve.size() > 2u);
  const auto& first = run.curve.front();
  const auto& last = run.curve.back();
  // Before the first step all 256 bytes are equally likely.
  BOOST_TEST(std::abs(first.training - std::log(256)) < 1e-5);
  BOOST_TEST(std::abs(first.validation - std::log(256)) < 1e-5);
  BOOST_TEST(std::exp(last.validation) < 0.8 * std::exp(last.unigram));
  BOOST_TEST(run.curve[run.curve.size() - 2].training < last.unigram);
  BOOST_TEST(last.epoch == 2.0);
  for (std::size_t k = 0; k < run.curve.size(); ++k) {
    BOOST_TEST(run.curve[k].step == static_cast<double>(k));
  }
}

BOOST_AUTO_TEST_CASE(what_can_be_foretold_is_learned) {
  // Eight bytes, equally often, of which each tells the next one.
  std::string text;
  for (int k = 0; k < 40; ++k) text += "abcdefg\n\n";
  const temporary_file file(text);
  const training_run run = train({"--epochs", "20", "--buckets", "64", "--repeats", "1",
                                  "--learning-rate", "0.5", file.path()});
  BOOST_TEST(run.result.status == 0);
  BOOST_TEST(run.result.out.find("1 file: 36 sequences, 288 bytes to train on; 4 sequences, 32 "
                                 "bytes held out\n") == 0u);
  BOOST_TEST(run.result.out.find("2.079 nats = 3.000 bits per byte, perplexity 8.00") !=
             std::string::npos);
  BOOST_TEST_REQUIRE(!run.curve.empty());
  BOOST_TEST(std::abs(run.curve.back().unigram - std::log(8)) < 1e-8);
  BOOST_TEST(run.curve.back().validation < 0.05);
}

BOOST_AUTO_TEST_CASE(padding_is_counted) {
  // Of 20 paragraphs the tenth and the last are held out: 10 of 8 bytes and 8 of 16 are left.
  std::string text;
  for (int k = 0; k < 10; ++k) text += "1234567\n\n123456789012345\n\n";
  const temporary_file file(text);
  const arguments args{"--batch",         "100", "--epochs",  "3", "--buckets", "64",
                       "--learning-rate", "0.5", "--repeats", "1", "--row",     "1000",
                       file.path()};
  const std::string out = train(args).result.out;
  BOOST_TEST(line_of(out, "planned").find(" 208     0.0 %") != std::string::npos);
  BOOST_TEST(line_of(out, "[B, S]").find(" 288    27.8 %") != std::string::npos);
  const std::string each = train(with(args, {"--pad-each", "10"})).result.out;
  BOOST_TEST(line_of(each, "planned").find(" 260    20.0 %") != std::string::npos);
  const std::string total = train(with(args, {"--pad-total", "250"})).result.out;
  BOOST_TEST(line_of(total, "planned").find(" 250    16.8 %") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_picture_is_svg) {
  const training_run& run = plain_run();
  std::istringstream text(run.svg);
  boost::property_tree::ptree document;
  read_xml(text, document);  // throws where it is not well-formed
  const auto& svg = document.get_child("svg");
  BOOST_TEST(svg.get<std::string>("<xmlattr>.xmlns") == "http://www.w3.org/2000/svg");
  std::vector<std::size_t> points;
  std::size_t dots = 0;
  std::string words;
  for (const auto& [name, element] : svg) {
    if (name == "polyline") {
      std::istringstream list(element.get<std::string>("<xmlattr>.points"));
      points.push_back(0);
      for (std::string point; list >> point;) ++points.back();
    }
    if (name == "circle") ++dots;
    if (name == "text") words += element.data() + "\n";
  }
  std::size_t training = 0;
  std::size_t validation = 0;
  for (const auto& line : run.curve) {
    training += std::isnan(line.training) ? 0 : 1;
    validation += std::isnan(line.validation) ? 0 : 1;
  }
  BOOST_TEST(points == (std::vector<std::size_t>{training, validation}),
             boost::test_tools::per_element());
  BOOST_TEST(dots == validation);
  for (const char* told :
       {"steps\n", "loss, nats per byte\n", "unigram entropy, ", "held-out text"}) {
    BOOST_TEST(words.find(told) != std::string::npos, told);
  }
}

BOOST_AUTO_TEST_CASE(how_the_row_is_padded_makes_no_difference) {
  for (const arguments& args : {arguments{"--pad-each", "16"}, arguments{"--pad-total", "512"}}) {
    require_same_curve(plain_run().curve, train(with(small_training(), args)).curve);
  }
}

BOOST_AUTO_TEST_CASE(how_micro_batches_are_planned_makes_no_difference) {
  for (const arguments& args :
       {arguments{"--plan", "none"}, arguments{"--plan", "in_order"}, arguments{"--row", "200"},
        arguments{"--row", "512", "--pad-total", "512"}, arguments{"--row", "4096"}}) {
    const training_run run = train(with(small_training(), args));
    BOOST_TEST_CONTEXT(args[1] << ": " << run.result.err) {
      require_same_curve(plain_run().curve, run.curve);
    }
  }
}

BOOST_AUTO_TEST_CASE(planned_rows_are_fewer_than_rows_in_order) {
  // Of 8, 6, 4 and 2 bytes, again and again, in any order: 8 + 2 and 6 + 4 fill rows of 10, which
  // neighbours seldom do.
  std::string text;
  for (int k = 0; k < 10; ++k) text += "1234567\n\n12345\n\n123\n\n1\n\n";
  const temporary_file file(text);
  const std::string out =
      train({"--batch", "36", "--micro-batches", "1", "--row", "10", "--pad-total", "10",
             "--epochs", "1", "--buckets", "64", "--repeats", "1", file.path()})
          .result.out;
  const auto numbers = [&](const std::string& name) {
    std::istringstream cells(line_of(out, name).substr(name.size()));
    std::vector<int> found(2);
    for (int& number : found) cells >> number;
    return found;
  };
  const std::vector<int> planned = numbers("planned rows");
  const std::vector<int> in_order = numbers("rows in order");
  BOOST_TEST(planned[0] * 10 == planned[1]);
  BOOST_TEST(in_order[0] * 10 == in_order[1]);
  BOOST_TEST(planned[0] < in_order[0]);
}

BOOST_AUTO_TEST_CASE(what_is_not_learned_is_told) {
  const training_run run = train(with(small_training(), {"--learning-rate", "1e-9"}));
  BOOST_TEST(run.result.status == 1);
  BOOST_TEST(without_progress(run.result.err) ==
             "seqpack-train-text: the model has not learned: its perplexity on held-out text must "
             "be below 0.8 x the unigram's\n");
  BOOST_TEST(run.curve.size() == plain_run().curve.size());
}

BOOST_AUTO_TEST_CASE(few_steps_are_no_failure) {
  const training_run run = train(with(small_training(), {"--steps", "1"}));
  BOOST_TEST(run.result.status == 0);
  BOOST_TEST(without_progress(run.result.err) == "");
  BOOST_TEST(run.result.out.ends_with("\nToo few steps to have learned.\n"));
  BOOST_TEST(run.curve.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_log_gets_lines_of_progress) {
  const temporary_folder folder;
  const program_result result = seqpack::testing::run_program(
      "timeout", with({"-k", "30", "6", SEQPACK_EXAMPLE},
                      with(small_training(), {"--epochs", "1000000", "--output", folder.path()})));
  BOOST_TEST(result.status == 124);  // of timeout
  BOOST_TEST(result.err.find(" steps, 0 %\n") != std::string::npos);
  BOOST_TEST(result.err.find('\r') == std::string::npos);
}

BOOST_AUTO_TEST_CASE(reads_something_by_default) {
  const training_run run = train({"--steps", "1", "--repeats", "1", "--batch", "1"});
  BOOST_TEST(run.curve.size() == 2u);
}

BOOST_AUTO_TEST_CASE(bad_input_is_refused_in_one_line) {
  struct bad_input {
    arguments args;
    std::string told;
  };
  const temporary_file short_text("one\n\ntwo\n");
  const std::vector<bad_input> bad{
      {{"/no/such/file"}, "/no/such/file"},
      {{"/"}, "/ is not a file"},
      {{short_text.path()}, "at least 10"},
      {{"--batch", "0"}, "--batch"},
      {{"--epochs", "-1"}, "--epochs"},
      {{"--steps", "x"}, "--steps"},
      {{"--learning-rate", "0"}, "--learning-rate"},
      {{"--pad-total", "-1"}, "--pad-total"},
      {{"--plan", "best"}, "--plan is best: it must be one of balanced, in_order, none"},
      {{"--nonsense"}, "--nonsense"},
      {{"--output"}, "--output: the value is missing"},
      {{"--batch", "2", "--batch", "3"}, "--batch: given twice"}};
  for (const auto& [args, told] : bad) {
    const program_result result = seqpack::testing::run_program(SEQPACK_EXAMPLE, args);
    BOOST_TEST_CONTEXT(told << ": " << result.err) {
      BOOST_TEST(result.status == 2);
      BOOST_TEST(result.out == "");
      BOOST_TEST(result.error_lines() == 1);
      BOOST_TEST(result.err.find(told) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_refused_number_is_told_with_the_range_that_the_help_has) {
  struct option {
    std::string name;
    std::string kind;
    std::string range;
    arguments refused;
  };
  const std::vector<option> options{
      {"--longest", "whole number", "from 2 to 1000000", {"1"}},
      {"--batch", "whole number", "from 1 to 1000000", {"0", "", "x", "1.5", "1000001"}},
      {"--micro-batches", "whole number", "from 1 to 1000000", {"-1"}},
      {"--epochs", "whole number", "from 1 to 1000000", {"99999999999999999999"}},
      {"--steps", "whole number", "from 0 to 1000000", {"-1"}},
      {"--buckets", "whole number", "from 1 to 1000000", {"4611686018427387904"}},
      {"--repeats", "whole number", "from 1 to 1000", {"1001"}},
      {"--pad-each", "whole number", "from 0 to 1073741824", {"-1"}},
      {"--pad-total", "whole number", "from 0 to 1073741824", {"1073741825"}},
      {"--row", "whole number", "from 0 to 1073741824", {"-1"}},
      {"--learning-rate",
       "number",
       "from 1e-9 to 10",
       {"nan", "-nan", "inf", "-inf", "0", "11", "1e400", "", "x", "0.1x"}}};
  const std::string help = seqpack::testing::run_program(SEQPACK_EXAMPLE, {"--help"}).out;
  for (const auto& [name, kind, range, refused] : options) {
    const std::string described = help.substr(help.find("\n  " + name + ' '));
    BOOST_TEST(described.substr(0, described.find("\n  --", 1)).find(range) != std::string::npos,
               name << " has no range " << range << " in the help");
    for (const std::string& value : refused) {
      const program_result result =
          seqpack::testing::run_program(SEQPACK_EXAMPLE, {name + "=" + value});
      BOOST_TEST(result.status == 2);
      BOOST_TEST(result.out == "");
      BOOST_TEST(result.err == "seqpack-train-text: " + name + " is " +
                                   (value.empty() ? "empty" : value) + ": it must be a " + kind +
                                   " " + range + "\n");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_training_that_takes_too_much_memory_is_refused) {
  for (const arguments& args : {arguments{"--pad-total", "1073741824"},
                                arguments{"--batch", "1", "--pad-each", "1073741824"}}) {
    const training_run run = train(with(small_training(), args));
    BOOST_TEST(run.result.status == 2);
    BOOST_TEST(run.result.err.find("seqpack-train-text: memory for the training is ") == 0u);
    BOOST_TEST(run.result.err.find(" TB: it must be at most ") != std::string::npos);
    BOOST_TEST(run.result.error_lines() == 1);
  }
}

BOOST_AUTO_TEST_CASE(only_the_curve_is_left_in_the_folder) {
  const temporary_folder folder;
  const std::string made = folder.path() + "/not/yet";
  BOOST_TEST(seqpack::testing::run_program(
                 SEQPACK_EXAMPLE, with(small_training(), {"--steps", "1", "--output", made}))
                 .status == 0);
  const std::vector<std::string> expected{"loss_curve.csv", "loss_curve.svg"};
  BOOST_TEST(files_in(made) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(full_standard_output_is_told) {
  const temporary_folder folder;
  const program_result result = seqpack::testing::run_program(
      "sh", with({"-c", "exec \"$0\" \"$@\" > /dev/full", SEQPACK_EXAMPLE},
                 with(small_training(), {"--steps", "1", "--output", folder.path()})));
  BOOST_TEST(result.status == 2);
  BOOST_TEST(without_progress(result.err) ==
             "seqpack-train-text: cannot write to standard output\n");
}

BOOST_AUTO_TEST_CASE(an_output_that_cannot_be_written_to_is_told_before_the_training) {
  const temporary_file file;
  const temporary_folder folder;
  std::filesystem::create_directory(folder.path() + "/loss_curve.csv");
  for (const auto& [output, why] :
       {std::pair(file.path(), "Not a directory"), std::pair(folder.path(), "Is a directory")}) {
    // A training without an end.
    const program_result result = seqpack::testing::run_program(
        SEQPACK_EXAMPLE, with(small_training(), {"--epochs", "1000000", "--output", output}));
    BOOST_TEST(result.status == 2);
    BOOST_TEST(result.out == "");
    BOOST_TEST(result.err == "seqpack-train-text: " + output +
                                 "/loss_curve.csv cannot be written: " + why + "\n");
  }
}

#if defined(SEQPACK_MPIEXEC)

namespace {

training_run train_on(int ranks, const arguments& args) {
  return run_training(SEQPACK_MPIEXEC, with({"-n", std::to_string(ranks), SEQPACK_EXAMPLE}, args));
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_grid_makes_no_difference) {
  struct grid {
    int ranks;
    arguments args;
    std::string told;
  };
  const std::vector<grid> grids{
      {2, {"--cp", "2"}, "1 data-parallel x 2 context-parallel x 1 tensor-parallel"},
      {2, {"--tp", "2"}, "1 data-parallel x 1 context-parallel x 2 tensor-parallel"},
      {3, {"--cp", "3", "--sharding", "contiguous", "--pad-each", "6"}, "3 context"},
      {2, {"--plan", "none"}, "2 data-parallel x 1 context-parallel x 1 tensor-parallel"},
      {4,
       {"--cp", "2", "--sharding", "row_contiguous"},
       "2 data-parallel x 2 context-parallel x 1 tensor-parallel"},
      {3, {"--tp", "3"}, "1 data-parallel x 1 context-parallel x 3 tensor-parallel"},
      {8,
       {"--cp", "2", "--tp", "2", "--sharding", "striped", "--pad-total", "64"},
       "2 data-parallel x 2 context-parallel x 2 tensor-parallel"}};
  for (const auto& [ranks, args, told] : grids) {
    const training_run run = train_on(ranks, with(small_training(), args));
    BOOST_TEST_CONTEXT(told << ": " << run.result.err) {
      BOOST_TEST(run.result.status == 0);
      BOOST_TEST(run.result.out.find(std::to_string(ranks) + " ranks: ") != std::string::npos);
      BOOST_TEST(run.result.out.find(told) != std::string::npos);
      require_same_curve(plain_run().curve, run.curve);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_grid_that_cannot_be_is_refused) {
  const auto told = [](int ranks, const arguments& args) {
    const program_result result = train_on(ranks, with(small_training(), args)).result;
    BOOST_TEST(result.status == 2);
    return result.err;
  };
  BOOST_TEST(told(2, {"--cp", "3"}).find("number of ranks is 2: it must be a multiple of 3") !=
             std::string::npos);
  BOOST_TEST(told(2, {"--cp", "2", "--pad-each", "3"}).find("each_multiple_of on rank 0 is 3") !=
             std::string::npos);
  const std::string sharding = told(2, {"--cp", "2", "--sharding", "spiral"});
  BOOST_TEST(sharding.find("--sharding is spiral: it must be one of zigzag, contiguous, striped, "
                           "row_contiguous\n") != std::string::npos);
  const std::string size = told(1, {"--tp", "4611686018427387904"});
  BOOST_TEST(
      size.find("--tp is 4611686018427387904: it must be a whole number from 1 to 1048576\n") !=
      std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_rank_0_cannot_write_ends_all_ranks) {
  const temporary_file file;
  const program_result result = seqpack::testing::run_program(
      SEQPACK_MPIEXEC,
      with({"-n", "2", SEQPACK_EXAMPLE, "--tp", "2"},
           with(small_training(), {"--epochs", "1000000", "--output", file.path()})));
  BOOST_TEST(result.status == 2);
  BOOST_TEST(result.out == "");
  BOOST_TEST(result.err.find("seqpack-train-text: " + file.path() +
                             "/loss_curve.csv cannot be written: Not a directory\n") == 0u);
}

BOOST_AUTO_TEST_CASE(too_much_memory_is_refused_on_all_ranks) {
  const program_result result =
      train_on(2, with(small_training(), {"--cp", "2", "--pad-total", "1073741824"})).result;
  BOOST_TEST(result.status == 2);
  BOOST_TEST(result.err.find("memory for the training on rank 0 is 1.") != std::string::npos);
}

#else

BOOST_AUTO_TEST_CASE(ranks_are_not_offered_without_mpi) {
  BOOST_TEST(train({"--cp", "1"}).result.status == 2);
}

#endif
