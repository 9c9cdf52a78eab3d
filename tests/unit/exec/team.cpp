// Teams of threads: the concept, and the calling thread as a team.
#define BOOST_TEST_MODULE team
#include "seqpack/exec/team.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

using namespace seqpack;

static_assert(team<single_thread>);
static_assert(!team<int> && !team<host_t>);
struct no_reduce : single_thread {
  void reduce() const = delete;
};
struct rank_of_another_type : single_thread {
  long rank() const { return 0; }
};
static_assert(!team<no_reduce> && !team<rank_of_another_type>);

static_assert(detail::elements_per_chunk<std::uint16_t> == 8 &&
              detail::elements_per_chunk<float> == 4);
static_assert(detail::elements_per_chunk<double> == 2 && detail::elements_per_chunk<char> == 16);
struct three_bytes {
  char at[3];
};
struct two_floats {
  float at[2];
};
static_assert(detail::elements_per_chunk<three_bytes> == 1 &&
              detail::elements_per_chunk<two_floats> == 1);

struct plain {
  offset_t rows() const { return 1; }
  offset_t row_bytes() const { return 1; }
  void process(offset_t, offset_t) const {}
};
struct shared : plain {
  offset_t row_work() const { return 1; }
  template <team Team>
  void operator()(const Team&, offset_t) const {}
};
struct no_work : shared {
  void row_work() const = delete;
};
static_assert(bulk_operation<plain> && !cooperative_operation<plain>);
static_assert(cooperative_operation<shared> && !cooperative_operation<no_work>);

}  // namespace

BOOST_AUTO_TEST_CASE(one_thread_has_all_chunks_and_the_rest) {
  const single_thread alone;
  BOOST_TEST(alone.rank() == 0);
  BOOST_TEST(alone.size() == 1);
  BOOST_TEST(alone.reduce(5, [](int a, int b) { return a + b; }) == 5);
  for (const offset_t n : {0, 1, 3, 4, 5, 8, 11}) {
    std::vector<float> row(static_cast<std::size_t>(n));
    std::iota(row.begin(), row.end(), 0.0F);
    std::vector<float> read;
    int rests = 0;
    alone.read_row(
        row.data(), n, [&](const float* chunk) { read.insert(read.end(), chunk, chunk + 4); },
        [&](const float* rest, int count) {
          BOOST_TEST((count > 0 && count < 4));
          read.insert(read.end(), rest, rest + count);
          ++rests;
        });
    BOOST_TEST(read == row);
    BOOST_TEST(rests == (n % 4 == 0 ? 0 : 1));
  }
}

BOOST_AUTO_TEST_CASE(one_thread_rewrites_and_fills_a_row) {
  std::vector<int> row{5, 6, 7};
  single_thread{}.rewrite_row(row.data(), row.data(), 3, [](offset_t first, int k, int x) {
    return x * 10 + static_cast<int>(first) + k;
  });
  BOOST_TEST((row == std::vector<int>{50, 61, 72}));
  std::vector<double> other(3, 1);
  single_thread{}.rewrite_row(row.data(), other.data(), 2, [](offset_t, int, int x) { return x; });
  BOOST_TEST((other == std::vector<double>{50, 61, 1}));
  single_thread{}.fill_row(other.data(), 2, -1.0);
  BOOST_TEST((other == std::vector<double>{-1, -1, 1}));
}
