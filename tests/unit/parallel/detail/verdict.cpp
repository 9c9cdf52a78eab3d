// The records of a call and the verdict on them, without the ranks that send them around.
#define BOOST_TEST_MODULE parallel_verdict
#include "seqpack/parallel/detail/verdict.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "seqpack/layout/layout.hpp"

namespace {

using namespace seqpack;

auto says(const std::string& text) {
  return [=](const collective_mismatch& e) {
    BOOST_TEST(e.what() == text);
    return true;
  };
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_largest_records_fit_into_the_envelope) {
  detail::call_record record;
  record.refuse(std::string(200, 'e'), std::string(200, 'v'), std::string(200, 'r'));
  record.name_rank(group_members({{4}, {max_tokens}}), {1});
  record.first = {max_tokens};
  const auto back = detail::records::read<detail::call_record>(detail::records::write(record));
  BOOST_TEST(back.refused);
  BOOST_TEST(back.has_rank);
  BOOST_TEST(back.rank == 1);
  BOOST_TEST(back.first.value == max_tokens);
  BOOST_TEST(back.why.entry == record.why.entry);
  BOOST_TEST(back.why.requirement == record.why.requirement);
  detail::call_record taken;
  taken.first = {max_tokens};
  taken.subject = std::string(200, 's');
  taken.numbers[0].value = 77;
  taken.numbers[1].value = 78;
  taken.compare(fingerprint(make_layout(std::vector{3, 4})));
  const auto same = detail::records::read<detail::call_record>(detail::records::write(taken));
  BOOST_TEST(!same.refused);
  BOOST_TEST(same.subject == std::string(127, 's'));
  BOOST_TEST(same.numbers[0].value == 77u);
  BOOST_TEST(same.numbers[1].value == 78u);
  BOOST_TEST((same.layout == taken.layout));
}

BOOST_AUTO_TEST_CASE(a_rank_is_named_however_long_the_entry_is) {
  detail::call_record record;
  record.refuse(std::string(200, 'e'), "v", "r");
  record.name_rank(group_members({{4}, {7}}), {1});
  const std::string name = " on rank 1 (world rank 7)";
  BOOST_TEST(record.why.entry == std::string(67, 'e') + " ..." + name);
  BOOST_TEST(record.has_rank);
  BOOST_TEST(record.rank == 1);
}

BOOST_AUTO_TEST_CASE(the_name_in_a_mismatch_stays_whole) {
  const group_members members({{4}, {7}});
  detail::call_record record;
  const std::string entry =
      "hash of the options, sizes or order of the call on rank 1 (world rank 7)";
  record.refuse(collective_mismatch({1}, entry, "1", "it must be 2, as on rank 0 (world rank 4)"),
                members);
  BOOST_TEST(record.why.entry == entry);
  BOOST_TEST(record.why.requirement == "it must be 2, as on rank 0 (world rank 4)");
  record.refuse(
      collective_mismatch({1}, std::string(100, 'x') + " on rank 1 (world rank 7)", "1", "2"),
      members);
  BOOST_TEST(record.why.entry == std::string(67, 'x') + " ... on rank 1 (world rank 7)");
  BOOST_TEST(record.why.entry.size() <= detail::refusal::entry_room);
}

BOOST_AUTO_TEST_CASE(rows_of_a_grid_have_one_name_in_all_columns) {
  std::vector<detail::call_record> all(2);
  all[1].first = {2};
  const group_members second_column({{1}, {3}});
  BOOST_TEST((detail::first_members(second_column, all) == group_members({{0}, {2}})));
  all[1].first = {0};  // no rows: both have been in one group, or in none
  BOOST_TEST((detail::first_members(second_column, all) == second_column));
}

BOOST_AUTO_TEST_CASE(what_a_rank_has_thrown_is_nested_in_what_all_throw) {
  detail::call_record record;
  record.refuse("model on rank 0", "refused", "out of memory");
  try {
    detail::nesting(std::make_exception_ptr(std::length_error("out of memory")),
                    [&] { throw record.error(); });
  } catch (const collective_mismatch& verdict) {
    BOOST_TEST(std::string(verdict.what()) == "model on rank 0 is refused: out of memory");
    BOOST_CHECK_THROW(std::rethrow_if_nested(verdict), std::length_error);
    return;
  }
  BOOST_TEST(false, "nothing was thrown");
}

BOOST_AUTO_TEST_CASE(what_a_rank_has_thrown_is_nested_in_what_its_group_throws) {
  const auto own = std::make_exception_ptr(std::length_error("out of memory"));
  const auto check = [&](const auto& thrown) {
    using error = std::remove_cvref_t<decltype(thrown)>;
    try {
      detail::nesting(own, [&] { throw thrown; });
      BOOST_TEST(false, "nothing was thrown");
    } catch (const error& e) {
      BOOST_TEST(std::string(e.what()) == thrown.what());
      BOOST_CHECK_THROW(std::rethrow_if_nested(e), std::length_error);
    }
    try {
      detail::nesting(nullptr, [&] { throw thrown; });
    } catch (const error& e) {
      BOOST_CHECK_NO_THROW(std::rethrow_if_nested(e));
    }
  };
  check(collective_mismatch({1}, "entry on rank 1", "value", "requirement"));
  check(communication_error("the others are gone"));
  check(deadline_passed("forward_step", std::chrono::milliseconds(5)));
  BOOST_CHECK_NO_THROW(detail::nesting(own, [] {}));
}

BOOST_AUTO_TEST_CASE(long_texts_are_cut) {
  detail::call_record record;
  record.refuse(std::string(100, 'e'), std::string(100, 'v'), std::string(100, 'r'));
  record = detail::records::read<detail::call_record>(detail::records::write(record));
  BOOST_CHECK_EXCEPTION(detail::require_all(group_members::all(1), {record}, record),
                        collective_mismatch,
                        says(std::string(92, 'e') + " ... on rank 0 is " + std::string(36, 'v') +
                             " ...: " + std::string(52, 'r') + " ..."));
}

BOOST_AUTO_TEST_CASE(what_ranks_say_of_their_calls_is_compared) {
  detail::call_record usual;
  usual.numbers = {{{"payload", 2}, {"element size", sizeof(float)}}};
  usual.compare_sizes({});
  const auto refuse = [&](const detail::call_record& other, const std::string& text) {
    BOOST_CHECK_EXCEPTION(detail::require_all(group_members::all(2), {usual, other}, usual),
                          collective_mismatch, says(text));
  };
  detail::call_record other = usual;
  other.numbers[1].value = sizeof(double);
  refuse(other, "element size on rank 1 is 8: it must be 4, as on rank 0");
  other = usual;
  other.numbers[0].value = 3;
  refuse(other, "payload on rank 1 is 3: it must be 2, as on rank 0");
  other = usual;
  other.layout.total_tokens = 5;
  refuse(other, "total tokens on rank 1 is 5: it must be 0, as on rank 0");
  BOOST_CHECK_NO_THROW(detail::require_all(group_members::all(2), {usual, usual}, usual));
}

BOOST_AUTO_TEST_CASE(all_ranks_that_have_refused_are_named) {
  const group_members members({{0}, {4}, {5}});
  detail::call_record taken;
  detail::call_record refused;
  refused.refuse("entry", "value", "requirement");
  BOOST_CHECK_EXCEPTION(detail::require_all(members, {taken, refused, taken}, taken),
                        collective_mismatch,
                        says("entry on rank 1 (world rank 4) is value: requirement"));
  BOOST_CHECK_EXCEPTION(
      detail::require_all(members, {taken, refused, refused}, taken), collective_mismatch,
      says("entry on rank 1 (world rank 4) is value: requirement; refused on 2 ranks: 1, 2"));
  // One that another group has told of already has its name, and its rank there.
  detail::call_record told = refused;
  told.name_rank(group_members::all(8), {7});
  BOOST_CHECK_EXCEPTION(detail::require_all(members, {taken, told, taken}, taken),
                        collective_mismatch, [](const collective_mismatch& e) {
                          BOOST_TEST(e.what() == "entry on rank 7 is value: requirement");
                          BOOST_TEST(e.rank().value == 7);
                          return true;
                        });
}

BOOST_AUTO_TEST_CASE(a_refusal_counts_before_numbers_that_differ) {
  detail::call_record refused;
  refused.refuse("entry", "value", "requirement");
  detail::call_record one;
  one.numbers[0] = {"number", 1};
  detail::call_record two;
  two.numbers[0] = {"number", 2};
  BOOST_CHECK_EXCEPTION(detail::require_all(group_members::all(3), {one, two, refused}, one),
                        collective_mismatch, says("entry on rank 2 is value: requirement"));
  BOOST_CHECK_EXCEPTION(detail::require_all(group_members::all(3), {one, two, one}, one),
                        collective_mismatch,
                        says("number on rank 1 is 2: it must be 1, as on rank 0"));
}

BOOST_AUTO_TEST_CASE(of_a_layout_on_a_device_only_the_sizes_count) {
  const auto layout = fingerprint(make_layout(std::vector{3, 4}));
  layout_fingerprint other = layout;
  other.hash ^= 1;
  detail::call_record on_host;
  on_host.compare(layout);
  detail::call_record on_device;
  on_device.compare_sizes(other);
  const group_members both = group_members::all(2);
  BOOST_CHECK_NO_THROW(detail::require_all(both, {on_host, on_device}, on_host));
  detail::call_record elsewhere;
  elsewhere.compare(other);
  BOOST_CHECK_THROW(detail::require_all(both, {on_host, elsewhere}, on_host), collective_mismatch);
  elsewhere.subject = on_host.subject = "micro-batch 3";
  elsewhere.layout.total_tokens = 8;
  BOOST_CHECK_EXCEPTION(
      detail::require_all(both, {on_host, elsewhere}, on_host), collective_mismatch,
      says("total tokens of micro-batch 3 on rank 1 is 8: it must be 7, as on rank 0"));
}

BOOST_AUTO_TEST_CASE(ranks_that_speak_of_something_else) {
  detail::call_record step;
  step.subject = "step";
  detail::call_record epoch;
  epoch.subject = "epoch";
  BOOST_CHECK_EXCEPTION(
      detail::require_all(group_members::all(2), {step, epoch}, step), collective_mismatch,
      says("subject of the agreement on rank 1 is \"epoch\": it must be \"step\", as on rank 0"));
}
