// Records of another rank that no rank can have sent: columns and counts. (Metrics are
// doubles, of which every pattern of bits is one.)
#define BOOST_TEST_MODULE train_corrupt_records
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "seqpack/logprob/detail/log_prob_checks.hpp"
#include "seqpack/loss/count_valid.hpp"
#include "support/forged_group.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_AUTO_TEST_CASE(counts) {
  // tokens 0, sequences 8
  const auto refuse_counts = [](std::size_t place, double value, const std::string& text) {
    forged_group group(put_at(place, value));
    refuse([&] { sum_counts(group, {3, 2}); }, text + ": it must be a finite number, at least 0");
  };
  refuse_counts(0, -1, "global_valid_toks" + from_1 + "-1.000000");
  refuse_counts(0, std::numeric_limits<double>::infinity(), "global_valid_toks" + from_1 + "inf");
  refuse_counts(8, std::numeric_limits<double>::quiet_NaN(), "global_valid_seqs" + from_1 + "nan");
  forged_group group(put_at(0, 5.0));
  BOOST_TEST((sum_counts(group, {3, 2}) == global_counts{8, 4}));
}

BOOST_AUTO_TEST_CASE(columns) {
  // known 0, first 1, last 9, total 17
  forged_group unknown(put_at(0, std::uint8_t{4}));
  refuse([&] { detail::require_tiling(unknown, column_range(0, 4, 8)); },
         "kind of the columns" + from_1 + "4: it must be from 0 to 1");
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  forged_group wild(put_at(1, least));
  refuse([&] { detail::require_tiling(wild, column_range(0, 4, 8)); },
         "vocabulary columns on rank 1 (world rank 3) is [" + std::to_string(least) +
             ", 4) of 8: they must begin at 4, where the ranks before it end, of 8");
}
