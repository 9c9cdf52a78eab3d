#define BOOST_TEST_MODULE draw
#include "seqpack/draw/draw.hpp"

#include <algorithm>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <boost/test/unit_test.hpp>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "seqpack/layout/adopt.hpp"
#include "seqpack/layout/layout.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using seqpack::testing::refused_as;

const std::vector<int> lengths{5, 3, 8};
constexpr padding<each_multiple_of<4>> each4;

std::size_t occurrences(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::size_t longest_line(const std::string& text) {
  std::istringstream in(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(in, line);) longest = std::max(longest, line.size());
  return longest;
}

boost::property_tree::ptree parsed(const std::string& svg) {
  std::istringstream in(svg);
  boost::property_tree::ptree tree;
  boost::property_tree::read_xml(in, tree);
  return tree.get_child("svg");
}

/// The numbers of rectangles by class.
std::map<std::string, offset_t> rectangles(const std::string& svg) {
  std::map<std::string, offset_t> counts;
  for (const auto& [name, node] : parsed(svg)) {
    if (name == "rect") ++counts[node.get<std::string>("<xmlattr>.class")];
  }
  return counts;
}

/// Runs of a place; with `cut`, as many as there are when each is cut at its last real token.
template <class View, class Place>
offset_t runs(const View& view, Place at, bool cut) {
  offset_t count = 0;
  for_each_run(view, at, 0, view.rows(at), [&](offset_t, const token_run& run) {
    const offset_t real = run.first.length - run.first.index;
    count += cut && real > 0 && real < run.count ? 2 : 1;
  });
  return count;
}

/// Every rectangle of the picture is a run, and every run has one.
template <class L>
void check_rectangles(const L& layout) {
  const auto view = layout.view();
  auto counts = rectangles(draw_svg(layout));
  offset_t filled_rows = 0;
  for (offset_t s = 0; s < view.sequences; ++s) filled_rows += view.length(s) > 0;
  BOOST_TEST(counts["paper"] == 1);
  BOOST_TEST(counts["width"] == view.batch);
  BOOST_TEST(counts["batch"] == filled_rows);
  BOOST_TEST(counts["row"] == runs(view, full_row, true));
  const bool shared = view.cp.size() > 1 && view.total > 0;
  BOOST_TEST(counts["shard"] == (shared ? runs(view, all_shards, true) : 0));
  BOOST_TEST(counts["owner"] == (shared ? runs(view, all_shards, false) : 0));
  BOOST_TEST(counts["rank"] == (shared ? view.cp.size() : 0));
}

/// An owner of arrays that the host cannot read.
struct device_owner : decltype(make_layout(lengths)) {
  static constexpr bool on_device = true;
};

template <class L>
concept drawable = requires(const L& l) {
  draw_text(l);
  draw_svg(l);
};
static_assert(drawable<decltype(make_layout(lengths))>);
static_assert(drawable<decltype(make_layout(lengths).view())>);
static_assert(!drawable<device_owner>);
static_assert(!drawable<std::vector<int>>);

}  // namespace

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(one_rank_has_a_row_and_no_shards) {
  BOOST_TEST(draw_text(make_layout(lengths, each4)) ==
             "3 sequences, 20 tokens: 16 real, 20.0 % padding; cp 1, max_seqlen 8\n"
             "\n"
             "bounds  0       8   12\n"
             "tokens  AAAAA...BBB.CCCCCCCC\n"
             "\n"
             "A  sequence 0: 5 tokens, padded to 8\n"
             "B  sequence 1: 3 tokens, padded to 4\n"
             "C  sequence 2: 8 tokens, padded to 8\n"
             ".  padding\n");
}

BOOST_AUTO_TEST_CASE(two_ranks_show_owners_and_shards) {
  BOOST_TEST(draw_text(make_layout(lengths, each4, context_parallel<2>{})) ==
             "3 sequences, 20 tokens: 16 real, 20.0 % padding; cp 2, max_seqlen 8\n"
             "\n"
             "bounds  0       8   12\n"
             "tokens  AAAAA...BBB.CCCCCCCC\n"
             "owners  00111100011000111100\n"
             "\n"
             "rank 0  AA..B.CCCC\n"
             "rank 1  AAA.BBCCCC\n"
             "\n"
             "A  sequence 0: 5 tokens, padded to 8\n"
             "B  sequence 1: 3 tokens, padded to 4\n"
             "C  sequence 2: 8 tokens, padded to 8\n"
             ".  padding\n");
}

BOOST_AUTO_TEST_CASE(a_bare_view_draws_the_same) {
  const auto layout = make_layout(lengths, each4, context_parallel<2>{});
  BOOST_TEST(draw_text(layout.view()) == draw_text(layout));
  BOOST_TEST(draw_svg(layout.view()) == draw_svg(layout));
}

BOOST_AUTO_TEST_CASE(a_ghost_tail_belongs_to_no_sequence) {
  const auto layout =
      make_layout(lengths, padding{each_multiple_of<4>{}, fixed_total<32>{}, ghost_tail{}},
                  context_parallel<2, striped>{});
  BOOST_TEST(draw_text(layout) ==
             "3 sequences, 32 tokens: 16 real, 50.0 % padding; cp 2, max_seqlen 12\n"
             "\n"
             "bounds  0       8   12      20\n"
             "tokens  AAAAA...BBB.CCCCCCCC~~~~~~~~~~~~\n"
             "owners  01010101010101010101010101010101\n"
             "\n"
             "rank 0  AAA.BBCCCC~~~~~~\n"
             "rank 1  AA..B.CCCC~~~~~~\n"
             "\n"
             "A  sequence 0: 5 tokens, padded to 8\n"
             "B  sequence 1: 3 tokens, padded to 4\n"
             "C  sequence 2: 8 tokens, padded to 8\n"
             ".  padding\n"
             "~  ghost, padding of no sequence: 12 tokens\n");
}

BOOST_AUTO_TEST_CASE(empty_sequences_are_listed_and_take_no_room) {
  const auto layout = make_layout(std::vector<int>{0, 3, 0}, padding{fixed_total<8>{}});
  BOOST_TEST(draw_text(layout) ==
             "3 sequences, 8 tokens: 3 real, 62.5 % padding; cp 1, max_seqlen 5\n"
             "\n"
             "bounds  0  3\n"
             "tokens  BBB.....\n"
             "\n"
             "A  sequence 0: 0 tokens, padded to 0\n"
             "B  sequence 1: 3 tokens, padded to 3\n"
             "C  sequence 2: 0 tokens, padded to 5\n"
             ".  padding\n");
}

BOOST_AUTO_TEST_CASE(no_sequence_and_no_token) {
  BOOST_TEST(draw_text(make_layout(std::vector<int>{})) ==
             "0 sequences, 0 tokens: 0 real, 0.0 % padding; cp 1, max_seqlen 0\n");
  BOOST_TEST(draw_text(make_layout(std::vector<int>{0}, each4, context_parallel<2>{})) ==
             "1 sequence, 0 tokens: 0 real, 0.0 % padding; cp 2, max_seqlen 0\n"
             "A  sequence 0: 0 tokens, padded to 0\n");
}

BOOST_AUTO_TEST_CASE(no_sequence_but_a_ghost) {
  const auto layout = make_layout(std::vector<int>{}, padding{fixed_total<8>{}, ghost_tail{}},
                                  context_parallel<2>{});
  BOOST_TEST(draw_text(layout) ==
             "0 sequences, 8 tokens: 0 real, 100.0 % padding; cp 2, max_seqlen 8\n"
             "\n"
             "bounds  0\n"
             "tokens  ~~~~~~~~\n"
             "owners  00111100\n"
             "\n"
             "rank 0  ~~~~\n"
             "rank 1  ~~~~\n"
             "\n"
             ".  padding\n"
             "~  ghost, padding of no sequence: 8 tokens\n");
}

BOOST_AUTO_TEST_CASE(an_order_names_the_batch_rows) {
  const std::vector<offset_t> order{2, 0};
  const auto layout = make_layout(lengths, no_padding{}, no_context_parallel{}, {.order = order});
  BOOST_TEST(draw_text(layout) ==
             "2 sequences, 13 tokens: 13 real, 0.0 % padding; cp 1, max_seqlen 8\n"
             "\n"
             "bounds  0       8\n"
             "tokens  AAAAAAAABBBBB\n"
             "\n"
             "A  sequence 2: 8 tokens, padded to 8\n"
             "B  sequence 0: 5 tokens, padded to 5\n"
             "1 sequence not packed\n");
}

BOOST_AUTO_TEST_CASE(a_title_comes_first) {
  const std::string text = draw_text(make_layout(lengths), {.title = "three & more"});
  BOOST_TEST(text.starts_with("three & more\n3 sequences, "));
}

BOOST_AUTO_TEST_CASE(colour_changes_nothing_but_the_colour) {
  const auto layout = make_layout(lengths, each4, context_parallel<2>{});
  const std::string plain = draw_text(layout);
  std::string coloured = draw_text(layout, {.colour = true});
  BOOST_TEST(occurrences(plain, "\x1b") == 0U);
  BOOST_TEST(occurrences(coloured, "\x1b[0;1;31mAAAAA\x1b[0;2;31m...\x1b[0;1;32mBBB") == 1U);
  // Each line ends without colour.
  for (auto end = coloured.find('\n'); end != coloured.npos; end = coloured.find('\n', end + 1)) {
    const auto code = coloured.rfind('\x1b', end);
    if (code != coloured.npos) BOOST_TEST(coloured.substr(code, 4) == "\x1b[0m");
  }
  for (auto at = coloured.find('\x1b'); at != coloured.npos; at = coloured.find('\x1b')) {
    coloured.erase(at, coloured.find('m', at) + 1 - at);
  }
  BOOST_TEST(coloured == plain);
}

BOOST_AUTO_TEST_CASE(lines_wrap_at_the_columns) {
  const auto layout =
      make_layout(std::vector<int>{30, 40}, no_padding{}, context_parallel<2, striped>{});
  const std::string text = draw_text(layout, {.columns = 40});
  BOOST_TEST(text ==
             "2 sequences, 70 tokens: 70 real, 0.0 % padding; cp 2, max_seqlen 40\n"
             "\n"
             "bounds  0                             30\n"
             "tokens  AAAAAAAAAAAAAAAAAAAAAAAAAAAAAABB\n"
             "owners  01010101010101010101010101010101\n"
             "\n"
             "        BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\n"
             "        01010101010101010101010101010101\n"
             "\n"
             "        BBBBBB\n"
             "        010101\n"
             "\n"
             "rank 0  AAAAAAAAAAAAAAABBBBBBBBBBBBBBBBB\n"
             "        BBB\n"
             "rank 1  AAAAAAAAAAAAAAABBBBBBBBBBBBBBBBB\n"
             "        BBB\n"
             "\n"
             "A  sequence 0: 30 tokens, padded to 30\n"
             "B  sequence 1: 40 tokens, padded to 40\n");
}

BOOST_AUTO_TEST_CASE(a_long_row_is_scaled_down_and_says_so) {
  const auto layout = make_layout(std::vector<int>{41, 59}, no_padding{}, no_context_parallel{});
  BOOST_TEST(draw_text(layout, {.longest = 10}) ==
             "2 sequences, 100 tokens: 100 real, 0.0 % padding; cp 1, max_seqlen 59\n"
             "scaled down: one character is 10 tokens, + where they differ\n"
             "\n"
             "bounds  0   41\n"
             "tokens  AAAA+BBBBB\n"
             "\n"
             "A  sequence 0: 41 tokens, padded to 41\n"
             "B  sequence 1: 59 tokens, padded to 59\n");
}

BOOST_AUTO_TEST_CASE(a_huge_row_stays_small) {
  // Neither the text nor the work may grow with T.
  const auto layout = make_layout<std::int64_t>(std::vector<offset_t>{offset_t{1} << 40, 8},
                                                no_padding{}, context_parallel<2>{});
  const std::string text = draw_text(layout, {.longest = 200});
  BOOST_TEST(text.size() < 2000U);
  BOOST_TEST(longest_line(text) <= 100U);
  BOOST_TEST(draw_svg(layout).size() < 10000U);
}

BOOST_AUTO_TEST_CASE(many_sequences_and_ranks_are_elided) {
  const std::vector<int> many(60, 40);
  const std::string text = draw_text(make_layout(many, no_padding{}, context_parallel<20>{}));
  BOOST_TEST(occurrences(text, "\nrank ") == 12U);
  BOOST_TEST(occurrences(text, "\n... and 8 more ranks\n") == 1U);
  BOOST_TEST(occurrences(text, "  sequence ") == 12U);
  BOOST_TEST(occurrences(text, "\n... and 48 more sequences\n") == 1U);
  BOOST_TEST(occurrences(text, "\nletters repeat after 52 sequences\n") == 1U);
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_refused) {
  const auto layout = make_layout(lengths);
  BOOST_CHECK_EXCEPTION(draw_text(layout, {.columns = 39}), invalid_input,
                        refused_as("columns is 39: it must be from 40 to 1000000"));
  BOOST_CHECK_EXCEPTION(draw_text(layout, {.longest = 0}), invalid_input,
                        refused_as("longest is 0: it must be from 1 to 1000000"));
  BOOST_CHECK_EXCEPTION(draw_text(layout, {.entries = -1}), invalid_input,
                        refused_as("entries is -1: it must be from 0 to 1000000"));
  BOOST_CHECK_EXCEPTION(draw_svg(layout, {.width = 639}), invalid_input,
                        refused_as("width is 639: it must be from 640 to 1000000"));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(svg)

BOOST_AUTO_TEST_CASE(every_run_is_one_rectangle) {
  const padding ghost{each_multiple_of<4>{}, fixed_total<32>{}, ghost_tail{}};
  check_rectangles(make_layout(lengths));
  check_rectangles(make_layout(lengths, each4, context_parallel<2>{}));
  check_rectangles(make_layout(lengths, each4, context_parallel<4, contiguous>{}));
  check_rectangles(make_layout(lengths, each4, context_parallel<4, striped>{}));
  check_rectangles(make_layout(lengths, each4, context_parallel<4, row_contiguous>{}));
  check_rectangles(make_layout(lengths, ghost, context_parallel<2>{}));
  check_rectangles(make_layout(std::vector<int>{0, 3, 0, 2, 0}, ghost, context_parallel<2>{}));
  check_rectangles(
      from_cu_seqlens(std::vector{0, 3, 8}, std::vector{0, 4, 12}, 12, context_parallel<2>{}));
}

BOOST_AUTO_TEST_CASE(nothing_to_draw_is_still_a_document) {
  check_rectangles(make_layout(std::vector<int>{}));
  check_rectangles(make_layout(std::vector<int>{0, 0}, each4, context_parallel<2>{}));
}

BOOST_AUTO_TEST_CASE(the_root_scales_and_has_its_own_paper) {
  const auto tree = parsed(draw_svg(make_layout(lengths), {.width = 700}));
  BOOST_TEST(tree.get<std::string>("<xmlattr>.viewBox").starts_with("0 0 700 "));
  BOOST_TEST(tree.get<std::string>("rect.<xmlattr>.class") == "paper");
}

BOOST_AUTO_TEST_CASE(a_title_is_escaped) {
  const std::string title = "<a> & \"b\" \x01";
  const std::string svg = draw_svg(make_layout(lengths), {.title = title});
  BOOST_TEST(parsed(svg).get<std::string>("title") == "<a> & \"b\"  ");
  BOOST_TEST(occurrences(svg, "<a>") == 0U);
}

BOOST_AUTO_TEST_CASE(bounds_that_collide_are_left_out) {
  const std::string svg = draw_svg(make_layout(std::vector<int>(500, 3)));
  parsed(svg);
  const std::size_t shown = occurrences(svg, "class='bound'");
  BOOST_TEST(shown > 10U);
  BOOST_TEST(shown < 100U);
  BOOST_TEST(occurrences(svg, ">1500</text>") == 1U);
}

BOOST_AUTO_TEST_CASE(ownership_that_is_too_fine_is_said_not_drawn) {
  const std::vector<int> four(4, 1000);
  const auto layout = make_layout(four, no_padding{}, context_parallel<4, striped>{});
  const std::string svg = draw_svg(layout);
  auto counts = rectangles(svg);
  BOOST_TEST(counts["owner"] == 0);
  BOOST_TEST(counts["shard"] == 16);  // one per sequence and rank: the single tokens are joined
  BOOST_TEST(occurrences(svg, "in 4000 pieces: too fine to draw") == 1U);
  BOOST_TEST(svg.size() < 20000U);
}

BOOST_AUTO_TEST_CASE(only_some_rows_of_a_large_batch_are_shown) {
  auto counts = rectangles(draw_svg(make_layout(std::vector<int>(50, 3)), {.entries = 5}));
  BOOST_TEST(counts["width"] == 5);
  BOOST_TEST(counts["batch"] == 5);
  BOOST_TEST(counts["row"] == 50);
}

BOOST_AUTO_TEST_SUITE_END()
