// Warps and blocks as teams of threads: who gets which part of a row, what they reduce to, and the
// launch.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <vector>

#include "seqpack/exec/detail/cuda_rows.cuh"
#include "support/device.cuh"

BOOST_AUTO_TEST_SUITE(exec_team)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

static_assert(team<detail::warp_team> && team<detail::block_team>);

namespace rows_of_teams {

/// What every operation here is on the host: nothing.
struct operation {
  offset_t count;
  offset_t work;

  offset_t rows() const noexcept { return count; }
  offset_t row_bytes() const noexcept { return 1; }
  offset_t row_work() const noexcept { return work; }
  void process(offset_t, offset_t) const {}
};

/// The threads of each row, and which one this is.
struct count_threads : operation {
  int* visits;
  int* sizes;

  template <team Team>
  SEQPACK_HD void operator()(const Team& threads, offset_t row) const {
    const int one = threads.reduce(1, [](int a, int b) { return a + b; });
    // Twice, so that the second finds what the first one has left in shared memory.
    const int ranks = threads.reduce(threads.rank(), [](int a, int b) { return a + b; });
    visits[row * 512 + threads.rank()] += one + ranks;
    if (threads.rank() == 0) sizes[row] = threads.size();
  }
};
static_assert(cooperative_operation<count_threads> && !cooperative_operation<operation>);

/// Two numbers to the left and the right of each other, in the order of the threads.
struct ends {
  int first;
  int last;
  int wrong;
};
struct reduce_in_order : operation {
  ends* found;

  template <team Team>
  SEQPACK_HD void operator()(const Team& threads, offset_t row) const {
    // Lanes of a warp are combined at distances, so what is on the left has begun before.
    found[row * 512 + threads.rank()] =
        threads.reduce(ends{threads.rank(), threads.rank(), 0}, [](const ends& a, const ends& b) {
          return ends{a.first, b.last > a.last ? b.last : a.last,
                      a.wrong + b.wrong + (a.first > b.first)};
        });
  }
};

/// The owner of each column, which an element's first one or two bytes say.
template <class T>
struct read_owners : operation {
  const T* x;
  offset_t columns;
  int* owners;
  int* seen;

  template <team Team>
  SEQPACK_HD void operator()(const Team& threads, offset_t) const {
    offset_t last = -1;
    const auto note = [&](const T* at, int count) {
      for (int k = 0; k < count; ++k) {
        std::uint16_t bits = 0;
        memcpy(&bits, &at[k], sizeof(T) < 2 ? 1 : 2);
        const offset_t column = bits;
        owners[column] = threads.rank();
        seen[column] += column > last ? 1 : 1000;  // rising
        last = column;
      }
    };
    threads.read_row(
        x, columns, [&](const T* chunk) { note(chunk, detail::elements_per_chunk<T>); }, note);
  }
};

/// out = x + 1 + the column, by chunks.
template <class T, class G>
struct add_column : operation {
  const T* x;
  G* out;
  offset_t columns;

  template <team Team>
  SEQPACK_HD void operator()(const Team& threads, offset_t) const {
    threads.rewrite_row(x, out, columns, [](offset_t first, int k, const T& value) {
      return static_cast<G>(static_cast<offset_t>(value) + 1 + first + k);
    });
  }
};

template <class G>
struct fill_all : operation {
  G* out;
  offset_t columns;

  template <team Team>
  SEQPACK_HD void operator()(const Team& threads, offset_t) const {
    threads.fill_row(out, columns, static_cast<G>(7));
  }
};

struct three_bytes {
  unsigned char at[3];
};

}  // namespace rows_of_teams

namespace {

using namespace rows_of_teams;

/// The work of a row of a warp, of a block of 256 threads, and of one of 512.
struct tier {
  offset_t work;
  int threads;
};
constexpr tier tiers[] = {{0, 32}, {8192, 32}, {8193, 256}, {131072, 256}, {131073, 512}};

constexpr offset_t sizes[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 255, 257, 1023, 4099, 20011};

}  // namespace

BOOST_AUTO_TEST_CASE(every_row_once_by_all_threads_of_its_team) {
  for (const tier& t : tiers) {
    for (const offset_t rows : {1, 7, 8, 9, 5000}) {
      BOOST_TEST_CONTEXT("work " << t.work << ", rows " << rows) {
        const test_stream stream;
        const auto count = static_cast<std::size_t>(rows);
        const device_array<int> visits(std::vector<int>(count * 512, 0));
        const device_array<int> threads(count);
        execute(stream.executor(), count_threads{{rows, t.work}, visits.data(), threads.data()});
        stream.wait();
        const std::vector<int> found = visits.values();
        int wrong = 0;
        for (std::size_t k = 0; k < found.size(); ++k) {
          const bool takes_part = static_cast<int>(k % 512) < t.threads;
          wrong += found[k] != (takes_part ? t.threads + t.threads * (t.threads - 1) / 2 : 0);
        }
        BOOST_TEST(wrong == 0);
        BOOST_TEST((threads.values() == std::vector<int>(count, t.threads)));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(many_rows_of_one_team) {
  // More than the blocks of a grid: each does several.
  const test_stream stream;
  constexpr offset_t rows = 40000;
  const device_array<int> visits(std::vector<int>(rows * 512, 0));
  const device_array<int> threads(rows);
  execute(stream.executor(), count_threads{{rows, 0}, visits.data(), threads.data()});
  stream.wait();
  BOOST_TEST((threads.values() == std::vector<int>(rows, 32)));
}

BOOST_AUTO_TEST_CASE(one_launch) {
  const test_stream stream;
  const device_array<int> visits(std::vector<int>(512, 0));
  const device_array<int> threads(1);
  const captured_call call(stream, [&] {
    execute(stream.executor(), count_threads{{1, 0}, visits.data(), threads.data()});
  });
  BOOST_TEST(call.launches == 1);
  BOOST_TEST(call.memsets + call.others == 0);
}

BOOST_AUTO_TEST_CASE(a_lower_rank_is_the_left_operand) {
  for (const tier& t : tiers) {
    const test_stream stream;
    const device_array<ends> found(512);
    execute(stream.executor(), reduce_in_order{{1, t.work}, found.data()});
    stream.wait();
    const std::vector<ends> all = found.values();
    for (int k = 0; k < t.threads; ++k) {
      BOOST_TEST(all[static_cast<std::size_t>(k)].first == 0);
      BOOST_TEST(all[static_cast<std::size_t>(k)].last == t.threads - 1);
      BOOST_TEST(all[static_cast<std::size_t>(k)].wrong == 0);
    }
  }
}

template <class T>
void check_read(const tier& t) {
  constexpr int length = detail::elements_per_chunk<T>;
  for (const offset_t n : sizes) {
    if (sizeof(T) == 1 && n > 256) continue;
    std::vector<T> values(static_cast<std::size_t>(n));
    for (std::size_t k = 0; k < values.size(); ++k) {
      const auto bits = static_cast<std::uint16_t>(k);
      std::memcpy(static_cast<void*>(&values[k]), &bits, sizeof(T) < 2 ? 1 : 2);
    }
    for (std::size_t shift = 0; shift < 16; shift += sizeof(T) % 2 == 0 ? sizeof(T) : 1) {
      const test_stream stream;
      const device_array<T> x(values, shift);
      const device_array<int> owners(std::vector<int>(static_cast<std::size_t>(n), -1));
      const device_array<int> seen(std::vector<int>(static_cast<std::size_t>(n), 0));
      execute(stream.executor(),
              read_owners<T>{{1, t.work}, x.data(), n, owners.data(), seen.data()});
      stream.wait();
      const std::vector<int> found = owners.values();
      int wrong = 0;
      for (std::size_t k = 0; k < found.size(); ++k) {
        wrong += found[k] != static_cast<int>(k) / length % t.threads;
      }
      BOOST_TEST_CONTEXT("n " << n << ", shift " << shift << ", threads " << t.threads) {
        BOOST_TEST(wrong == 0);
        BOOST_TEST((seen.values() == std::vector<int>(static_cast<std::size_t>(n), 1)));
        BOOST_TEST((owners.guards_intact() && seen.guards_intact()));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_chunk_has_the_same_owner_at_every_address) {
  for (const tier& t : {tiers[0], tiers[2], tiers[4]}) {
    check_read<std::uint8_t>(t);
    check_read<std::uint16_t>(t);
    check_read<std::uint32_t>(t);
    check_read<std::uint64_t>(t);
    check_read<three_bytes>(t);
  }
}

template <class T, class G>
void check_rewrite(const tier& t) {
  for (const offset_t n : sizes) {
    std::vector<T> values;
    for (offset_t k = 0; k < n; ++k) values.push_back(static_cast<T>(k * 37 + 11));
    std::vector<G> wanted;
    for (offset_t k = 0; k < n; ++k) {
      wanted.push_back(
          static_cast<G>(static_cast<offset_t>(values[static_cast<std::size_t>(k)]) + 1 + k));
    }
    for (std::size_t shift = 0; shift < 16; shift += sizeof(T)) {
      for (std::size_t out_shift = 0; out_shift < 16; out_shift += sizeof(G)) {
        const test_stream stream;
        const device_array<T> x(values, shift);
        const device_array<G> out(static_cast<std::size_t>(n), out_shift);
        execute(stream.executor(), add_column<T, G>{{1, t.work}, x.data(), out.data(), n});
        bool filled = true;
        if (shift == 0) {
          const device_array<G> row(static_cast<std::size_t>(n), out_shift);
          execute(stream.executor(), fill_all<G>{{1, t.work}, row.data(), n});
          stream.wait();
          filled = row.guards_intact() &&
                   row.values() == std::vector<G>(static_cast<std::size_t>(n), G{7});
        }
        stream.wait();
        BOOST_TEST_CONTEXT("n " << n << ", shifts " << shift << " and " << out_shift) {
          BOOST_TEST((out.values() == wanted));
          BOOST_TEST((out.guards_intact() && x.guards_intact()));
          BOOST_TEST(filled);
        }
      }
      if constexpr (std::is_same_v<T, G>) {
        const test_stream stream;
        const device_array<T> x(values, shift);
        execute(stream.executor(), add_column<T, T>{{1, t.work}, x.data(), x.data(), n});
        stream.wait();
        BOOST_TEST((x.values() == wanted));
        BOOST_TEST(x.guards_intact());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_are_rewritten_in_place_and_to_other_types) {
  for (const tier& t : {tiers[0], tiers[2]}) {
    check_rewrite<std::uint16_t, std::uint16_t>(t);
    check_rewrite<std::uint16_t, std::uint32_t>(t);
    check_rewrite<std::uint64_t, std::uint16_t>(t);
    check_rewrite<std::uint64_t, std::uint64_t>(t);
  }
}

BOOST_AUTO_TEST_SUITE_END()
