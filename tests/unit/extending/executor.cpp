// The executor of docs/extending.md: what every operation gives on it is what it gives on the host.
#define BOOST_TEST_MODULE extending_executor
#include "../../../examples/extending/executor.hpp"

#include <boost/test/unit_test.hpp>

#include "support/operations.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_AUTO_TEST_CASE(conforms) {
  for (const offset_t batch : {0, 1, 13}) {
    const operation_results expected = run_operations(host, batch, 3);
    for (const offset_t count : {1, 2, 7}) {
      const jthreads many{.count = count, .least_bytes = 1};
      BOOST_TEST((run_operations(many, batch, 3) == expected));
    }
  }
}
