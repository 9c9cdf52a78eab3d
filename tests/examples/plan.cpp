#define BOOST_TEST_MODULE examples_plan
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "../../examples/plan/log_normal.hpp"
#include "run_program.hpp"

namespace {

using nlohmann::json;
using seqpack::offset_t;
using seqpack::testing::program_result;
using seqpack::testing::temporary_file;
using arguments = std::vector<std::string>;

program_result plan(const arguments& args) {
  return seqpack::testing::run_program(SEQPACK_EXAMPLE, args);
}

json plan_json(arguments args) {
  args.insert(args.end(), {"--format", "json"});
  const program_result result = plan(args);
  BOOST_TEST(result.err == "");
  BOOST_REQUIRE_EQUAL(result.status, 0);
  return json::parse(result.out);
}

/// The sequences of all rows, sorted.
std::vector<int> sequences_of(const json& rows) {
  std::vector<int> all;
  for (const json& row : rows) {
    for (const json& sequence : row) all.push_back(sequence.get<int>());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<int> up_to(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// The line of a table that begins with a name, without the blanks between columns.
std::vector<std::string> line_of(const std::string& out, const std::string& name) {
  std::istringstream text(out);
  for (std::string line; std::getline(text, line);) {
    if (line.rfind(name + " ", 0) != 0) continue;
    std::istringstream words(line);
    std::vector<std::string> cells;
    for (std::string cell; words >> cell;) cells.push_back(cell);
    return cells;
  }
  return {};
}

const std::string nine = "44,33,29,27,24,16,13,6,6";

}  // namespace

BOOST_AUTO_TEST_CASE(the_keys_are_these_and_no_others) {
  const auto keys_of = [](const json& found) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : found.items()) keys.push_back(key);
    return keys;
  };
  const std::vector<std::string> rows{"fill", "lower_bound", "row_tokens", "rows"};
  const std::vector<std::string> steps{"fill", "lower_bound", "row_tokens", "rows", "steps"};
  BOOST_TEST(keys_of(plan_json({"--lengths", "5,3"})) == rows, boost::test_tools::per_element());
  BOOST_TEST(keys_of(plan_json({"--lengths", "5,3", "--ranks", "1"})) == steps,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rows_are_as_few_as_can_be) {
  const json found = plan_json({"--lengths", nine, "--capacity", "100"});
  BOOST_TEST(found["rows"].size() == 2u);
  BOOST_TEST(found["lower_bound"] == 2);
  BOOST_TEST(found["fill"] == 0.99);
  BOOST_TEST(found["row_tokens"] == json({99, 99}));
  BOOST_TEST(sequences_of(found["rows"]) == up_to(9), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(each_method_has_its_rows) {
  const auto rows_of = [](const char* method) {
    return plan_json({"--lengths", "6,5,4,3,2", "--capacity", "10", "--method", method})["rows"];
  };
  BOOST_TEST(rows_of("in_order") == json::parse("[[0],[1,2],[3,4]]"));
  BOOST_TEST(rows_of("decreasing") == json::parse("[[0,2],[1,3,4]]"));
  BOOST_TEST(rows_of("balanced").size() == 2u);
}

BOOST_AUTO_TEST_CASE(rows_are_padded_as_the_options_say) {
  const arguments args{"--lengths",  "5,3,8", "--pad-each", "4",
                       "--capacity", "12",    "--method",   "in_order"};
  const auto with = [&](const arguments& more) {
    arguments all = args;
    all.insert(all.end(), more.begin(), more.end());
    return plan_json(all);
  };
  BOOST_TEST(with({})["rows"] == json::parse("[[0,1],[2]]"));
  BOOST_TEST(with({})["row_tokens"] == json({12, 8}));
  BOOST_TEST(with({"--pad-total-multiple", "6"})["row_tokens"] == json({12, 12}));
  BOOST_TEST(with({"--pad-total-to", "16", "--tail", "ghost"})["row_tokens"] == json({16, 16}));
  // A fixed total is a capacity.
  BOOST_TEST(plan_json({"--lengths", "5,3,8", "--pad-total-to", "8", "--method",
                        "in_order"})["rows"] == json::parse("[[0,1],[2]]"));
}

BOOST_AUTO_TEST_CASE(steps_have_a_row_for_each_rank) {
  const json found = plan_json({"--lengths", "8,7,6,5,4", "--capacity", "15", "--ranks", "2"});
  BOOST_TEST_REQUIRE(found["steps"].size() == 1u);
  BOOST_TEST_REQUIRE(found["steps"][0].size() == 2u);
  BOOST_TEST(sequences_of(found["steps"][0]) == up_to(5), boost::test_tools::per_element());
  // 8 + 7 and 6 + 5 + 4, in either order
  const json pair = json::parse("[0,1]");
  BOOST_TEST((found["steps"][0][0] == pair || found["steps"][0][1] == pair));

  const json few = plan_json({"--lengths", "3", "--ranks", "3"})["steps"];
  BOOST_TEST(few.size() == 1u);
  BOOST_TEST(few[0].size() == 3u);
  BOOST_TEST(sequences_of(few[0]) == up_to(1), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(every_sequence_is_planned_once) {
  for (const char* method : {"decreasing", "in_order", "balanced"}) {
    const json found = plan_json({"--log-normal", "3000", "--method", method, "--ranks", "7",
                                  "--pad-each", "16", "--cost", "attention"});
    BOOST_TEST_CONTEXT(method) {
      BOOST_TEST(sequences_of(found["rows"]) == up_to(3000), boost::test_tools::per_element());
      json flat = json::array();
      for (const json& step : found["steps"]) {
        BOOST_TEST(step.size() == 7u);
        for (const json& row : step) flat.push_back(row);
      }
      BOOST_TEST(sequences_of(flat) == up_to(3000), boost::test_tools::per_element());
      const auto lengths = plan_text::log_normal_lengths(3000, 1);
      BOOST_TEST_REQUIRE(found["row_tokens"].size() == found["rows"].size());
      for (std::size_t k = 0; k < found["rows"].size(); ++k) {
        offset_t tokens = 0;
        for (const json& b : found["rows"][k])
          tokens += (lengths[b.get<std::size_t>()] + 15) / 16 * 16;
        BOOST_TEST(found["row_tokens"][k] == tokens);
        BOOST_TEST(tokens <= 8192);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(long_sequences_are_refused_or_cut) {
  const arguments args{"--lengths", "5,25",     "--capacity", "10",
                       "--method",  "in_order", "--too-long"};
  const auto with = [&](const char* how) {
    arguments all = args;
    all.emplace_back(how);
    return plan_json(all);
  };
  BOOST_TEST(with("truncate")["rows"] == json::parse("[[0],[1]]"));
  BOOST_TEST(with("truncate")["row_tokens"] == json({5, 10}));
  // Pieces are listed under the number of their sequence.
  BOOST_TEST(with("split")["rows"] == json::parse("[[0],[1],[1],[1]]"));
  BOOST_TEST(with("split")["row_tokens"] == json({5, 10, 10, 5}));
}

BOOST_AUTO_TEST_CASE(log_normal_lengths_are_the_same_everywhere) {
  const std::vector<offset_t> lengths = plan_text::log_normal_lengths(100'000, 1);
  const std::vector<offset_t> first(lengths.begin(), lengths.begin() + 6);
  const std::vector<offset_t> expected{4254, 551, 567, 4291, 1835, 256};
  BOOST_TEST(first == expected, boost::test_tools::per_element());
  BOOST_TEST(plan_text::log_normal_lengths(1, 2) != plan_text::log_normal_lengths(1, 1),
             boost::test_tools::per_element());

  // Median, quartiles and the part that is cut are those of the distribution.
  std::vector<offset_t> sorted = lengths;
  std::sort(sorted.begin(), sorted.end());
  const auto near = [&](std::size_t at, double expected_length) {
    const auto length = static_cast<double>(sorted[at]);
    BOOST_TEST(std::abs(length / expected_length - 1) < 0.02, length << " at " << at);
  };
  near(50'000, 1024);
  near(75'000, 1024 * std::exp(0.6745));
  near(25'000, 1024 * std::exp(-0.6745));
  const auto cut = std::count(sorted.begin(), sorted.end(), 8192);
  BOOST_TEST(std::abs(static_cast<double>(cut) / 100'000 - 0.0188) < 0.002);
}

BOOST_AUTO_TEST_CASE(powers_of_two_are_exact_to_a_part_in_ten_thousand) {
  for (const double x : {0.0, 0.5, 3.25, 9.999, 13.7, 29.5}) {
    const auto power = plan_text::power_of_two(static_cast<offset_t>(std::ldexp(x, 32)));
    BOOST_TEST(std::abs(static_cast<double>(power) - std::exp2(x)) <= 1 + 1e-4 * std::exp2(x));
  }
}

BOOST_AUTO_TEST_CASE(text_is_planned_by_its_paragraphs) {
  const temporary_file text("abc\n\nabcdefg\nabcdefg\n\n\nabcd\n");  // 4, 16 and 5 bytes
  const program_result result = plan({"--capacity", "16", "--ranks", "2", text.path()});
  BOOST_TEST(result.err == "");
  BOOST_TEST(result.status == 0);
  BOOST_TEST(result.out.find("1 file: 3 sequences, 25 tokens, the longest of 16\n"
                             "As [B, S]: 48 tokens, 47.9 % of them padding\n") == 0u);
  const auto decreasing = line_of(result.out, "decreasing");
  const auto in_order = line_of(result.out, "in_order");
  BOOST_TEST_REQUIRE(decreasing.size() == 10u);
  BOOST_TEST_REQUIRE(in_order.size() == 10u);
  const std::vector<std::string> expected{"decreasing", "2", "2", "78.1", "%", "16", "16", "13"};
  BOOST_TEST(std::vector(decreasing.begin(), decreasing.begin() + 8) == expected,
             boost::test_tools::per_element());
  BOOST_TEST(in_order[1] == "3");
  BOOST_TEST(line_of(result.out, "balanced").size() == 10u);
  BOOST_TEST(result.out.find("2 ranks: 1 step, 2 micro-batches, 0 of them empty; fill 78.1 %; "
                             "ranks wait 21.9 % of the time; planned in ") != std::string::npos);
  BOOST_TEST(result.out.find("4 to 7           2  ##########") != std::string::npos);
  BOOST_TEST(plan({"--method", "in_order", text.path()}).out.find("decreasing") ==
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_cost_is_told) {
  const std::string out = plan({"--lengths", "10,5", "--cost", "attention", "--hidden", "2"}).out;
  // 12 * 10 + 100 and 12 * 5 + 25
  BOOST_TEST(line_of(out, "decreasing")[6] == "305");
  BOOST_TEST(out.find("6 h n + n^2 with h = 2") != std::string::npos);
  BOOST_TEST(line_of(plan({"--lengths", "10,5"}).out, "decreasing")[6] == "15");
}

BOOST_AUTO_TEST_CASE(reads_something_by_default) {
  const program_result result = plan({});
  BOOST_TEST(result.status == 0);
  BOOST_TEST(line_of(result.out, "decreasing").size() == 10u);
}

BOOST_AUTO_TEST_CASE(pictures) {
  for (const arguments& args : {arguments{"--lengths", nine, "--capacity", "100"},
                                arguments{"--lengths", nine, "--capacity", "50", "--ranks", "2"},
                                arguments{"--log-normal", "5000"}}) {
    arguments all = args;
    all.insert(all.end(), {"--format", "svg"});
    const program_result result = plan(all);
    BOOST_TEST(result.status == 0);
    BOOST_TEST(result.out.find("<svg") == 0u);
    BOOST_TEST(result.out.size() < 1'000'000u);
  }
}

BOOST_AUTO_TEST_CASE(an_empty_list_is_an_empty_plan) {
  const temporary_file empty("\n");
  for (const arguments& args :
       {arguments{"--lengths", ""}, arguments{"--lengths-file", empty.path()},
        arguments{"--log-normal", "0"}}) {
    arguments all = args;
    all.insert(all.end(), {"--ranks", "2"});
    BOOST_TEST(plan_json(all) ==
               json::parse(R"({"rows":[],"row_tokens":[],"lower_bound":0,"fill":1,"steps":[]})"));
    BOOST_TEST(plan(all).status == 0);
  }
}

BOOST_AUTO_TEST_CASE(lengths_come_from_a_file) {
  const temporary_file lines("5\n3, 8\r\n\n0\n");
  BOOST_TEST(plan_json({"--lengths-file", lines.path(), "--capacity", "8", "--method",
                        "in_order"})["rows"] == json::parse("[[0,1],[2,3]]"));
}

BOOST_AUTO_TEST_CASE(equal_arguments_give_equal_plans) {
  const arguments args{"--log-normal", "2000", "--seed", "7", "--ranks", "4", "--format", "json"};
  BOOST_TEST(plan(args).out == plan(args).out);
}

namespace {

struct bad_input {
  arguments args;
  std::vector<std::string> told;  ///< the entry, its value and the limit
};

const std::vector<bad_input> bad_inputs{
    {{"--lengths", "3,-1"}, {"lengths[1]", "-1", "at least 0"}},
    {{"--lengths", "3,9", "--capacity", "8"}, {"lengths[1]", "9", "at most 8"}},
    {{"--lengths", "3,9", "--pad-total-to", "8"}, {"lengths[1]", "9", "at most 8"}},
    {{"--lengths", "3,9", "--pad-each", "4", "--capacity", "11"},
     {"lengths[1]", "12", "at most 11"}},
    {{"--lengths", "1073741825", "--too-long", "split"},
     {"lengths[0]", "1073741825", "1073741824"}},
    {{"--lengths", "5,,3"}, {"lengths[1]", "empty", "whole number"}},
    {{"--lengths", "5,x"}, {"lengths[1]", "x", "whole number"}},
    {{"--lengths", "5", "--capacity", "0"}, {"--capacity", "0", "from 1 to 1073741824"}},
    {{"--lengths", "5", "--capacity="}, {"--capacity", "empty", "from 1 to 1073741824"}},
    {{"--lengths", "5", "--ranks", "0"}, {"--ranks", "0", "from 1 to 65536"}},
    {{"--lengths", "5", "--pad-each", "0"}, {"--pad-each", "0", "from 1 to 4194304"}},
    {{"--lengths", "5", "--capacity", "5", "--pad-total-multiple", "8"},
     {"capacity", "5", "at least 8"}},
    {{"--lengths", "5", "--pad-total-to", "10", "--pad-total-multiple", "4"},
     {"fixed_total", "10", "multiple of 4"}},
    {{"--lengths", "5", "--method", "best"},
     {"--method", "best", "decreasing, in_order, balanced"}},
    {{"--lengths", "5", "--method", "all", "--format", "json"}, {"--method", "all", "not text"}},
    {{"--lengths", "5", "--cost", "flops"}, {"--cost", "flops", "tokens, attention"}},
    {{"--lengths", "5", "--too-long", "drop"}, {"--too-long", "drop", "refuse, truncate, split"}},
    {{"--lengths", "5", "--format", "xml"}, {"--format", "xml", "text, json, svg"}},
    {{"--lengths", "5", "--tail", "both"}, {"--tail", "both", "absorb, ghost"}},
    {{"--log-normal", "4194305"}, {"--log-normal", "4194305", "from 0 to 4194304"}},
    {{"--log-normal", "5", "--seed", "-1"}, {"--seed", "-1", "from 0"}},
    {{"--lengths", "5", "--seed", "3"}, {"--seed", "3", "--log-normal"}},
    {{"--lengths", "5", "--log-normal", "3"}, {"source", "--lengths and --log-normal", "one"}},
    {{"/some/file", "--lengths", "3"}, {"source", "files and --lengths", "one"}},
    {{"--lengths-file", "/no/such/file"}, {"--lengths-file", "/no/such/file", "can be read"}},
    {{"/no/such/file"}, {"/no/such/file"}},
    {{"/"}, {"/ is not a file"}},
    {{"--lengths"}, {"--lengths: the value is missing"}},
    {{"--capacity", "5", "--capacity", "3"}, {"--capacity: given twice"}},
    {{"--nonsense"}, {"--nonsense"}},
    {{"--lengths", "5\n\n3x"}, {"lengths[0]"}},
};

}  // namespace

BOOST_AUTO_TEST_CASE(bad_input_is_refused_in_one_line) {
  for (const bad_input& input : bad_inputs) {
    BOOST_TEST_CONTEXT("arguments " << json(input.args)) {
      const program_result result = plan(input.args);
      BOOST_TEST(result.status == 2);
      BOOST_TEST(result.out == "");
      BOOST_TEST(result.error_lines() == 1);
      BOOST_TEST(result.err.rfind("seqpack-plan: ", 0) == 0u);
      for (const std::string& part : input.told) {
        BOOST_TEST(result.err.find(part) != std::string::npos, part << " not in: " << result.err);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(text_without_paragraphs_is_refused) {
  const temporary_file empty(" \n\n\t\n");
  const program_result result = plan({empty.path()});
  BOOST_TEST(result.status == 2);
  BOOST_TEST(result.err == "seqpack-plan: there is no text in the input\n");
}

BOOST_AUTO_TEST_CASE(full_standard_output_is_told) {
  const program_result result = seqpack::testing::run_program(
      "sh", {"-c", "exec \"$0\" \"$@\" > /dev/full", SEQPACK_EXAMPLE, "--lengths", "5"});
  BOOST_TEST(result.status == 2);
  BOOST_TEST(result.err == "seqpack-plan: cannot write to standard output\n");
}

BOOST_AUTO_TEST_CASE(help) {
  const program_result result = plan({"--help"});
  BOOST_TEST(result.status == 0);
  for (const char* option : {"--lengths-file", "--log-normal", "--capacity", "--ranks", "--cost",
                             "--method", "--too-long", "--pad-each", "--format"}) {
    BOOST_TEST(result.out.find(option) != std::string::npos, option);
  }
}
