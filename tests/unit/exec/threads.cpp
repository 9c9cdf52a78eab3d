// Many host threads give what one gives.
#define BOOST_TEST_MODULE threads
#include "seqpack/exec/threads.hpp"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <vector>

#include "support/operations.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

static_assert(host_executor<host_threads> && !device_executor<host_threads>);

/// Counts how often each row is done, and the pieces.
struct counting_operation {
  std::atomic<int>* done;
  std::atomic<int>* pieces;
  offset_t count;
  offset_t bytes;

  offset_t rows() const { return count; }
  offset_t row_bytes() const { return bytes; }
  void process(offset_t first, offset_t last) const {
    ++*pieces;
    for (; first < last; ++first) ++done[first];
  }
};

/// How many pieces an operation is run in; every row must be done once.
int pieces_of(const host_threads& where, offset_t rows, offset_t bytes) {
  std::vector<std::atomic<int>> done(static_cast<std::size_t>(rows));
  std::atomic<int> pieces = 0;
  execute(where, counting_operation{done.data(), &pieces, rows, bytes});
  int wrong = 0;
  for (const auto& times : done) wrong += times != 1;
  BOOST_TEST(wrong == 0);
  return pieces;
}

}  // namespace

BOOST_AUTO_TEST_CASE(any_number_of_threads_gives_the_same) {
  // 200 sequences with 40 floats a token are megabytes: many pieces.
  for (const offset_t batch : {0, 1, 7, 200}) {
    const operation_results expected = run_operations(host, batch, 40);
    for (const offset_t threads : {1, 2, 3, 8}) {
      BOOST_TEST((run_operations(host_threads{threads}, batch, 40) == expected));
    }
    BOOST_TEST((run_operations(host_threads{}, batch, 40) == expected));
  }
}

BOOST_AUTO_TEST_CASE(every_row_is_done_once) {
  for (const offset_t threads : {1, 2, 3, 8}) {
    for (const offset_t rows : {1, 2, 7, 8, 9, 1000}) {
      for (const offset_t bytes : {0, 1, 4096, 1 << 20}) {
        const int pieces = pieces_of(host_threads{threads}, rows, bytes);
        BOOST_TEST(pieces >= 1);
        BOOST_TEST(pieces <= threads);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(large_operations_use_all_threads_and_small_ones_do_not) {
  BOOST_TEST(pieces_of(host_threads{8}, 800, 1 << 20) == 8);
  BOOST_TEST(pieces_of(host_threads{8}, 8, 1) == 1);
}

BOOST_AUTO_TEST_CASE(number_of_threads) {
  BOOST_TEST(host_threads{3}.count() == 3);
  BOOST_TEST(host_threads{}.count() >= 1);
  BOOST_CHECK_EXCEPTION(host_threads{0}, invalid_input,
                        refused("number of threads", "0", "at least 1"));
  BOOST_CHECK_EXCEPTION(host_threads{-2}, invalid_input,
                        refused("number of threads", "-2", "at least 1"));
}
