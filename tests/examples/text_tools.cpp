#define BOOST_TEST_MODULE examples_text_tools
#include "../../examples/text_tools/corpus.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "../../examples/text_tools/progress.hpp"
#include "run_program.hpp"

namespace {

using seqpack::testing::temporary_file;
using text_tools::paragraph_reader;

std::vector<std::string> paragraphs_of(const std::string& text, std::size_t longest) {
  const temporary_file file(text);
  return paragraph_reader({file.path()}, longest).next(1000);
}

struct watch {
  text_tools::progress::clock::time_point now;
  auto read() {
    return [this] { return now; };
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(paragraphs_are_cut_where_they_are_too_long) {
  const std::vector<std::string> cut{"1234", "567\n", "a\nb\n", "cd\n"};
  BOOST_TEST(paragraphs_of("\n1234567\n\na\nb\ncd", 4) == cut, boost::test_tools::per_element());
  const std::vector<std::string> exact{"123\n", "4\n"};
  BOOST_TEST(paragraphs_of("123\n \n\n4", 4) == exact, boost::test_tools::per_element());
  const std::vector<std::string> mixed{"1234", "5\n6\n", "7\n"};
  BOOST_TEST(paragraphs_of("12345\n6\n7", 4) == mixed, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_long_line_takes_the_memory_of_its_size) {
  // 30 MB. If each piece kept what came after it, they would take terabytes.
  constexpr std::size_t size = 30'000'000;
  constexpr std::size_t longest = 1000;
  const temporary_file file(std::string(size - 1, 'x') + '\n');
  paragraph_reader reader({file.path()}, longest);
  const std::vector<std::string> pieces = reader.next(size);
  BOOST_TEST_REQUIRE(pieces.size() == size / longest);
  std::size_t capacity = 0;
  for (const std::string& piece : pieces) {
    BOOST_REQUIRE_EQUAL(piece.size(), longest);
    capacity += piece.capacity();
  }
  BOOST_TEST(capacity <= 2 * size);
  BOOST_TEST(pieces.back().back() == '\n');
  BOOST_TEST(reader.bytes_read() == size);
}

BOOST_AUTO_TEST_CASE(pieces_of_one_byte_take_linear_time) {
  constexpr std::size_t size = 1'000'000;
  const temporary_file file(std::string(size - 1, 'x') + '\n');
  paragraph_reader reader({file.path()}, 1);
  std::size_t count = 0;
  while (!reader.next(1000).empty()) ++count;
  BOOST_TEST(count == size / 1000);
}

BOOST_AUTO_TEST_CASE(a_log_has_a_line_after_two_seconds_and_then_every_ten) {
  std::ostringstream out;
  watch time;
  text_tools::progress progress("steps", out, false, time.read());
  for (int second = 0; second < 25; ++second) {
    progress.show(static_cast<std::uintmax_t>(second), 25);
    time.now += std::chrono::seconds(1);
  }
  BOOST_TEST(out.str() == "2 of 25 steps, 8 %\n12 of 25 steps, 48 %\n22 of 25 steps, 88 %\n");
}

BOOST_AUTO_TEST_CASE(a_terminal_has_a_bar_that_goes) {
  std::ostringstream out;
  watch time;
  {
    text_tools::progress progress("steps", out, true, time.read());
    progress.show(1, 4);
    BOOST_TEST(out.str() == "");
    time.now += std::chrono::seconds(1);
    progress.show(2, 4);
    BOOST_TEST(out.str() == "\r[####################....................] 50 %");
    progress.show(3, 4);  // too soon
  }
  BOOST_TEST(out.str() == "\r[####################....................] 50 %\r\033[K");
}

BOOST_AUTO_TEST_CASE(short_work_and_work_of_no_size_show_nothing) {
  std::ostringstream out;
  watch time;
  {
    text_tools::progress progress("bytes", out, false, time.read());
    progress.show(1, 2);
    time.now += std::chrono::seconds(100);
    progress.show(1, 0);
  }
  BOOST_TEST(out.str() == "");
}
