#define BOOST_TEST_MODULE examples_pack_text
#include <boost/test/unit_test.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "run_program.hpp"

namespace {

using seqpack::testing::program_result;
using seqpack::testing::temporary_file;

program_result pack_text(const std::vector<std::string>& args) {
  return seqpack::testing::run_program(SEQPACK_EXAMPLE, args);
}

/// Paragraphs of 1 to 40 lines, and more blank lines between them than needed.
std::string make_text(int paragraphs) {
  std::string text = "\n\n";
  for (int p = 0; p < paragraphs; ++p) {
    for (int line = 0; line <= p * 7 % 40; ++line) {
      text += "line " + std::to_string(line) + " of paragraph " + std::to_string(p) + "\r\n";
    }
    text += p % 3 == 0 ? "\n \t\n\n" : "\n";
  }
  return text;
}

/// The lines of the table, which start with a context-parallel size.
std::vector<std::string> table_lines(const std::string& out) {
  std::vector<std::string> lines;
  std::istringstream text(out);
  for (std::string line; std::getline(text, line);) {
    int cp = 0;
    std::string each;
    if (std::istringstream(line) >> cp >> each && each == "each") lines.push_back(line);
  }
  return lines;
}

}  // namespace

BOOST_AUTO_TEST_CASE(prints_a_table) {
  const temporary_file text(make_text(100));
  const program_result result = pack_text({text.path()});
  BOOST_TEST(result.status == 0);
  BOOST_TEST(result.err == "");
  BOOST_TEST(result.out.find("1 file: 100 sequences") == 0u);
  const auto lines = table_lines(result.out);
  BOOST_TEST(lines.size() == 20u);
  for (const std::string& line : lines) {
    BOOST_TEST(line.size() == lines.front().size());
    BOOST_TEST(line.find("B/s") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(batches_and_long_paragraphs_make_no_difference) {
  const temporary_file text(make_text(50) + std::string(10000, 'x'));
  for (const char* batch : {"1", "7", "1000"}) {
    const program_result result =
        pack_text({"--batch", batch, "--longest", "100", "--total-multiple", "64", "--repeats", "1",
                   text.path(), text.path()});
    BOOST_TEST(result.status == 0);
    BOOST_TEST(table_lines(result.out).size() == 20u);
  }
}

BOOST_AUTO_TEST_CASE(planned_rows_are_compared_with_rows_in_order) {
  // Of 6, 5, 4, 3 and 2 bytes: in order 6; 5 + 4; 3 + 2 and planned 6 + 4; 5 + 3 + 2.
  const temporary_file text("12345\n\n1234\n\n123\n\n12\n\n1\n");
  const program_result result = pack_text(
      {"--row", "10", "--longest", "10", "--total-multiple", "4", "--repeats", "1", text.path()});
  BOOST_TEST(result.err == "");
  BOOST_TEST(result.out.find("1 file: 5 sequences, 20 tokens, 1 batch\n"
                             "As [B, S]: 30 tokens, 33.3 % of them padding") == 0u);
  const auto numbers = [&](const std::string& padding) {
    for (const std::string& line : table_lines(result.out)) {
      const auto at = line.find(padding + "  ");
      if (at == std::string::npos) continue;
      std::istringstream cells(line.substr(at + padding.size()));
      std::vector<int> found(4);
      for (int& number : found) cells >> number;
      return found;
    }
    return std::vector<int>{};
  };
  // Rows, rows in order, tokens, tokens in order.
  const std::vector<int> each{2, 3, 20, 20};
  BOOST_TEST(numbers("each 1") == each, boost::test_tools::per_element());
  const std::vector<int> one_shape{2, 3, 20, 30};
  BOOST_TEST(numbers("each 1, row of 10") == one_shape, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_sequence_that_no_row_has_room_for_is_refused) {
  const temporary_file text(make_text(3));
  const program_result result = pack_text({"--row", "8", text.path()});
  BOOST_TEST(result.status == 2);
  BOOST_TEST(result.err.find("it must be at most 8, what a row of capacity 8 has room for") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(reads_something_by_default) {
  BOOST_TEST(table_lines(pack_text({"--repeats", "1"}).out).size() == 20u);
}

BOOST_AUTO_TEST_CASE(a_long_line_is_packed_in_the_memory_of_its_size) {
  const temporary_file text(std::string(3'000'000, 'x'));
  const program_result result = pack_text({"--repeats", "1", text.path()});
  BOOST_TEST(result.status == 0);
  BOOST_TEST(result.out.find("1 file: 733 sequences, 3,000,001 tokens, 3 batches") == 0u);
  // Instrumented, freed memory is kept for a while.
  BOOST_TEST(seqpack::testing::most_memory_of_programs() < 1'000'000'000);
}

BOOST_AUTO_TEST_CASE(a_refused_number_is_told_with_its_range) {
  struct refusal {
    std::string option;
    std::string value;
    std::string range;
  };
  const std::vector<refusal> refusals{{"--batch", "0", "from 1 to 1048576"},
                                      {"--batch", "", "from 1 to 1048576"},
                                      {"--longest", "4611686018427387904", "from 1 to 1048576"},
                                      {"--total-multiple", "-1", "from 1 to 1073741824"},
                                      {"--repeats", "x", "from 1 to 1000"},
                                      {"--row", "-1", "from 0 to 1073741824"},
                                      {"--threads", "1e3", "from 1 to 4096"}};
  for (const auto& [option, value, range] : refusals) {
    const program_result result = pack_text({option + "=" + value});
    BOOST_TEST(result.status == 2);
    BOOST_TEST(result.err == "seqpack-pack-text: " + option + " is " +
                                 (value.empty() ? "empty" : value) +
                                 ": it must be a whole number " + range + "\n");
    BOOST_TEST(pack_text({"--help"}).out.find(range) != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_batch_that_takes_too_much_memory_is_refused) {
  // A row of 2^30 tokens, and 10^6 rows as wide as a line of 10^6.
  const temporary_file text(make_text(3));
  BOOST_TEST(
      pack_text({"--total-multiple", "1073741824", text.path()})
          .err.find("seqpack-pack-text: memory for a packed batch is 77.31 GB: it must be at "
                    "most ") == 0u);
  std::string lines(1'000'000, 'x');
  for (int k = 1; k < 1'000'000; ++k) lines += "\n\nx";
  const temporary_file wide(lines);
  const program_result result =
      pack_text({"--batch", "1000000", "--longest", "1000000", wide.path()});
  BOOST_TEST(result.status == 2);
  BOOST_TEST(result.err.find("memory for a batch [B, S] is 72.00 TB: it must be at most ") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(full_standard_output_is_told) {
  const temporary_file text(make_text(3));
  const program_result result = seqpack::testing::run_program(
      "sh", {"-c", "exec \"$0\" \"$@\" > /dev/full", SEQPACK_EXAMPLE, text.path()});
  BOOST_TEST(result.status == 2);
  BOOST_TEST(result.err == "seqpack-pack-text: cannot write to standard output\n");
}

BOOST_AUTO_TEST_CASE(bad_input_is_refused_in_one_line) {
  const temporary_file empty(" \n\n\t\n");
  const temporary_file text(make_text(3));
  const std::vector<std::vector<std::string>> bad{
      {"/no/such/file"},
      {"/"},
      {empty.path()},
      {"--batch", "0", text.path()},
      {"--nonsense", text.path()},
      {"--total-multiple", "-1", text.path()},
      {"--total-multiple", "9", text.path()}};  // no multiple of what the sharding divides by
  for (const auto& args : bad) {
    const program_result result = pack_text(args);
    BOOST_TEST_CONTEXT(args.front() << ": " << result.err) {
      BOOST_TEST(result.status == 2);
      BOOST_TEST(result.out == "");
      BOOST_TEST(result.error_lines() == 1);
    }
  }
}
