// Pictures of plans: rows and their fill, steps and their ranks.
#define BOOST_TEST_MODULE draw_plan
#include "seqpack/draw/draw_plan.hpp"

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <boost/test/unit_test.hpp>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "seqpack/draw/draw_plan_svg.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using seqpack::testing::refusal;

const std::vector<int> lengths{5, 3, 8, 2, 7};
const padding<each_multiple_of<4>> each4{};
const row_plan three_rows(std::vector{0, 2, 4, 1, 3}, std::vector{0, 2, 4, 5});
const step_plan two_steps(row_plan(std::vector{0, 2, 4, 1, 3}, std::vector{0, 2, 4, 5, 5}), 2);
const std::string key = "\nA is sequence 0, B is sequence 1, and so on\n.  padding\n";

boost::property_tree::ptree parsed(const std::string& svg) {
  std::istringstream in(svg);
  boost::property_tree::ptree tree;
  boost::property_tree::read_xml(in, tree);
  return tree.get_child("svg");
}

/// "class x width fill" of every rectangle, without fractions.
std::vector<std::string> boxes(const std::string& svg, const std::string& kind) {
  std::vector<std::string> found;
  for (const auto& [name, node] : parsed(svg)) {
    if (name != "rect" || node.get<std::string>("<xmlattr>.class") != kind) continue;
    found.push_back(node.get<std::string>("<xmlattr>.x") + " " +
                    node.get<std::string>("<xmlattr>.width") + " " +
                    node.get<std::string>("<xmlattr>.fill"));
  }
  return found;
}
std::vector<std::string> texts(const std::string& svg, const std::string& kind) {
  std::vector<std::string> found;
  for (const auto& [name, node] : parsed(svg)) {
    if (name == "text" && node.get<std::string>("<xmlattr>.class") == kind) {
      found.push_back(node.data());
    }
  }
  return found;
}
std::size_t edges(const std::string& svg) {
  std::size_t count = 0;
  for (const auto& [name, node] : parsed(svg)) {
    count += name == "path" && node.get<std::string>("<xmlattr>.class") == "edge";
  }
  return count;
}

using strings = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(rows_show_sequences_padding_and_the_capacity) {
  BOOST_TEST(draw_plan(three_rows, lengths, 16, each4) ==
             "3 rows for 16 tokens: 5 sequences, 25 real tokens, 66.7 % full; at least 2 rows\n"
             "\n"
             "row 0  AAAAA...CCCCCCCC|  16 tokens\n"
             "row 1  EEEEEEE.BBB.    |  12 tokens\n"
             "row 2  DD..            |  4 tokens\n" +
                 key);
}

BOOST_AUTO_TEST_CASE(steps_show_ranks_and_empty_micro_batches) {
  BOOST_TEST(
      draw_plan(two_steps, lengths, 20, each4, {.title = "epoch 3"}) ==
      "epoch 3\n"
      "2 steps of 2 ranks for 20 tokens: 5 sequences, 25 real tokens, 40.0 % full, 1 empty; cost "
      "20, 16 if no rank waited\n"
      "\n"
      "step 0, rank 0  AAAAA...CCCCCCCC    |  16 tokens\n"
      "step 0, rank 1  EEEEEEE.BBB.        |  12 tokens\n"
      "\n"
      "step 1, rank 0  DD..                |  4 tokens\n"
      "step 1, rank 1                      |  empty\n" +
          key);
}

BOOST_AUTO_TEST_CASE(tails_are_those_of_the_layouts) {
  const padding<each_multiple_of<4>, fixed_total<18>> absorbed{};
  BOOST_TEST(
      draw_plan(two_steps, lengths, dynamic, absorbed) ==
      "2 steps of 2 ranks for 18 tokens: 5 sequences, 25 real tokens, 44.4 % full, 1 empty; cost "
      "20, 16 if no rank waited\n"
      "\n"
      "step 0, rank 0  AAAAA...CCCCCCCC..|  18 tokens\n"
      "step 0, rank 1  EEEEEEE.BBB.......|  18 tokens\n"
      "\n"
      "step 1, rank 0  DD................|  18 tokens\n"
      "step 1, rank 1                    |  empty\n" +
          key);
  const padding<each_multiple_of<4>, total_multiple_of<10>, ghost_tail> ghost{};
  BOOST_TEST(draw_plan(three_rows, lengths, 25, ghost) ==
             "3 rows for 25 tokens: 5 sequences, 25 real tokens, 53.3 % full; at least 2 rows\n"
             "\n"
             "row 0  AAAAA...CCCCCCCC~~~~     |  20 tokens\n"
             "row 1  EEEEEEE.BBB.~~~~~~~~     |  20 tokens\n"
             "row 2  DD..~~~~~~               |  10 tokens\n" +
                 key + "~  ghost, padding of no sequence\n");
}

BOOST_AUTO_TEST_CASE(pieces_are_numbered_as_the_plan_does) {
  const row_plan plan({1, 0, 2}, {0, 2, 3}, {{0, 0, 3}, {1, 0, 4}, {1, 4, 2}});
  BOOST_TEST(draw_plan(plan, std::vector{3, 6}, 8) ==
             "2 rows for 8 tokens: 3 pieces, 9 real tokens, 56.3 % full; at least 2 rows\n"
             "\n"
             "row 0  BBBBAAA |  7 tokens\n"
             "row 1  CC      |  2 tokens\n"
             "\n"
             "A is piece 0, B is piece 1, and so on\n");
}

BOOST_AUTO_TEST_CASE(long_rows_are_scaled_down) {
  const row_plan plan(std::vector{0, 1}, std::vector{0, 2});
  BOOST_TEST(draw_plan(plan, std::vector{155, 30}, 200, no_padding{}, {.columns = 40}) ==
             "1 row for 200 tokens: 2 sequences, 185 real tokens, 92.5 % full; at least 1 row\n"
             "scaled down: one character is 10 tokens, + where they differ\n"
             "\n"
             "row 0  AAAAAAAAAAAAAAA+BBB |  185 tokens\n"
             "\n"
             "A is sequence 0, B is sequence 1, and so on\n");
}

BOOST_AUTO_TEST_CASE(a_capacity_far_above_all_rows_is_not_shown) {
  BOOST_TEST(
      draw_plan(three_rows, lengths, max_tokens, each4) ==
      "3 rows for 281474976710656 tokens: 5 sequences, 25 real tokens, 0.0 % full; at least 1 "
      "row\n"
      "\n"
      "row 0  AAAAA...CCCCCCCC   16 tokens\n"
      "row 1  EEEEEEE.BBB.       12 tokens\n"
      "row 2  DD..               4 tokens\n" +
          key);
}

BOOST_AUTO_TEST_CASE(only_some_rows_are_shown_and_only_whole_steps) {
  const std::string two = draw_plan(three_rows, lengths, 16, each4, {.rows = 2});
  BOOST_TEST(two.find("row 1  EEEEEEE.BBB.    |  12 tokens\n... and 1 more row\n\nA is") !=
             two.npos);
  BOOST_TEST(two.find("row 2") == two.npos);
  const std::string one_step = draw_plan(two_steps, lengths, 16, each4, {.rows = 3});
  BOOST_TEST(one_step.find("step 0, rank 1") != one_step.npos);
  BOOST_TEST(one_step.find("step 1") == one_step.npos);
  BOOST_TEST(one_step.find("... and 2 more rows\n") != one_step.npos);
  const std::string none = draw_plan(three_rows, lengths, 16, each4, {.rows = 0});
  BOOST_TEST(none ==
             "3 rows for 16 tokens: 5 sequences, 25 real tokens, 66.7 % full; at least 2 rows\n"
             "... and 3 more rows\n"
             "A is sequence 0, B is sequence 1, and so on\n");
}

BOOST_AUTO_TEST_CASE(nothing_planned_is_still_said) {
  BOOST_TEST(draw_plan(row_plan(), std::vector<int>{}, 16) ==
             "0 rows for 16 tokens: 0 sequences, 0 real tokens, 100.0 % full; at least 0 rows\n");
  BOOST_TEST(
      draw_plan(step_plan(), std::vector<int>{}, 16) ==
      "0 steps of 1 rank for 16 tokens: 0 sequences, 0 real tokens, 100.0 % full, 0 empty; cost "
      "0, 0 if no rank waited\n");
}

BOOST_AUTO_TEST_CASE(colours_are_those_of_the_sequences) {
  const row_plan plan(std::vector{0, 1}, std::vector{0, 2});
  const std::string text = draw_plan(plan, std::vector{3, 2}, 8, each4, {.colour = true});
  BOOST_TEST(text.find("row 0  \x1b[0;1;31mAAA\x1b[0;2;31m.\x1b[0;1;32mBB\x1b[0;2;32m..\x1b[0m|  8 "
                       "tokens\n") != text.npos);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_refused) {
  const auto says = [&](offset_t capacity, const draw_options& options) {
    return refusal([&] { draw_plan(three_rows, lengths, capacity, each4, options); });
  };
  BOOST_TEST(says(16, {.rows = -1}) == "rows is -1: it must be from 0 to 1000000");
  BOOST_TEST(says(16, {.columns = 39}) == "columns is 39: it must be from 40 to 1000000");
  BOOST_TEST(
      says(12, {}) ==
      "padded lengths of row 0 together is 16: it must be at most 12, what a row of capacity 12 "
      "has room for");
  BOOST_TEST(refusal([&] { draw_plan(three_rows, std::vector{1, 2}, 16); }) ==
             "slot 1 of row 0 is 2: it must be a sequence, from 0 to 1");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(svg)

BOOST_AUTO_TEST_CASE(a_row_is_a_band_and_a_sequence_a_box_and_its_padding) {
  // 960 pixels: the bands begin at 160 and are 682 wide, 42.625 for each of 16 tokens.
  const std::string svg = draw_plan_svg(three_rows, lengths, 16, each4);
  BOOST_TEST(
      boxes(svg, "width") == (strings{"160 682 #eef0f3", "160 682 #eef0f3", "160 682 #eef0f3"}),
      boost::test_tools::per_element());
  BOOST_TEST(
      boxes(svg, "row") ==
          (strings{"160 213.13 #8db9e8", "373.13 127.88 url(#pad0)", "501 341 #8fd19e",
                   "160 298.38 #c2a5e6", "458.38 42.63 url(#pad4)", "501 127.88 #f6b26b",
                   "628.88 42.63 url(#pad1)", "160 85.25 #ef9fa4", "245.25 85.25 url(#pad3)"}),
      boost::test_tools::per_element());
  BOOST_TEST(texts(svg, "label") == (strings{"row 0", "row 1", "row 2"}),
             boost::test_tools::per_element());
  BOOST_TEST(texts(svg, "token") == (strings{"0", "2", "4", "1", "3"}),
             boost::test_tools::per_element());
  BOOST_TEST(texts(svg, "bound") == (strings{"16"}), boost::test_tools::per_element());
  BOOST_TEST(
      texts(svg, "muted") ==
          (strings{"3 rows for 16 tokens: 5 sequences, 25 real tokens, 66.7 % full; at least 2 "
                   "rows",
                   "16 tokens", "12 tokens", "4 tokens", "padding"}),
      boost::test_tools::per_element());
  BOOST_TEST(edges(svg) == 3U);
}

BOOST_AUTO_TEST_CASE(micro_batches_are_bands_and_empty_ones_have_no_box) {
  const std::string svg = draw_plan_svg(two_steps, lengths, 16, each4, {.title = "a < b"});
  BOOST_TEST(texts(svg, "label") ==
                 (strings{"step 0, rank 0", "step 0, rank 1", "step 1, rank 0", "step 1, rank 1"}),
             boost::test_tools::per_element());
  BOOST_TEST(boxes(svg, "row").size() == 9U);
  BOOST_TEST(texts(svg, "muted")[4] == "empty");
  BOOST_TEST(texts(svg, "title") == (strings{"a < b"}), boost::test_tools::per_element());
  BOOST_TEST(parsed(svg).get<std::string>("title") == "a < b");
}

BOOST_AUTO_TEST_CASE(a_ghost_is_in_no_colour_of_a_sequence) {
  const padding<fixed_total<20>, ghost_tail> ghost{};
  const std::string svg = draw_plan_svg(three_rows, lengths, dynamic, ghost);
  BOOST_TEST(boxes(svg, "row")[2] == "603.30 238.70 url(#pad8)");
  BOOST_TEST(boxes(svg, "legend").size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_edge_that_is_far_away_is_not_drawn) {
  const std::string svg = draw_plan_svg(three_rows, lengths, max_tokens, each4);
  BOOST_TEST(edges(svg) == 0U);
  BOOST_TEST(boxes(svg, "row")[0] == "160 213.13 #8db9e8");
}

BOOST_AUTO_TEST_CASE(only_some_rows_of_many_are_drawn) {
  std::vector<offset_t> sequences(500);
  std::vector<offset_t> bounds{0};
  for (offset_t k = 0; k < 500; ++k) {
    sequences[static_cast<std::size_t>(k)] = k;
    bounds.push_back(k + 1);
  }
  const row_plan plan(sequences, bounds);
  const std::string svg = draw_plan_svg(plan, std::vector<int>(500, 3), 8);
  BOOST_TEST(boxes(svg, "row").size() == 40U);
  BOOST_TEST(texts(svg, "muted").back() == "... and 460 more rows");
  BOOST_TEST(svg.size() < 20'000U);
  parsed(draw_plan_svg(row_plan(), std::vector<int>{}, 8));
}

BOOST_AUTO_TEST_SUITE_END()
