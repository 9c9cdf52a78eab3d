// Executors: the concepts, the plain host, and executors of the user's own.
#define BOOST_TEST_MODULE executor
#include "seqpack/exec/executor.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/exec/memory.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/place_on.hpp"
#include "support/as_device.hpp"
#include "support/operations.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

/// Notes what it is asked to do.
struct noting {
  std::vector<std::pair<offset_t, offset_t>>* calls;
  offset_t count;

  offset_t rows() const { return count; }
  offset_t row_bytes() const { return 4; }
  void process(offset_t first, offset_t last) const { calls->emplace_back(first, last); }
};

/// Runs every operation backwards, three rows at a time, and counts.
struct backwards {
  int* runs;
};

/// Claims to run elsewhere.
struct elsewhere {};

}  // namespace

template <>
struct seqpack::executor_traits<backwards> : seqpack::host_executor_traits {
  template <class Op>
  static void run(const backwards& where, const Op& op) {
    ++*where.runs;
    for (offset_t last = op.rows(); last > 0; last -= 3) op.process(last < 3 ? 0 : last - 3, last);
  }
};

template <>
struct seqpack::executor_traits<elsewhere> {
  static constexpr bool on_device = true;
  template <class Op>
  static void run(elsewhere, const Op&) {}
};

namespace {

static_assert(executor<host_t> && host_executor<host_t> && !device_executor<host_t>);
static_assert(executor<const host_t&> && executor<backwards> && executor<as_device>);
static_assert(device_executor<elsewhere> && !host_executor<elsewhere>);
static_assert(!executor<int> && !executor<std::string> && !executor<noting>);
static_assert(!host_executor<int> && !device_executor<int>);
static_assert(memory_executor<host_t> && memory_executor<backwards>);
static_assert(!memory_executor<elsewhere> && !memory_executor<int>);

struct without_process {
  offset_t rows() const { return 0; }
  offset_t row_bytes() const { return 0; }
};
struct counting_in_int : noting {
  int rows() const { return 0; }
};
struct with_an_owner : noting {
  std::string text;
};
static_assert(bulk_operation<noting>);
static_assert(!bulk_operation<without_process>);
static_assert(!bulk_operation<counting_in_int>);
static_assert(!bulk_operation<with_an_owner>);  // it could not be copied to a device
static_assert(!bulk_operation<int>);

using host_layout = packed_layout<no_context_parallel>;
using bare_view = layout_view<no_context_parallel>;

}  // namespace

BOOST_AUTO_TEST_CASE(host_runs_all_rows_at_once) {
  std::vector<std::pair<offset_t, offset_t>> calls;
  execute(host, noting{&calls, 5});
  BOOST_TEST((calls == std::vector<std::pair<offset_t, offset_t>>{{0, 5}}));
}

BOOST_AUTO_TEST_CASE(nothing_runs_without_rows) {
  std::vector<std::pair<offset_t, offset_t>> calls;
  execute(host, noting{&calls, 0});
  BOOST_TEST(calls.empty());
  int runs = 0;
  execute(backwards{&runs}, noting{&calls, 0});
  BOOST_TEST(runs == 0);
}

BOOST_AUTO_TEST_CASE(layouts_run_where_their_memory_is) {
  BOOST_TEST((runs_on<host_t, host_layout>));
  BOOST_TEST((!runs_on<elsewhere, host_layout>));
  BOOST_TEST((runs_on<host_t, bare_view>));
  BOOST_TEST((runs_on<elsewhere, bare_view>));  // a view is taken at the caller's word
  BOOST_TEST((!runs_on<int, host_layout>));
  BOOST_TEST((!runs_on<host_t, int>));
}

BOOST_AUTO_TEST_CASE(executors_of_ones_own) {
  for (const offset_t batch : {0, 1, 13}) {
    const operation_results expected = run_operations(host, batch, 3);
    int runs = 0;
    BOOST_TEST((run_operations(backwards{&runs}, batch, 3) == expected));
    BOOST_TEST(runs > 0);
    BOOST_TEST((run_operations(as_device{}, batch, 3) == expected));
  }
}

// Traits that derive from host_executor_traits and add `run` serve every call.
BOOST_AUTO_TEST_CASE(memory_of_an_executor_of_ones_own) {
  int runs = 0;
  const backwards where{&runs};
  const executor_array<int> numbers(where, 7);
  fill(where, numbers, 4);
  BOOST_TEST(runs == 1);
  std::vector<int> read(7);
  read_back(where, read.data(), numbers.data(), 7);
  BOOST_TEST((read == std::vector<int>(7, 4)));
  executor_traits<backwards>::write(where, numbers.data(), 8, [](void* p) {
    const int values[] = {1, 2};
    std::memcpy(p, values, sizeof values);
  });
  BOOST_TEST(numbers.data()[1] == 2);
  const auto layout = make_layout(std::vector{2, 1});
  BOOST_TEST(place_on(where, layout).cu == layout.view().cu);
}
