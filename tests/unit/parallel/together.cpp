// together without other ranks: a call like any other. What grids of ranks make of it is in
// tests/mpi/forward_step.cpp.
#define BOOST_TEST_MODULE together
#include "seqpack/parallel/together.hpp"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <stdexcept>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "seqpack/pack/layout.hpp"
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

BOOST_AUTO_TEST_CASE(records_fit_into_the_envelope) {
  static_assert(sizeof(agreeing::step_record) <= exchanging::envelope::room);
  agreeing::step_record record;
  record.refuse(std::string(200, 'e'), std::string(200, 'v'), std::string(200, 'r'));
  BOOST_TEST(record.refused);
  BOOST_TEST(record.entry.to_string() == std::string(63, 'e'));
  BOOST_TEST(record.value.to_string() == std::string(23, 'v'));
  BOOST_TEST(record.requirement.to_string() == std::string(63, 'r'));
}

BOOST_AUTO_TEST_CASE(a_rank_is_named_however_long_the_entry_is) {
  agreeing::step_record record;
  record.refuse(std::string(200, 'e'), "v", "r");
  record.name_rank(group_members({{4}, {7}}), {1});
  const std::string name = " on rank 1 (world rank 7)";
  BOOST_TEST(record.entry.to_string() == std::string(63 - name.size(), 'e') + name);
  BOOST_TEST(record.has_rank);
  BOOST_TEST(record.rank == 1);
}

BOOST_AUTO_TEST_CASE(what_a_rank_has_thrown_is_nested_in_what_all_throw) {
  agreeing::step_record record;
  record.refuse("model on rank 0", "refused", "out of memory");
  try {
    agreeing::throw_together(record, std::make_exception_ptr(std::length_error("out of memory")));
  } catch (const collective_mismatch& verdict) {
    BOOST_TEST(std::string(verdict.what()) == "model on rank 0 is refused: out of memory");
    BOOST_CHECK_THROW(std::rethrow_if_nested(verdict), std::length_error);
    return;
  }
  BOOST_TEST(false, "nothing was thrown");
}
