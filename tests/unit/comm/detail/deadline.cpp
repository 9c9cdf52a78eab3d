#define BOOST_TEST_MODULE comm_deadline
#include "seqpack/comm/detail/deadline.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>

using namespace seqpack;

BOOST_AUTO_TEST_CASE(waiting_ends) {
  using namespace std::chrono_literals;
  int polls = 0;
  BOOST_TEST(detail::wait_until(10s, [&] { return ++polls == 3; }));
  BOOST_TEST(polls == 3);
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST(!detail::wait_until(30ms, [] { return false; }));
  BOOST_TEST((std::chrono::steady_clock::now() - start >= 30ms));
}

BOOST_AUTO_TEST_CASE(what_has_come_while_it_was_asked_for_counts) {
  using namespace std::chrono_literals;
  // The first answers are quick; the next one takes longer than the deadline.
  int polls = 0;
  BOOST_TEST(detail::wait_until(1ms, [&] {
    if (++polls == 65) std::this_thread::sleep_for(5ms);
    return polls > 65;
  }));
}
