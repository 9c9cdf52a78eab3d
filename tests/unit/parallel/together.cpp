// together without other ranks: a call like any other. What grids of ranks make of it is in
// tests/mpi/forward_step.cpp.
#define BOOST_TEST_MODULE together
#include "seqpack/parallel/together.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "seqpack/layout/layout.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

self_communicator row;
self_communicator column;

}  // namespace

BOOST_AUTO_TEST_CASE(what_the_call_returns) {
  BOOST_TEST(together(row, column, "number", [] { return 7; }) == 7);
  BOOST_TEST(*together(row, column, "owner", [] { return std::make_unique<int>(3); }) == 3);
  BOOST_TEST(together(row, column, "layout", [] {
               return make_layout(std::vector{3, 4});
             }).total_tokens() == 7);
  bool called = false;
  together(row, column, "nothing", [&] { called = true; });
  BOOST_TEST(called);
}

BOOST_AUTO_TEST_CASE(what_the_call_throws) {
  const auto fail = [] { throw std::logic_error("as it is"); };
  BOOST_CHECK_THROW(together(row, column, "call", fail), std::logic_error);
  BOOST_CHECK_EXCEPTION(
      together(row, column, "call", [] { reject("lengths[1]", -1, "it must be at least 0"); }),
      invalid_input, refused("lengths[1]", "-1", "at least 0"));
}

BOOST_AUTO_TEST_CASE(the_largest_records_fit_into_the_envelope) {
  detail::agreeing::step_record record;
  record.refuse(std::string(200, 'e'), std::string(200, 'v'), std::string(200, 'r'));
  record.name_rank(group_members({{4}, {max_tokens}}), {1});
  record.first = {max_tokens};
  const auto back =
      detail::records::read<detail::agreeing::step_record>(detail::records::write(record));
  BOOST_TEST(back.refused);
  BOOST_TEST(back.has_rank);
  BOOST_TEST(back.rank == 1);
  BOOST_TEST(back.first.value == max_tokens);
  BOOST_TEST(back.why.entry == record.why.entry);
  BOOST_TEST(back.why.requirement == record.why.requirement);
  detail::agreeing::step_record taken;
  taken.mark = 77;
  taken.has_layout = true;
  taken.layout = fingerprint(make_layout(std::vector{3, 4}));
  const auto same =
      detail::records::read<detail::agreeing::step_record>(detail::records::write(taken));
  BOOST_TEST(!same.refused);
  BOOST_TEST(same.mark == 77u);
  BOOST_TEST((same.layout == taken.layout));
}

BOOST_AUTO_TEST_CASE(a_rank_is_named_however_long_the_entry_is) {
  detail::agreeing::step_record record;
  record.refuse(std::string(200, 'e'), "v", "r");
  record.name_rank(group_members({{4}, {7}}), {1});
  const std::string name = " on rank 1 (world rank 7)";
  BOOST_TEST(record.why.entry == std::string(67, 'e') + " ..." + name);
  BOOST_TEST(record.has_rank);
  BOOST_TEST(record.rank == 1);
}

BOOST_AUTO_TEST_CASE(the_name_in_a_mismatch_stays_whole) {
  const group_members members({{4}, {7}});
  detail::agreeing::step_record record;
  const std::string entry =
      "hash of the options, sizes or order of the call on rank 1 (world rank 7)";
  record.refuse(collective_mismatch({1}, entry, "1", "it must be 2, as on rank 0 (world rank 4)"),
                members);
  BOOST_TEST(record.why.entry == entry);
  BOOST_TEST(record.why.requirement == "it must be 2, as on rank 0 (world rank 4)");
  record.refuse(
      collective_mismatch({1}, std::string(100, 'x') + " on rank 1 (world rank 7)", "1", "2"),
      members);
  BOOST_TEST(record.why.entry.ends_with("rank 1 (world rank 7)"));
  BOOST_TEST(record.why.entry.size() <= detail::agreeing::refusal::entry_room);
}

BOOST_AUTO_TEST_CASE(rows_of_a_grid_have_one_name_in_all_columns) {
  std::vector<detail::agreeing::step_record> all(2);
  all[1].first = {2};
  const group_members second_column({{1}, {3}});
  BOOST_TEST((detail::agreeing::first_members(second_column, all) == group_members({{0}, {2}})));
  all[1].first = {0};  // no rows: both have been in one group, or in none
  BOOST_TEST((detail::agreeing::first_members(second_column, all) == second_column));
}

BOOST_AUTO_TEST_CASE(what_a_rank_has_thrown_is_nested_in_what_all_throw) {
  detail::agreeing::step_record record;
  record.refuse("model on rank 0", "refused", "out of memory");
  try {
    detail::agreeing::throw_together(record,
                                     std::make_exception_ptr(std::length_error("out of memory")));
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
      detail::agreeing::nesting(own, [&] { throw thrown; });
      BOOST_TEST(false, "nothing was thrown");
    } catch (const error& e) {
      BOOST_TEST(std::string(e.what()) == thrown.what());
      BOOST_CHECK_THROW(std::rethrow_if_nested(e), std::length_error);
    }
    try {
      detail::agreeing::nesting(nullptr, [&] { throw thrown; });
    } catch (const error& e) {
      BOOST_CHECK_NO_THROW(std::rethrow_if_nested(e));
    }
  };
  check(communication_error("the others are gone"));
  check(deadline_passed("forward_step", std::chrono::milliseconds(5)));
  BOOST_CHECK_NO_THROW(detail::agreeing::nesting(own, [] {}));
}
