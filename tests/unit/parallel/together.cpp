// together without other ranks: a call like any other. What grids of ranks make of it is in
// tests/mpi/forward_step.cpp.
#define BOOST_TEST_MODULE together
#include "seqpack/parallel/together.hpp"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <stdexcept>
#include <string>
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
  BOOST_TEST(together(row, "number", [] { return 7; }) == 7);
}

BOOST_AUTO_TEST_CASE(what_the_call_throws) {
  const auto fail = [] { throw std::logic_error("as it is"); };
  BOOST_CHECK_THROW(together(row, column, "call", fail), std::logic_error);
  BOOST_CHECK_THROW(together(row, "call", fail), std::logic_error);
  BOOST_CHECK_EXCEPTION(
      together(row, column, "call", [] { reject("lengths[1]", -1, "it must be at least 0"); }),
      invalid_input, refused("lengths[1]", "-1", "at least 0"));
}
