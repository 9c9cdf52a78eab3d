// More than 2^31 bytes, which MPI's counts cannot say. Two ranks.
#define BOOST_TEST_MODULE mpi_large
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "support/mpi.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

// The count that became -2147482417 in 32 bits.
constexpr offset_t bytes = 2147484879;

/// A byte that says where it is.
constexpr std::uint8_t byte_at(offset_t k) {
  return static_cast<std::uint8_t>((static_cast<std::uint64_t>(k) * 0x9E3779B97F4A7C15u) >> 56);
}

/// Every 4099th byte, the first and last ones, and those around 2^31.
template <class F>
void at_some_places(offset_t size, F&& f) {
  for (offset_t k = 0; k < size; k += 4099) f(k);
  for (offset_t k = 0; k < 16; ++k) f(size - 1 - k);
  for (offset_t k = -16; k < 16; ++k) f((offset_t{1} << 31) + k);
}

/// Leaves with the status that CTest counts as skipped where the ranks together lack memory. A fixture of
/// each case: nothing says that a global one comes after that of MPI.
struct needs_memory {
  needs_memory() {
    std::ifstream file("/proc/meminfo");
    std::string key;
    offset_t kib = 0;
    bool enough = true;
    for (std::string rest; file >> key >> kib; std::getline(file, rest)) {
      if (key == "MemAvailable:") enough = kib > offset_t{11} * 1024 * 1024;
    }
    int all = enough;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all != 0) return;
    if (my_world_rank() == 0) std::puts("skipped: less than 11 GiB of memory");
    MPI_Finalize();
    std::_Exit(77);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(case_70_a_tensor_of_more_than_2_to_the_31_bytes, needs_memory) {
  auto group = world();
  const bool is_root = group.rank().value == 1;
  std::unique_ptr<std::uint8_t[]> memory;
  std::optional<tensor_view<std::uint8_t>> mine;
  if (is_root) {
    memory.reset(new std::uint8_t[static_cast<std::size_t>(bytes)]);
    at_some_places(bytes, [&](offset_t k) { memory[static_cast<std::size_t>(k)] = byte_at(k); });
    mine = tensor_view<std::uint8_t>(memory.get(), {bytes});
  }
  const auto received = broadcast_tensor<std::uint8_t>(mine, group_rank{1}, group);
  BOOST_TEST(received.shape().elements() == bytes);
  offset_t wrong = 0;
  at_some_places(bytes, [&](offset_t k) { wrong += received.data()[k] != byte_at(k); });
  BOOST_TEST(wrong == 0);
}

BOOST_FIXTURE_TEST_CASE(a_gather_of_more_than_2_to_the_31_bytes_of_each_rank, needs_memory) {
  auto group = world();
  const offset_t mine = group.rank().value;
  std::unique_ptr<std::uint8_t[]> all(
      new std::uint8_t[static_cast<std::size_t>(bytes * group.size())]);
  std::uint8_t* const part = all.get() + mine * bytes;
  at_some_places(bytes, [&](offset_t k) { part[k] = byte_at(k + mine); });
  group.all_gather(static_cast<const std::uint8_t*>(part), all.get(), bytes);
  offset_t wrong = 0;
  for (offset_t r = 0; r < group.size(); ++r) {
    at_some_places(bytes, [&](offset_t k) {
      wrong += all[static_cast<std::size_t>(r * bytes + k)] != byte_at(k + r);
    });
  }
  BOOST_TEST(wrong == 0);
}
