// Thrust's host execution policies give what the plain host gives.
#define BOOST_TEST_MODULE thrust
#include "seqpack/exec/thrust.hpp"

#include <thrust/execution_policy.h>
#include <thrust/system/cpp/execution_policy.h>
#include <thrust/system/omp/execution_policy.h>
#include <thrust/system/tbb/execution_policy.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <type_traits>

#include "support/operations.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

using sequential = std::remove_cvref_t<decltype(::thrust::seq)>;
using threaded = std::remove_cvref_t<decltype(::thrust::omp::par)>;

static_assert(thrust_policy<sequential> && thrust_policy<threaded>);
static_assert(host_executor<decltype(::thrust::seq)>);
static_assert(host_executor<decltype(::thrust::host)>);
static_assert(host_executor<decltype(::thrust::omp::par)>);
static_assert(host_executor<decltype(::thrust::tbb::par)>);
static_assert(!device_executor<decltype(::thrust::seq)>);
static_assert(!thrust_policy<int> && !thrust_policy<std::string> && !thrust_policy<host_t>);

template <class Policy>
void check(const Policy& policy) {
  for (const offset_t batch : {0, 1, 7, 200}) {
    BOOST_TEST((run_operations(policy, batch, 40) == run_operations(host, batch, 40)));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(seq) {
  check(::thrust::seq);
}

BOOST_AUTO_TEST_CASE(host_policy) {
  check(::thrust::host);
}

BOOST_AUTO_TEST_CASE(cpp_par) {
  check(::thrust::cpp::par);
}

BOOST_AUTO_TEST_CASE(omp_par) {
  check(::thrust::omp::par);
}

BOOST_AUTO_TEST_CASE(tbb_par) {
  check(::thrust::tbb::par);
}
