#define BOOST_TEST_MODULE examples_benchmark_gates
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "../../benchmarks/alternate.hpp"
#include "../../benchmarks/table.hpp"

namespace {

using bench::judge;
using bench::judgement;
using bench::row;

/// A clock that only the calls move.
struct machine {
  double seconds = 0;
  auto clock() {
    return [this] { return seconds; };
  }
};

int status_of(const std::vector<row>& rows, bool judged) {
  std::FILE* const out = std::tmpfile();
  bench::table table(judged, out);
  for (const row& r : rows) table.print(r);
  std::fclose(out);
  return table.status();
}

const row met{.what = "met", .measured = 1.2, .floor = 1, .limit = 1.2};
const row missed{.what = "missed", .measured = 1.3, .floor = 1, .limit = 1.2};

}  // namespace

BOOST_AUTO_TEST_CASE(a_missed_gate_is_an_exit_status) {
  BOOST_TEST(status_of({met, met}, true) == 0);
  BOOST_TEST(status_of({met, missed, met}, true) == 1);
  BOOST_TEST(status_of({met, missed}, false) == 0);  // too short to be judged
  BOOST_TEST(status_of({}, true) == 0);
}

BOOST_AUTO_TEST_CASE(a_gate_is_met_up_to_its_limit) {
  BOOST_TEST((judge(met, true) == judgement::met));
  BOOST_TEST((judge(missed, true) == judgement::missed));
  BOOST_TEST((judge(missed, false) == judgement::not_judged));
  BOOST_TEST(
      (judge({.what = "no gate", .measured = 9, .floor = 1}, true) == judgement::not_judged));
}

BOOST_AUTO_TEST_CASE(what_was_not_measured_is_missed) {
  BOOST_TEST(
      (judge({.what = "", .measured = 0, .floor = 1, .limit = 2}, true) == judgement::missed));
  BOOST_TEST(
      (judge({.what = "", .measured = 1, .floor = 0, .limit = 2}, true) == judgement::missed));
}

BOOST_AUTO_TEST_CASE(rows_are_those_of_a_table) {
  BOOST_TEST(bench::text_of(met, judgement::met) ==
             "| met | 1.200 ms | 1.000 ms | 1.20 | 1.20 | met |\n");
  BOOST_TEST(bench::text_of(missed, judgement::missed) ==
             "| missed | 1.300 ms | 1.000 ms | 1.30 | 1.20 | missed |\n");
  BOOST_TEST(bench::text_of({.what = "x", .measured = 3, .floor = 2, .decimals = 0},
                            judgement::not_judged) == "| x | 3 ms | 2 ms | 1.50 | - | |\n");
}

BOOST_AUTO_TEST_CASE(the_sides_alternate_and_the_fastest_call_counts) {
  machine m;
  std::string order;
  const double floor_takes[] = {9, 4, 2, 3};
  const double measured_takes[] = {5, 7, 8, 6};
  int floors = 0;
  int calls = 0;
  bench::side_times times;
  for (int turn = 0; turn < 2; ++turn) {
    bench::take_turns(
        times,
        [&] {
          order += 'm';
          m.seconds += measured_takes[calls++ % 4];
        },
        [&] {
          order += 'f';
          m.seconds += floor_takes[floors++ % 4];
        },
        bench::turn_time::fastest, 5.0, m.clock());
  }
  BOOST_TEST(order == "fmffm");
  BOOST_TEST(times.floor == 2.0);
  BOOST_TEST(times.measured == 5.0);
}

BOOST_AUTO_TEST_CASE(a_mean_is_that_of_a_turn) {
  machine m;
  const double takes[] = {3, 4, 1, 2};
  int calls = 0;
  const double mean = bench::time_turn([&] { m.seconds += takes[calls++]; }, bench::turn_time::mean,
                                       8.0, m.clock());
  BOOST_TEST(mean == (3 + 4 + 1) / 3.0);
}
