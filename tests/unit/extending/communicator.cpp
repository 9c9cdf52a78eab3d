// The communicator of docs/extending.md, between threads: what every communicator must do.
#define BOOST_TEST_MODULE extending_communicator
#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <exception>
#include <string>
#include <vector>

#include "../../../examples/extending/thread_engine.hpp"
#include "seqpack/parallel/agree.hpp"
#include "support/broadcast_suite.hpp"
#include "support/communicator_suite.hpp"
#include "support/findings.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

constexpr std::chrono::seconds patient{60};

/// f(communicator, findings) on every rank of groups of several sizes.
template <class F>
void on_all_ranks(const F& f) {
  for (const std::size_t size : {1, 2, 3, 4}) {
    std::vector<findings> found;
    for (std::size_t r = 0; r < size; ++r) {
      found.emplace_back("rank " + std::to_string(r) + " of " + std::to_string(size) + ": ");
    }
    thread_engine::run(static_cast<offset_t>(size), patient, [&](callback_communicator& world) {
      findings& mine = found[static_cast<std::size_t>(world.rank().value)];
      try {
        f(world, mine);
      } catch (const std::exception& e) {
        mine.check(false, e.what());
      }
    });
    for (const findings& of_rank : found) of_rank.report();
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(conforms) {
  on_all_ranks([](auto& world, findings& found) { check_communicator(world, found); });
}

BOOST_AUTO_TEST_CASE(broadcasts_tensors) {
  on_all_ranks([](auto& world, findings& found) { check_broadcast_tensor(world, found); });
}

BOOST_AUTO_TEST_CASE(a_rank_that_does_not_come_is_an_error_and_the_group_is_given_up) {
  std::array<findings, 3> found;
  thread_engine::run(3, std::chrono::milliseconds(100), [&](callback_communicator& world) {
    findings& mine = found[static_cast<std::size_t>(world.rank().value)];
    if (world.rank().value == 1) return;
    const auto call = [&] { agree(world, 1, "step"); };
    mine.throws<communication_error>(call, "agree (all_gather) returned 1 (at ", "late", true);
    mine.throws<communication_error>(call, "cannot be used any more: agree (all_gather) returned 1",
                                     "given up", true);
  });
  found[0].report();
  found[2].report();
}
