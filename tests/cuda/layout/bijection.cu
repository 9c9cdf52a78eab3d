// The map as the device computes it, against the oracle: every sharding, CP 1 to 8, both tails,
// paddings, random lengths with empty sequences among them; forward (gather indices) and back
// (unpack).
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <random>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"
#include "support/oracle.hpp"

BOOST_AUTO_TEST_SUITE(layout_bijection)

using namespace seqpack;
using testing::device_array;
using testing::needs_device;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

/// The user's own: contiguous chunks, the last rank first.
struct reversed {
  SEQPACK_HD static constexpr offset_t divisor(offset_t cp) noexcept { return cp; }
  SEQPACK_HD static constexpr shard_position to_shard(offset_t token, offset_t length,
                                                      offset_t cp) noexcept {
    const shard_position p = contiguous::to_shard(token, length, cp);
    return {cp - 1 - p.rank, p.index};
  }
  SEQPACK_HD static constexpr offset_t to_token(shard_position p, offset_t length,
                                                offset_t cp) noexcept {
    return contiguous::to_token({cp - 1 - p.rank, p.index}, length, cp);
  }
  SEQPACK_HD static constexpr offset_t run(shard_position p, offset_t length,
                                           offset_t cp) noexcept {
    return contiguous::run(p, length, cp);
  }
};

namespace {

constexpr offset_t width = 24;

offset_t flat(offset_t b, offset_t s) {
  return b * width + s;
}

/// The tokens of a place, forward by gather indices and back by unpacking their numbers.
template <class Layout, class Place>
void check_place(const testing::test_stream& stream, const Layout& layout, Place at,
                 const oracle::tokens& place, offset_t batch) {
  const auto size = static_cast<offset_t>(place.size());
  const device_array<int> gather(place.size());
  const device_array<int> rows(place.size());
  per_token(stream.executor(), layout, at, batch_index(row_view(gather.data(), size), width),
            row_index(row_view(rows.data(), size)));
  std::vector<int> held(place.size());
  std::iota(held.begin(), held.end(), 1);
  const device_array<int> source(held);
  const device_array<int> table(static_cast<std::size_t>(batch * width));
  unpack(stream.executor(), layout, at,
         field(row_view<const int>(source.data(), size),
               batch_view<int>(table.data(), batch, width), -1));
  stream.wait();
  BOOST_TEST(oracle::to_numbers(gather.values()) == oracle::values(place, flat, -1));
  BOOST_TEST(oracle::to_numbers(table.values()) ==
             oracle::unpack(place, oracle::to_numbers(held), batch, width, -1));
  BOOST_TEST((gather.guards_intact() && rows.guards_intact() && table.guards_intact()));
}

template <class Tail, class Sharding>
void check_sharding(Sharding sharding, oracle::kind kind, bool reverse_ranks = false) {
  const testing::test_stream stream;
  std::mt19937 random(static_cast<unsigned>(kind));
  for (offset_t cp = 1; cp <= 8; ++cp) {
    for (const offset_t batch : {1, 7}) {
      const offset_t each = context_parallel(cp, sharding).divisor() * (1 + random() % 2);
      const offset_t ranks = kind == oracle::kind::row_contiguous ? cp : 1;
      const offset_t multiple = each * ranks * (1 + random() % 5);
      std::vector<int> lengths(static_cast<std::size_t>(batch));
      for (int& length : lengths) length = random() % 4 == 0 ? 0 : random() % (width + 1);
      oracle::request request{.lens = oracle::to_numbers(lengths),
                              .each = each,
                              .total_multiple = multiple,
                              .cp = cp,
                              .sharding = kind};
      if (std::is_same_v<Tail, ghost_tail>) request.tail_to = oracle::tail::ghost;
      auto expected = oracle::pack(request);
      if (reverse_ranks) {
        std::reverse(expected.shards.begin(), expected.shards.end());
        expected.all_shards.clear();
        for (const auto& s : expected.shards) {
          expected.all_shards.insert(expected.all_shards.end(), s.begin(), s.end());
        }
      }
      const auto layout = to_device(
          stream.executor(),
          make_layout(lengths,
                      padding{each_multiple_of<>{each}, total_multiple_of<>{multiple}, Tail{}},
                      context_parallel(cp, sharding), {.width = width}));
      BOOST_TEST_CONTEXT("cp " << cp << ", batch " << batch << ", each " << each) {
        check_place(stream, layout, full_row, expected.row, batch);
        check_place(stream, layout, all_shards, expected.all_shards, batch);
        check_place(stream, layout, shard{cp - 1}, expected.shards.back(), batch);
      }
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(zigzag_shards) {
  check_sharding<absorb_tail>(zigzag{}, oracle::kind::zigzag);
  check_sharding<ghost_tail>(zigzag{}, oracle::kind::zigzag);
}

// One type for all: what each kernel of each sharding takes to compile is most of this program.
BOOST_AUTO_TEST_CASE(shards_that_are_chosen_at_run_time) {
  const auto check = [](const any_sharding& sharding, oracle::kind kind) {
    check_sharding<absorb_tail>(sharding, kind);
    check_sharding<ghost_tail>(sharding, kind);
  };
  check(zigzag{}, oracle::kind::zigzag);
  check(contiguous{}, oracle::kind::contiguous);
  check(striped{}, oracle::kind::striped);
  check(row_contiguous{}, oracle::kind::row_contiguous);
}

BOOST_AUTO_TEST_CASE(shards_of_ones_own) {
  check_sharding<absorb_tail>(reversed{}, oracle::kind::contiguous, true);
}

BOOST_AUTO_TEST_SUITE_END()
