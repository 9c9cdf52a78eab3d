// A batch that is not packed, as a layout.
#define BOOST_TEST_MODULE unpacked_layout
#include "seqpack/layout/layout.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <vector>

#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

}  // namespace

BOOST_AUTO_TEST_CASE(every_row_takes_all_of_the_width) {
  const auto layout = unpacked_layout(std::vector<int>{3, 0, 4}, 4, context_parallel<2>{});
  BOOST_TEST(layout.total_tokens() == 12);
  const std::vector<std::int32_t> cu{0, 3, 3, 7};
  const std::vector<std::int32_t> cu_padded{0, 4, 8, 12};
  BOOST_TEST(layout.cu_seqlens() == cu, boost::test_tools::per_element());
  BOOST_TEST(layout.cu_seqlens_padded() == cu_padded, boost::test_tools::per_element());
  BOOST_TEST(layout.max_seqlen() == 4);
  BOOST_TEST(layout.max_length() == 4);
  BOOST_TEST(layout.has_padding());
  const auto none = unpacked_layout(std::vector<int>{}, 4);
  BOOST_TEST(none.total_tokens() == 0);
  BOOST_TEST(none.max_seqlen() == 0);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  BOOST_CHECK_EXCEPTION(
      unpacked_layout(std::vector<int>{3, 5}, 4), invalid_input,
      refused_as("lengths[1] is 5: a length must be at most 4, the width of the batch"));
  BOOST_CHECK_EXCEPTION(unpacked_layout(std::vector<int>{-1}, 4), invalid_input,
                        refused_as("lengths[0] is -1: a length must be at least 0"));
  BOOST_CHECK_EXCEPTION(
      unpacked_layout(std::vector<int>{3}, 6, context_parallel<2>{}), invalid_input,
      refused_as("padded length of lengths[0] is 6: it must be a multiple of 4, what "
                 "the sharding divides by"));
}
