// Metrics and the global counts under them.
#define BOOST_TEST_MODULE metrics
#include "seqpack/loss/metrics.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

struct hits {
  static constexpr std::string_view name = "hits";
  static constexpr auto kind = metric_kind::sum;
};
struct per_token_mean {
  static constexpr std::string_view name = "per_token";
  static constexpr auto kind = metric_kind::mean;
  static constexpr auto over = count_of::tokens;
};
struct per_sequence_mean {
  static constexpr std::string_view name = "per_sequence";
  static constexpr auto kind = metric_kind::mean;
  static constexpr auto over = count_of::sequences;
};
struct per_pair_mean {
  static constexpr std::string_view name = "per_pair";
  static constexpr auto kind = metric_kind::mean;
  static constexpr auto over = count_of::pairs;
};
struct plain_mean {
  static constexpr std::string_view name = "plain";
  static constexpr auto kind = metric_kind::mean;
  static constexpr auto over = count_of::none;
};
struct least {
  static constexpr std::string_view name = "least";
  static constexpr auto kind = metric_kind::min;
};
struct most {
  static constexpr std::string_view name = "most";
  static constexpr auto kind = metric_kind::max;
};
using all =
    metric_list<hits, per_token_mean, per_sequence_mean, per_pair_mean, plain_mean, least, most>;
using values = metric_values<all>;

struct mean_of_what {
  static constexpr std::string_view name = "mean";
  static constexpr auto kind = metric_kind::mean;
};
struct without_kind {
  static constexpr std::string_view name = "x";
};
static_assert(metric<hits> && metric<per_token_mean>);
static_assert(!metric<mean_of_what> && !metric<without_kind> && !metric<int>);
static_assert(has_metric<all, least> && !has_metric<metric_list<hits>, least>);

values make(std::vector<double> contributions, const global_counts& counts = {8, 2}) {
  return {contributions.data(), counts};
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_mean_has_its_own_denominator) {
  // One scale for all, 1 / 8, would give the second mean as 0.25.
  const values m = make({3, 8, 2, 2, 7, 0.5, 4});
  BOOST_TEST(m[hits{}] == 3);
  BOOST_TEST(m[per_token_mean{}] == 1);
  BOOST_TEST(m[per_sequence_mean{}] == 1);
  BOOST_TEST(m[per_pair_mean{}] == 2);
  BOOST_TEST(m[plain_mean{}] == 7);
  BOOST_TEST(m[least{}] == 0.5);
  BOOST_TEST(m[most{}] == 4);
}

BOOST_AUTO_TEST_CASE(of_nothing) {
  const values m;
  BOOST_TEST(m[hits{}] == 0);
  BOOST_TEST(m[per_token_mean{}] == 0);
  BOOST_TEST(m[least{}] == infinity);
  BOOST_TEST(m[most{}] == -infinity);
  BOOST_TEST(make({0, 0, 0, 0, 0, infinity, -infinity}, {0, 0})[per_token_mean{}] == 0);
  BOOST_TEST(make({0, infinity, 0, 0, 0, 0, 0}, {0, 0})[per_token_mean{}] == 0);
}

BOOST_AUTO_TEST_CASE(merging_skips_who_had_nothing) {
  values m = make({1, 4, 1, 1, 1, 0.5, 0.5});
  m.merge(values{});
  m.merge(make({2, 4, 1, 1, 1, 0.75, 3}));
  BOOST_TEST(m[hits{}] == 3);
  BOOST_TEST(m[per_token_mean{}] == 1);
  BOOST_TEST(m[least{}] == 0.5);
  BOOST_TEST(m[most{}] == 3);
}

BOOST_AUTO_TEST_CASE(a_metric_that_is_not_a_number_stays_one) {
  for (const bool first : {true, false}) {
    values m = make({1, 1, 1, 1, 1, first ? not_a_number : 1, first ? 1 : not_a_number});
    m.merge(make({1, 1, 1, 1, 1, first ? 1 : not_a_number, first ? not_a_number : 1}));
    BOOST_TEST(std::isnan(m[least{}]));
    BOOST_TEST(std::isnan(m[most{}]));
  }
}

BOOST_AUTO_TEST_CASE(names_and_values_in_order) {
  std::string text;
  make({1, 16, 4, 1, 0, 2, 3}).for_each([&](std::string_view name, double value) {
    text += std::string(name) + " " + std::to_string(static_cast<int>(value)) + "; ";
  });
  BOOST_TEST(text == "hits 1; per_token 2; per_sequence 2; per_pair 1; plain 0; least 2; most 3; ");
}

BOOST_AUTO_TEST_CASE(one_rank_reduces_alone) {
  self_communicator group;
  const values m = make({1, 8, 2, 2, 7, 0.5, 4});
  BOOST_TEST((reduce_metrics(group, m) == m));
  BOOST_TEST((reduce_metrics(group, metric_values<no_metrics>{}) == metric_values<no_metrics>{}));
}

BOOST_AUTO_TEST_CASE(shares_of_counts) {
  constexpr global_counts counts{8, 5};
  static_assert(counts.one_over(count_of::tokens) == 0.125);
  static_assert(counts.one_over(count_of::sequences) == 0.2);
  static_assert(counts.one_over(count_of::pairs) == 0.4);
  static_assert(counts.one_over(count_of::none) == 1);
  static_assert(global_counts{}.one_over(count_of::tokens) == 0);
  static_assert(global_counts{}.one_over(count_of::pairs) == 0);
  global_counts sum = counts;
  sum += {1, 2};
  BOOST_TEST((sum == global_counts{9, 7}));
}

BOOST_AUTO_TEST_CASE(counts_are_checked) {
  require_counts({0, 0});
  require_counts({3.5, 2});
  BOOST_CHECK_EXCEPTION(require_counts({-1, 2}), invalid_input,
                        refused("global_valid_toks", "-1.000000", "at least 0"));
  BOOST_CHECK_EXCEPTION(require_counts({1, infinity}), invalid_input,
                        refused("global_valid_seqs", "inf", "finite"));
  BOOST_CHECK_EXCEPTION(require_counts({not_a_number, 2}), invalid_input,
                        refused("global_valid_toks", "nan", "finite"));
}

// Their reciprocal is infinite, and infinity times nothing is not a number.
BOOST_AUTO_TEST_CASE(counts_without_a_reciprocal) {
  require_counts({1e-300, 0});
  BOOST_CHECK_EXCEPTION(require_counts({1e-310, 0}), invalid_input,
                        refused("global_valid_toks", "1e-310", "it must be 0, or at least 1e-300"));
  BOOST_CHECK_EXCEPTION(
      require_counts({1, 9.5e-301}), invalid_input,
      refused("global_valid_seqs", "9.5e-301", "it must be 0, or at least 1e-300"));
  BOOST_TEST(std::isfinite(2 * global_counts{0, 1e-300}.one_over(count_of::pairs)));
}
