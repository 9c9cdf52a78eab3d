// Memory of an executor on the host.
#define BOOST_TEST_MODULE memory
#include "seqpack/exec/memory.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

using namespace seqpack;

}  // namespace

BOOST_AUTO_TEST_CASE(rows_of_aligned_memory) {
  const executor_array<float> numbers(host, 12);
  BOOST_TEST(numbers.size() == 12);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(numbers.data()) % 64 == 0);
  BOOST_TEST(numbers.rows().rows == 12);
  const auto rows = numbers.rows(4);
  BOOST_TEST(rows.rows == 3);
  BOOST_TEST(rows.payload == 4);
  fill(host, numbers, 2.5F);
  for (const float x : numbers.span()) BOOST_TEST(x == 2.5F);
}

BOOST_AUTO_TEST_CASE(copies_share_the_memory_and_keep_it) {
  executor_array<int> kept;
  BOOST_TEST(kept.data() == nullptr);
  {
    const executor_array<int> first(host, 3);
    fill(host, first, 1);
    kept = first;
    first.data()[1] = 5;
  }
  const std::vector<int> expected{1, 5, 1};
  BOOST_TEST(kept.span() == expected, boost::test_tools::per_element());
  std::vector<int> read(3);
  read_back(host, read.data(), kept.data(), 3);
  BOOST_TEST((read == expected));
}

BOOST_AUTO_TEST_CASE(of_nothing) {
  const executor_array<double> nothing(host, 0);
  BOOST_TEST(nothing.data() == nullptr);
  BOOST_TEST(nothing.span().empty());
  fill(host, nothing, 1);
  read_back(host, static_cast<double*>(nullptr), nothing.data(), 0);
}
