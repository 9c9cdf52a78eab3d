// agree in a group of one; tests/mpi/agree.cpp is about more ranks.
#define BOOST_TEST_MODULE agree
#include "seqpack/parallel/agree.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "seqpack/layout/layout.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

}  // namespace

BOOST_AUTO_TEST_CASE(one_rank_agrees_with_itself) {
  self_communicator group;
  agree(group, std::uint64_t{7}, "step");
  agree(group, 7, "");
  agree(group, make_layout(std::vector{3, 5}));
  agree(group, make_layout(std::vector{3, 5}).view(), "micro-batch 3");
  agree(group, make_layout(std::vector<int>{}));
}

BOOST_AUTO_TEST_CASE(no_member_is_refused) {
  self_communicator all;
  self_communicator none = all.split(std::nullopt, 0);
  BOOST_CHECK_EXCEPTION(agree(none, 7, "step"), invalid_input,
                        refused("caller", "world rank 0", "it must be a member of the group"));
  BOOST_CHECK_EXCEPTION(agree(none, make_layout(std::vector{3})), invalid_input,
                        refused("caller", "world rank 0", "it must be a member of the group"));
}

BOOST_AUTO_TEST_CASE(layout_without_arrays_is_refused) {
  self_communicator group;
  const layout_view<no_context_parallel> view{.sequences = 1, .segments = 1, .total = 4};
  BOOST_CHECK_EXCEPTION(agree(group, view), invalid_input,
                        refused("the layout's cu_seqlens", "null", "needs its arrays"));
}
