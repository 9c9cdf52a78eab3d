#define BOOST_TEST_MODULE examples_inspect
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "run_program.hpp"

namespace {

using nlohmann::json;
using seqpack::testing::program_result;
using seqpack::testing::temporary_file;
using arguments = std::vector<std::string>;

program_result inspect(const arguments& args) {
  return seqpack::testing::run_program(SEQPACK_EXAMPLE, args);
}

json inspect_json(arguments args) {
  args.insert(args.end(), {"--format", "json"});
  const program_result result = inspect(args);
  BOOST_REQUIRE_EQUAL(result.status, 0);
  BOOST_TEST(result.err == "");
  return json::parse(result.out);
}

/// [b, s] or null, as the golden values name it: 1000 * (b + 1) + s, and 0 for padding.
json golden_tokens(const json& row) {
  json tokens = json::array();
  for (const json& token : row) {
    tokens.push_back(token.is_null() ? 0 : 1000 * (token[0].get<int>() + 1) + token[1].get<int>());
  }
  return tokens;
}

/// The same with 100 * (b + 1) + s, and null as it is.
json short_tokens(const json& row) {
  json tokens = json::array();
  for (const json& token : row) {
    tokens.push_back(token.is_null() ? json()
                                     : json(100 * (token[0].get<int>() + 1) + token[1].get<int>()));
  }
  return tokens;
}

std::string joined(const json& numbers) {
  std::string text;
  for (const json& number : numbers) {
    if (!text.empty()) text += ',';
    text += number.dump();
  }
  return text;
}

std::string dumped(const json& value) {
  return value.dump();
}

arguments arguments_of(const json& test) {
  arguments args{"--lengths",  joined(test["seq_lengths"]), "--width",   test["width"].dump(),
                 "--pad-each", test["pad_each"].dump(),     "--cp-size", test["cp_size"].dump()};
  if (test["pad_total_multiple"] != 1) {
    args.insert(args.end(), {"--pad-total-multiple", test["pad_total_multiple"].dump()});
  }
  if (!test["pad_total_to"].is_null()) {
    args.insert(args.end(), {"--pad-total-to", test["pad_total_to"].dump()});
  }
  return args;
}

const json ignored;  // null

}  // namespace

BOOST_AUTO_TEST_CASE(golden_layouts_are_reproduced) {
  std::ifstream file(SEQPACK_TEST_DATA "/pack.json");
  const json tests = json::parse(file);
  BOOST_TEST_REQUIRE(tests.size() == 80);
  for (const json& test : tests) {
    BOOST_TEST_CONTEXT("case " << test["name"]) {
      const json found = inspect_json(arguments_of(test));
      for (const char* key : {"cu_seqlens", "cu_seqlens_padded", "max_seqlen", "total_tokens"}) {
        BOOST_TEST(dumped(found[key]) == dumped(test[key]), key);
      }
      BOOST_TEST(dumped(golden_tokens(found["row"])) == dumped(test["packed"]));
      BOOST_TEST_REQUIRE(found["shards"].size() == test["shards"].size());
      for (std::size_t rank = 0; rank < test["shards"].size(); ++rank) {
        BOOST_TEST(dumped(golden_tokens(found["shards"][rank]["row"])) ==
                   dumped(test["shards"][rank]));
      }
      const bool has_padding = test["cu_seqlens"] != test["cu_seqlens_padded"];
      BOOST_TEST(found["has_padding"].get<bool>() == has_padding);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_keys_are_these_and_no_others) {
  const json found = inspect_json({"--lengths", "5,3", "--pad-each", "4", "--cp-size", "2"});
  std::vector<std::string> keys;
  for (const auto& [key, value] : found.items()) keys.push_back(key);
  const std::vector<std::string> expected{
      "cu_seqlens", "cu_seqlens_padded", "has_padding", "max_seqlen", "row",
      "shards",     "total_tokens"};
  BOOST_TEST(keys == expected, boost::test_tools::per_element());
  const std::vector<std::string> shard_keys{
      "labels", "padding_mask", "position_ids", "real_tokens_per_sequence", "row", "seq_idx"};
  for (const json& shard : found["shards"]) {
    keys.clear();
    for (const auto& [key, value] : shard.items()) keys.push_back(key);
    BOOST_TEST(keys == shard_keys, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(real_tokens_are_counted_per_sequence_and_rank) {
  const json found =
      inspect_json({"--lengths", "9,8,8,12,8,12", "--pad-each", "4", "--cp-size", "2"});
  BOOST_TEST(found["cu_seqlens"] == json({0, 9, 17, 25, 37, 45, 57}));
  BOOST_TEST(found["cu_seqlens_padded"] == json({0, 12, 20, 28, 40, 48, 60}));
  BOOST_TEST(found["shards"][0]["real_tokens_per_sequence"] == json({3, 4, 4, 6, 4, 6}));
  BOOST_TEST(found["shards"][1]["real_tokens_per_sequence"] == json({6, 4, 4, 6, 4, 6}));
}

BOOST_AUTO_TEST_CASE(the_last_token_of_an_odd_length_has_an_owner) {
  const json shards =
      inspect_json({"--lengths", "7", "--pad-each", "4", "--cp-size", "2"})["shards"];
  BOOST_TEST(shards[0]["row"] == json::parse("[[0,0],[0,1],[0,6],null]"));
  BOOST_TEST(shards[1]["row"] == json::parse("[[0,2],[0,3],[0,4],[0,5]]"));
  BOOST_TEST(shards[0]["real_tokens_per_sequence"] == json::array({3}));
  BOOST_TEST(shards[1]["real_tokens_per_sequence"] == json::array({4}));
  BOOST_TEST(shards[0]["position_ids"] == json({0, 1, 6, 7}));
  BOOST_TEST(shards[0]["padding_mask"] == json({false, false, false, true}));
}

BOOST_AUTO_TEST_CASE(labels_stay_in_their_sequence) {
  const arguments args{"--lengths", "5,3", "--pad-each", "4"};
  const json one = inspect_json(args)["shards"];
  BOOST_TEST_REQUIRE(one.size() == 1u);
  BOOST_TEST(short_tokens(one[0]["labels"]) == json({101, 102, 103, 104, ignored, ignored, ignored,
                                                     ignored, 201, 202, ignored, ignored}));

  arguments two_args = args;
  two_args.insert(two_args.end(), {"--cp-size", "2"});
  const json two = inspect_json(two_args)["shards"];
  BOOST_TEST(short_tokens(two[0]["labels"]) == json({101, 102, ignored, ignored, 201, ignored}));
  BOOST_TEST(short_tokens(two[1]["labels"]) == json({103, 104, ignored, ignored, 202, ignored}));
}

BOOST_AUTO_TEST_CASE(labels_are_right_beside_padding) {
  const json shards =
      inspect_json({"--lengths", "3,2", "--pad-each", "4", "--cp-size", "2"})["shards"];
  BOOST_TEST(short_tokens(shards[0]["row"]) == json({100, ignored, 200, ignored}));
  BOOST_TEST(short_tokens(shards[1]["row"]) == json({101, 102, 201, ignored}));
  BOOST_TEST(short_tokens(shards[0]["labels"]) == json({101, ignored, 201, ignored}));
  BOOST_TEST(short_tokens(shards[1]["labels"]) == json({102, ignored, ignored, ignored}));
  BOOST_TEST(shards[0]["position_ids"] == json({0, 3, 0, 3}));
  BOOST_TEST(shards[1]["position_ids"] == json({1, 2, 1, 2}));
  BOOST_TEST(shards[0]["seq_idx"] == json({0, 0, 1, 1}));
}

BOOST_AUTO_TEST_CASE(labels_cross_the_edges_of_chunks) {
  const json shards = inspect_json({"--lengths", "8", "--cp-size", "2"})["shards"];
  BOOST_TEST(short_tokens(shards[0]["labels"]) == json({101, 102, 107, ignored}));
  BOOST_TEST(short_tokens(shards[1]["labels"]) == json({103, 104, 105, 106}));
}

BOOST_AUTO_TEST_CASE(labels_shift_by_more_than_one) {
  const json shards = inspect_json({"--lengths", "4,1", "--label-shift", "2"})["shards"];
  BOOST_TEST(short_tokens(shards[0]["labels"]) == json({102, 103, ignored, ignored, ignored}));
}

BOOST_AUTO_TEST_CASE(the_tail_can_be_a_ghost) {
  const json found = inspect_json(
      {"--lengths", "3", "--pad-total-multiple", "8", "--tail", "ghost", "--cp-size", "1"});
  BOOST_TEST(found["cu_seqlens"] == json({0, 3, 3}));
  BOOST_TEST(found["cu_seqlens_padded"] == json({0, 3, 8}));
  BOOST_TEST(found["max_seqlen"] == 5);
  BOOST_TEST(found["shards"][0]["seq_idx"] == json({0, 0, 0, 1, 1, 1, 1, 1}));
  // Without a number for the total there is no tail.
  const json none = inspect_json({"--lengths", "3", "--tail", "ghost"});
  BOOST_TEST(none["cu_seqlens"] == json({0, 3}));
}

BOOST_AUTO_TEST_CASE(shardings_can_be_chosen) {
  const arguments args{"--lengths", "4", "--cp-size", "2", "--sharding"};
  const auto rows = [&](const char* sharding) {
    arguments all = args;
    all.push_back(sharding);
    const json shards = inspect_json(all)["shards"];
    return json({short_tokens(shards[0]["row"]), short_tokens(shards[1]["row"])});
  };
  BOOST_TEST(rows("zigzag") == json::parse("[[100,103],[101,102]]"));
  BOOST_TEST(rows("contiguous") == json::parse("[[100,101],[102,103]]"));
  BOOST_TEST(rows("striped") == json::parse("[[100,102],[101,103]]"));
  BOOST_TEST(rows("row_contiguous") == json::parse("[[100,101],[102,103]]"));
}

BOOST_AUTO_TEST_CASE(shards_of_the_row_say_what_they_hold_of_which_sequence) {
  const json shards = inspect_json(
      {"--lengths", "37,51,40", "--cp-size", "2", "--sharding", "row_contiguous"})["shards"];
  BOOST_TEST(shards[0]["segments"] == json::parse("[[0,0,37],[1,0,27]]"));
  BOOST_TEST(shards[1]["segments"] == json::parse("[[1,27,24],[2,0,40]]"));
  BOOST_TEST(shards[1]["real_tokens_per_sequence"] == json::parse("[0,24,40]"));
  // Every rank has the same part of each sequence otherwise, in several pieces.
  BOOST_TEST(!inspect_json({"--lengths", "8", "--cp-size", "2"})["shards"][0].contains("segments"));
}

BOOST_AUTO_TEST_CASE(an_empty_list_is_an_empty_batch) {
  const temporary_file empty("\n");
  for (const arguments& args : {arguments{"--lengths", ""}, arguments{"--lengths="},
                                arguments{"--lengths-file", empty.path()}}) {
    const json found = inspect_json(args);
    BOOST_TEST(found["cu_seqlens"] == json::array({0}));
    BOOST_TEST(found["total_tokens"] == 0);
    BOOST_TEST(found["row"] == json::array());
    BOOST_TEST(found["shards"].size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(lengths_come_from_a_file) {
  const temporary_file lines("5\n3, 8\r\n\n0\n");
  BOOST_TEST(inspect_json({"--lengths-file", lines.path()})["cu_seqlens"] ==
             json({0, 5, 8, 16, 16}));
}

BOOST_AUTO_TEST_CASE(a_row_that_is_packed_already_is_shown_by_its_segment_ids) {
  const json found = inspect_json({"--segment-ids", "1,1,2,2,2,0"});
  BOOST_TEST(found["cu_seqlens"] == json({0, 2, 5}));
  BOOST_TEST(found["cu_seqlens_padded"] == json({0, 2, 6}));
  BOOST_TEST(found["row"] == json::parse("[[0,0],[0,1],[1,0],[1,1],[1,2],null]"));
  BOOST_TEST(found["shards"][0]["seq_idx"] == json({0, 0, 1, 1, 1, 1}));

  const json ghost = inspect_json(
      {"--segment-ids", "7,7,-1,3", "--padding-id", "-1", "--tail-tokens", "1", "--tail", "ghost"});
  BOOST_TEST(ghost["cu_seqlens"] == json({0, 2, 2}));
  BOOST_TEST(ghost["cu_seqlens_padded"] == json({0, 3, 4}));

  const json none = inspect_json({"--segment-ids", "0,0,1,1,1,1", "--padding-id", "none",
                                  "--lengths", "1,3", "--cp-size", "2", "--sharding", "striped"});
  BOOST_TEST(none["cu_seqlens"] == json({0, 1, 4}));
  BOOST_TEST(none["cu_seqlens_padded"] == json({0, 2, 6}));
  BOOST_TEST(none["shards"][1]["row"] == json::parse("[null,[1,1],null]"));
}

BOOST_AUTO_TEST_CASE(a_row_that_is_packed_already_is_shown_by_its_position_ids) {
  const json found = inspect_json({"--position-ids", "2,3,4,2,3", "--position-start", "2"});
  BOOST_TEST(found["cu_seqlens"] == json({0, 3, 5}));
  const json tail = inspect_json({"--position-ids", "0,1,2,0,1,0,0,0", "--tail-tokens", "3"});
  BOOST_TEST(tail["cu_seqlens"] == json({0, 3, 5}));
  BOOST_TEST(tail["cu_seqlens_padded"] == json({0, 3, 8}));
  const json real = inspect_json({"--position-ids", "0,1,2,3", "--lengths", "0,3", "--width", "3"});
  BOOST_TEST(real["cu_seqlens"] == json({0, 0, 3}));
  BOOST_TEST(real["cu_seqlens_padded"] == json({0, 0, 4}));
  BOOST_TEST(inspect_json({"--position-ids", ""})["total_tokens"] == 0);
}

BOOST_AUTO_TEST_CASE(a_wide_row_costs_nothing) {
  BOOST_TEST(inspect_json({"--lengths", "2", "--width", "1000000000000"})["total_tokens"] == 2);
}

BOOST_AUTO_TEST_CASE(pictures) {
  const arguments args{"--lengths", "5,3", "--pad-each", "4", "--cp-size", "2"};
  const program_result text = inspect(args);
  BOOST_TEST(text.status == 0);
  BOOST_TEST(!text.out.empty());
  BOOST_TEST(text.out.find('\033') == std::string::npos);  // not a terminal: no colour
  arguments svg_args = args;
  svg_args.insert(svg_args.end(), {"--format", "svg"});
  const program_result svg = inspect(svg_args);
  BOOST_TEST(svg.status == 0);
  BOOST_TEST(svg.out.find("<svg") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(help) {
  const program_result result = inspect({"--help"});
  BOOST_TEST(result.status == 0);
  BOOST_TEST(result.out.find("--lengths-file") != std::string::npos);
}

namespace {

struct bad_input {
  arguments args;
  std::vector<std::string> told;  ///< the entry, its value and the limit
};

const std::string whole = "-9223372036854775808 to 9223372036854775807";

const std::vector<bad_input> bad_inputs{
    {{"--lengths", "3,-1"}, {"lengths[1]", "-1", "at least 0"}},
    {{"--lengths", "-1,3"}, {"lengths[0]", "-1", "at least 0"}},
    {{"--lengths", "5,9", "--width", "8"}, {"lengths[1]", "9", "at most 8"}},
    {{"--lengths", "99999999999999999999"}, {"lengths[0]", "99999999999999999999", whole}},
    {{"--lengths", "-99999999999999999999"}, {"lengths[0]", "-99999999999999999999", whole}},
    {{"--lengths", "2147483648"}, {"lengths[0]", "2147483648", "2147483647"}},
    {{"--lengths", "2147483647,1"}, {"sum of the padded lengths", "2147483648", "2147483647"}},
    {{"--lengths", "2147483647"}, {"number of tokens", "2147483647", "at most"}},
    {{"--lengths", "5,,3"}, {"lengths[1]", "empty", whole}},
    {{"--lengths", "5,3,"}, {"lengths[2]", "empty", whole}},
    {{"--lengths", ","}, {"lengths[0]", "empty", whole}},
    {{"--lengths", "5,x"}, {"lengths[1]", "x", whole}},
    {{"--lengths", "5x"}, {"lengths[0]", "5x", whole}},
    {{"--lengths", "5.0"}, {"lengths[0]", "5.0", whole}},
    {{"--lengths", "5\n\n3"}, {"lengths[0]", "5", whole}},
    {{"--lengths", "5", "--pad-each", "12", "--cp-size", "4"},
     {"each_multiple_of", "12", "multiple of 8"}},
    {{"--lengths", "5", "--pad-total-to", "3"}, {"content", "5", "at most 3"}},
    {{"--lengths", "5", "--pad-total-to", "10", "--pad-total-multiple", "4"},
     {"fixed_total", "10", "multiple of 4"}},
    {{"--lengths", "", "--pad-total-to", "8"}, {"number of sequences", "0", "at least 1"}},
    {{"--lengths", "5", "--cp-size", "3"}, {"lengths[0]", "5", "multiple of 6"}},
    {{"--lengths", "5", "--tail", "both"}, {"--tail", "both", "absorb, ghost"}},
    {{"--lengths", "5", "--sharding", "spiral"}, {"--sharding", "spiral", "zigzag"}},
    {{"--lengths", "5", "--format", "xml"}, {"--format", "xml", "text, json, svg"}},
    {{"--lengths-file", "/no/such/file"}, {"--lengths-file", "/no/such/file", "can be read"}},
    {{"--lengths-file", "/"}, {"--lengths-file", "/", "can be read"}},
    {{"--lengths", "5", "--lengths-file", "/"}, {"lengths", "given twice", "either"}},
    {{}, {"lengths", "missing", "either"}},
    {{"--segment-ids", "5,5,7,7,5"}, {"segment_ids[4]", "5", "ended at entry 1"}},
    {{"--segment-ids", "1,,2"}, {"segment_ids[1]", "empty", whole}},
    {{"--segment-ids", "1,1", "--width", "1"}, {"sequence 0", "2", "at most 1"}},
    {{"--position-ids", "0,1,3"}, {"position_ids[2]", "3", "0 or 2"}},
    {{"--position-ids", "0,x"}, {"position_ids[1]", "x", whole}},
    {{"--position-ids", "0,1", "--tail-tokens", "3"}, {"tail", "3", "at most 2"}},
    {{"--position-ids", "0,1", "--tail", "ghost"}, {"tail", "not given", "how many tokens"}},
    {{"--position-ids", "0,1", "--lengths", "3"}, {"lengths[0]", "3", "at most 2"}},
    {{"--position-ids", "0,1", "--segment-ids", "1,1"}, {"ids", "given twice", "either"}},
    {{"--position-ids", "0,1", "--pad-each", "2"}, {"--pad-each", "given", "has its padding"}},
    {{"--position-ids", "0,1", "--padding-id", "2"}, {"--padding-id", "--segment-ids"}},
    {{"--segment-ids", "1", "--position-start", "1"}, {"--position-start", "--position-ids"}},
    {{"--segment-ids", "1", "--padding-id", "some"}, {"--padding-id", "some", whole}},
    {{"--lengths", "5", "--tail-tokens", "1"}, {"--tail-tokens", "given", "--segment-ids"}},
    {{"--lengths"}, {"--lengths: the value is missing"}},
    {{"--lengths", "5", "--lengths", "3"}, {"--lengths: given twice"}},
    {{"--lengths", "5", "--nonsense"}, {"--nonsense"}},
    {{"--lengths", "5", "extra"}, {"extra"}},
};

void check_refused(const arguments& args, const std::vector<std::string>& told) {
  const program_result result = inspect(args);
  BOOST_TEST(result.status == 2);
  BOOST_TEST(result.out == "");
  BOOST_TEST(result.error_lines() == 1);
  BOOST_TEST(result.err.ends_with('\n'));
  for (const std::string& part : told) {
    BOOST_TEST(result.err.find(part) != std::string::npos, part << " is not in: " << result.err);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(bad_input_is_refused_in_one_line) {
  for (const bad_input& input : bad_inputs) {
    BOOST_TEST_CONTEXT("arguments " << json(input.args)) {
      check_refused(input.args, input.told);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_number_out_of_range_is_refused_with_its_option_and_its_range) {
  const std::vector<std::pair<std::string, std::string>> options{
      {"--width", "from 0 to 281474976710656"},
      {"--pad-each", "from 1 to 4194304"},
      {"--pad-total-multiple", "from 1 to 4194304"},
      {"--pad-total-to", "from 1 to 4194304"},
      {"--cp-size", "from 1 to 65536"},
      {"--label-shift", "from 1 to 9223372036854775807"}};
  const std::vector<std::string> values{"-1",
                                        "-9223372036854775808",
                                        "9223372036854775808",
                                        "99999999999999999999999",
                                        "1e9",
                                        "0x10",
                                        "1.0",
                                        "2 ",
                                        "text",
                                        ""};
  for (const auto& [option, range] : options) {
    const auto is_refused = [&](const std::string& value) {
      const program_result result = inspect({"--lengths", "5", option, value});
      BOOST_TEST(result.status == 2);
      BOOST_TEST(result.out == "");
      BOOST_TEST(result.err == "seqpack-inspect: " + option + " is " +
                                   (value.empty() ? "empty" : value) +
                                   ": it must be a whole number " + range + "\n");
    };
    for (const std::string& value : values) is_refused(value);
    if (option != "--width") is_refused("0");
    if (option != "--label-shift") is_refused("4611686018427387904");  // 2^62
    if (option == "--cp-size") is_refused("99999999999");
  }
}

BOOST_AUTO_TEST_CASE(a_label_may_be_any_number_of_tokens_away) {
  const json shards =
      inspect_json({"--lengths", "3", "--label-shift", "9223372036854775807"})["shards"];
  BOOST_TEST(shards[0]["labels"] == json({nullptr, nullptr, nullptr}));
}

BOOST_AUTO_TEST_CASE(millions_of_tokens_are_written_as_they_come) {
  std::string lengths = "2700";
  for (int b = 1; b < 1000; ++b) lengths += ",2700";
  const program_result result = seqpack::testing::run_program(
      "sh", {"-c", "exec \"$0\" \"$@\" | tail -c 20", SEQPACK_EXAMPLE, "--lengths", lengths,
             "--cp-size", "2", "--format", "json"});
  BOOST_TEST(result.status == 0);
  BOOST_TEST(result.out == ",1350,1350,1350]}]}\n");
  // Instrumented, freed memory is kept for a while.
  BOOST_TEST(seqpack::testing::most_memory_of_programs() < 1'000'000'000);
}

BOOST_AUTO_TEST_CASE(long_lists_are_those_that_short_ones_are) {
  const json found = inspect_json({"--lengths", "10000"});
  BOOST_TEST_REQUIRE(found["row"].size() == 10000u);
  for (std::size_t k = 0; k < 10000; ++k) BOOST_REQUIRE(found["row"][k] == json({0, k}));
}

BOOST_AUTO_TEST_CASE(the_text_of_json_stays_as_it_is) {
  BOOST_TEST(
      inspect({"--lengths", "2,1", "--pad-each", "2", "--format", "json"}).out ==
      R"({"cu_seqlens":[0,2,3],"cu_seqlens_padded":[0,2,4],"max_seqlen":2,"total_tokens":4,)"
      R"("has_padding":true,"row":[[0,0],[0,1],[1,0],null],"shards":[{"row":[[0,0],[0,1],)"
      R"([1,0],null],"position_ids":[0,1,0,1],"seq_idx":[0,0,1,1],"padding_mask":[false,)"
      R"(false,false,true],"labels":[[0,1],null,null,null],"real_tokens_per_sequence":[2,1]}]})"
      "\n");
}

BOOST_AUTO_TEST_CASE(a_file_without_an_end_is_refused) {
  check_refused({"--lengths-file", "/dev/zero"},
                {"--lengths-file is /dev/zero: it must be a file of at most 67108864 bytes"});
}

BOOST_AUTO_TEST_CASE(bad_files_are_refused_in_one_line) {
  const temporary_file garbage("5,3\n\1\2\3 never\n");
  check_refused({"--lengths-file", garbage.path()}, {"lengths[2]", whole});
  const temporary_file comma("5,\n3\n");
  check_refused({"--lengths-file", comma.path()}, {"lengths[1]", "empty", whole});
  const temporary_file endless(std::string(100000, '7'));
  check_refused({"--lengths-file", endless.path()}, {"lengths[0]", "777...", whole});
}
