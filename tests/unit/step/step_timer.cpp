// Timers of the phases of a step.
#define BOOST_TEST_MODULE step_timer
#include "seqpack/step/step_timer.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace seqpack;
using std::chrono::milliseconds;

static_assert(step_timer<no_timer> && step_timer<wall_clock_timer>);

struct only_starts {
  void start(step_phase) {}
};
struct may_fail_to_stop {
  void start(step_phase) {}
  void stop(step_phase) {}
};
struct by_name {
  void start(const std::string&) {}
  void stop(const std::string&) noexcept {}
};
static_assert(!step_timer<only_starts> && !step_timer<may_fail_to_stop> && !step_timer<by_name> &&
              !step_timer<int>);

struct recording_timer {
  std::vector<std::string> calls;
  void start(step_phase phase) { calls.push_back(std::string("start ") + phase_name(phase)); }
  void stop(step_phase phase) noexcept {
    calls.push_back(std::string("stop ") + phase_name(phase));
  }
};
static_assert(step_timer<recording_timer>);

}  // namespace

BOOST_AUTO_TEST_CASE(a_phase_ends_with_its_scope_and_with_an_error) {
  recording_timer timer;
  { const timed_phase phase(timer, step_phase::batch_data); }
  const auto fail = [&] {
    const timed_phase phase(timer, step_phase::forward);
    throw std::runtime_error("model");
  };
  BOOST_CHECK_THROW(fail(), std::runtime_error);
  const std::vector<std::string> expected{"start batch-data", "stop batch-data", "start forward",
                                          "stop forward"};
  BOOST_TEST(timer.calls == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(wall_clock_adds_up_what_each_phase_took) {
  wall_clock_timer timer;
  BOOST_TEST(timer.total(step_phase::forward).count() == 0);
  for (int step = 0; step < 2; ++step) {
    const timed_phase phase(timer, step_phase::forward);
    std::this_thread::sleep_for(milliseconds(5));
  }
  BOOST_TEST(timer.count(step_phase::forward) == 2);
  BOOST_TEST(timer.count(step_phase::batch_data) == 0);
  BOOST_TEST(timer.total(step_phase::forward).count() >= 0.010);
  BOOST_TEST(timer.total(step_phase::batch_data).count() == 0);
  timer.reset();
  BOOST_TEST(timer.count(step_phase::forward) == 0);
  BOOST_TEST(timer.total(step_phase::forward).count() == 0);
}
