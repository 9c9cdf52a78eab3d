// What a rank may say about the columns of the vocabulary that it holds.
#define BOOST_TEST_MODULE column_range
#include <boost/test/unit_test.hpp>
#include <string>

#include "seqpack/logprob/detail/logits_checks.hpp"
#include "support/refused.hpp"

using namespace seqpack;

BOOST_AUTO_TEST_CASE(ranges_of_a_vocabulary) {
  for (const column_range& columns : {column_range(0, 0, 0), column_range(3, 3, 8),
                                      column_range(8, 8, 8), column_range(2, 8, 8)}) {
    BOOST_CHECK_NO_THROW(detail::require_column_range(columns));
  }
}

BOOST_AUTO_TEST_CASE(ranges_that_are_none_are_refused) {
  const auto refuse = [](const column_range& columns, const std::string& text) {
    BOOST_CHECK_EXCEPTION(
        detail::require_column_range(columns), invalid_input,
        testing::refused_as("vocabulary columns is " + text + ": they must be within [0, 8)"));
  };
  refuse({5, 3, 8}, "[5, 3)");
  refuse({-1, 3, 8}, "[-1, 3)");
  refuse({3, 9, 8}, "[3, 9)");
}
