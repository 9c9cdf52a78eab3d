// The table of docs/cuda.md is the list that the audit compares with what it measures.
#define BOOST_TEST_MODULE audited_calls
#include "support/audited_calls.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

using namespace seqpack::testing;

namespace {

const std::filesystem::path tests = std::filesystem::path(SEQPACK_TEST_DATA).parent_path();
constexpr std::string_view begin_mark =
    "<!-- audit: begin; made from tests/support/audited_calls.hpp -->\n";
constexpr std::string_view end_mark = "<!-- audit: end -->";

std::string page() {
  std::ifstream file(tests.parent_path() / "docs" / "cuda.md");
  BOOST_TEST_REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_table_of_the_page_is_the_list) {
  const std::string text = page();
  const std::size_t begin = text.find(begin_mark);
  const std::size_t end = text.find(end_mark);
  BOOST_TEST_REQUIRE(begin != std::string::npos);
  BOOST_TEST_REQUIRE(end != std::string::npos);
  const std::size_t first = begin + begin_mark.size();
  BOOST_TEST_REQUIRE(first <= end);
  const bool same = text.substr(first, end - first) == "\n" + audit_table() + "\n";
  BOOST_TEST(same, "docs/cuda.md is stale; its table must be\n\n" << audit_table());
}

BOOST_AUTO_TEST_CASE(every_call_is_measured_by_a_program_that_exists) {
  std::set<std::string_view> calls;
  for (const audited_program& program : audited_programs) {
    BOOST_TEST(std::filesystem::exists(tests / program.source), program.source);
    BOOST_TEST(!program.calls.empty());
    for (const call_cost& cost : program.calls) {
      BOOST_TEST(calls.insert(cost.call).second, cost.call << " is listed twice");
    }
  }
}

// What the library promises, whatever the list says.
BOOST_AUTO_TEST_CASE(the_list_keeps_the_promises) {
  const auto cost_of = [](std::string_view call) {
    for (const audited_program& program : audited_programs) {
      for (const call_cost& cost : program.calls) {
        if (cost.call == call) return cost;
      }
    }
    BOOST_FAIL(std::string(call) + " is not listed");
    return call_cost{};
  };
  for (const auto name : {"`make_layout` from device lengths", "`from_cu_seqlens`, checked"}) {
    BOOST_TEST(cost_of(name).launches <= 2);
    BOOST_TEST(cost_of(name).waits == 1);
  }
  for (const auto name : {"`from_cu_seqlens`, deferred", "`capacity_layout::build`"}) {
    BOOST_TEST(cost_of(name).launches <= 2);
    BOOST_TEST(cost_of(name).waits == 0);
  }
  for (const auto name :
       {"`pack`, 1 tensor", "`pack`, 3 tensors of different types, widths and fills",
        "`pack`, 64 tensors", "`pack` from a ragged or left-padded batch", "`unpack`, 1 tensor",
        "`unpack`, 3 tensors of different types, widths and fills",
        "`unpack` to a ragged or left-padded batch", "`unpack_own`", "`rearrange`",
        "`per_token`, any arrays"}) {
    const call_cost one_launch{.call = name, .launches = 1};
    BOOST_TEST((cost_of(name) == one_launch), name);
  }
  // Only a call that returns numbers to the host, or meets other ranks, may wait; and only one that
  // meets other ranks copies from pageable memory: its record of a few bytes.
  for (const audited_program& program : audited_programs) {
    for (const call_cost& cost : program.calls) {
      const bool waits = cost.waits > 0 || cost.polls;
      BOOST_TEST(waits == (cost.captured == capture::refused), cost.call);
      BOOST_TEST((cost.to_host == 0 || waits), cost.call);
      BOOST_TEST((cost.to_device_pageable == 0 || cost.polls), cost.call);
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_say_what_is_in_them) {
  BOOST_TEST(table_row({.call = "a", .launches = 2, .waits = 1}) == "| a | 2 | | | | | 1 | yes |");
  BOOST_TEST(table_row({.call = "b",
                        .memsets = 1,
                        .to_device_pinned = 1,
                        .to_device_pageable = 2,
                        .to_host = 3,
                        .allocations = 4,
                        .waits = 5,
                        .polls = true,
                        .captured = capture::refused}) ==
             "| b | | 1 | 1 pinned, 2 pageable | 3 | 4 | 5, polls | throws |");
  BOOST_TEST(table_row({.call = "c", .polls = true, .captured = capture::outside}) ==
             "| c | | | | | | polls | before it |");
}
