// Memory of stream-ordered pools between devices of one process: who gives access to whom, and what
// is refused.
#define BOOST_TEST_MODULE nccl_pool_access
#include <dlfcn.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "seqpack/exec/device_memory.hpp"
#include "support/communicator_suite.hpp"
#include "support/nccl.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

/// What a driver would know of the pools here, for runtimes without one.
class known_pools {
 public:
  static known_pools& all() {
    static known_pools& one = *new known_pools;
    return one;
  }
  void add(const void* memory, std::size_t bytes, cudaMemPool_t pool) {
    const std::lock_guard lock(mutex_);
    pools_[reinterpret_cast<std::uintptr_t>(memory)] = {bytes, pool};
  }
  void remove(const void* memory) {
    const std::lock_guard lock(mutex_);
    pools_.erase(reinterpret_cast<std::uintptr_t>(memory));
  }
  cudaMemPool_t find(std::uintptr_t memory) {
    const std::lock_guard lock(mutex_);
    auto next = pools_.upper_bound(memory);
    if (next == pools_.begin()) return nullptr;
    const auto& [first, found] = *std::prev(next);
    return memory < first + found.bytes ? found.pool : nullptr;
  }

 private:
  struct range {
    std::size_t bytes;
    cudaMemPool_t pool;
  };
  std::mutex mutex_;
  std::map<std::uintptr_t, range> pools_;
};

CUresult answer(void* to, CUpointer_attribute what, CUdeviceptr memory) {
  if (what != CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) return CUDA_ERROR_NOT_SUPPORTED;
  *static_cast<cudaMemPool_t*>(to) = known_pools::all().find(memory);
  return CUDA_SUCCESS;
}

}  // namespace

/// Before the runtime's: the driver's own function where there is one, else the one above.
extern "C" cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(
    const char* symbol, void** found, unsigned int version, unsigned long long flags,
    cudaDriverEntryPointQueryResult* status) {
  using function = decltype(cudaGetDriverEntryPointByVersion);
  auto* const next =
      reinterpret_cast<function*>(dlsym(RTLD_NEXT, "cudaGetDriverEntryPointByVersion"));
  if (next != nullptr && next(symbol, found, version, flags, status) == cudaSuccess) {
    return cudaSuccess;
  }
  cudaGetLastError();
  if (std::string(symbol) != "cuPointerGetAttribute") return cudaErrorNotSupported;
  *found = reinterpret_cast<void*>(&answer);
  return cudaSuccess;
}

namespace {

/// What a runtime says that cannot give access.
std::atomic<cudaError_t> no_access = cudaSuccess;

}  // namespace

extern "C" cudaError_t CUDARTAPI cudaMemPoolSetAccess(cudaMemPool_t pool,
                                                      const cudaMemAccessDesc* wanted,
                                                      std::size_t count) {
  using function = decltype(cudaMemPoolSetAccess);
  if (no_access != cudaSuccess) return no_access;
  return reinterpret_cast<function*>(dlsym(RTLD_NEXT, "cudaMemPoolSetAccess"))(pool, wanted, count);
}

namespace {

/// Nothing here runs without two devices that can use memory of one another.
struct needs_peers {
  needs_peers() {
    if (most_ranks() < 2) skip("fewer than 2 CUDA devices");
    if (!detail::nccl::can_reach(0, 1) || !detail::nccl::can_reach(1, 0)) skip("no peers");
  }
};
BOOST_TEST_GLOBAL_FIXTURE(needs_peers);

cudaMemPool_t current_pool(int device) {
  cudaMemPool_t pool = nullptr;
  check_cuda(cudaDeviceGetMemPool(&pool, device));
  return pool;
}

void close(cudaMemPool_t pool, int owner) {
  for (int d = 0; d < device_count(); ++d) {
    if (!detail::nccl::can_reach(d, owner)) continue;
    cudaMemAccessDesc none{};
    none.location.type = cudaMemLocationTypeDevice;
    none.location.id = d;
    none.flags = cudaMemAccessFlagsProtNone;
    check_cuda(cudaMemPoolSetAccess(pool, &none, 1));
  }
}
/// As it is before a program has done anything.
void close_all() {
  for (int d = 0; d < device_count(); ++d) close(current_pool(d), d);
}

/// Pairs of devices, of the first n, of which the one can use what cudaMallocAsync gives on the
/// other.
int open_pairs(int n) {
  int count = 0;
  for (int user = 0; user < n; ++user) {
    for (int owner = 0; owner < n; ++owner) {
      if (user != owner && detail::nccl::has_access(user, current_pool(owner)) == true) ++count;
    }
  }
  return count;
}

/// An array of a pool that no other device may use. Where access is for pairs of devices and not for
/// pools, the pool of the group's own memory is closed with it.
class closed_array {
 public:
  closed_array(cudaStream_t stream, int device, std::size_t size) : stream_(stream) {
    close(pool.handle(), device);
    memory_ = pool.allocate_async(size * sizeof(float), 256, stream);
    known_pools::all().add(memory_, size * sizeof(float), pool.handle());
    check_cuda(cudaMemsetAsync(memory_, 0, size * sizeof(float), stream));
  }
  closed_array(const closed_array&) = delete;
  closed_array& operator=(const closed_array&) = delete;
  ~closed_array() {
    known_pools::all().remove(memory_);
    pool.deallocate_async(memory_, 0, 256, stream_);
  }
  float* data() const { return static_cast<float*>(memory_); }

  const device_pool pool;

 private:
  cudaStream_t stream_;
  void* memory_ = nullptr;
};

std::string refusal(const char* name, int device) {
  return std::string(name) + " is memory of a pool that CUDA device " + std::to_string(device) +
         " cannot use: the pool must give access to the group's devices in this process, with "
         "nccl_communicator::give_access or cudaMemPoolSetAccess";
}

/// Runs `body(group, found)` on two ranks that begin and end it together.
template <class Body>
void run_pair(const Body& body) {
  meeting made(2);
  meeting over(2);
  run_ranks(2, [&](const rank_place& place, findings& found) {
    nccl_communicator group = make_group(place);
    found.check(made.arrive_and_wait(), "both are there");
    body(group, place, found);
    found.check(over.arrive_and_wait(), "both are there at the end");
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(devices_of_a_group_are_given_access_to_the_pools_of_one_another) {
  for (const int n : group_sizes()) {
    close_all();
    BOOST_TEST(open_pairs(n) == 0);
    run_group(n, [&](nccl_communicator&, findings& found) {
      found.check(open_pairs(n) == n * (n - 1), "access of all pairs");
    });
  }
}

BOOST_AUTO_TEST_CASE(groups_of_one_thread_and_communicators_of_the_program_are_given_access_too) {
  close_all();
  const std::vector<int> devices{0, 1};
  std::vector<cudaStream_t> streams(2);
  for (const int d : devices) {
    check_cuda(cudaSetDevice(d));
    check_cuda(
        cudaStreamCreateWithFlags(&streams[static_cast<std::size_t>(d)], cudaStreamNonBlocking));
  }
  check_cuda(cudaSetDevice(0));
  {
    auto groups = nccl_communicator::local(devices, streams, patient_nccl);
    BOOST_TEST(open_pairs(2) == 2);
    std::thread second([other = std::move(groups[1])] {});  // destroyed beside the first one
    groups.clear();
    second.join();
  }
  for (const cudaStream_t s : streams) check_cuda(cudaStreamDestroy(s));

  close_all();
  meeting adopted(2);
  run_ranks(2, [&](const rank_place& place, findings& found) {
    const nccl_communicator group = make_hasty_group(place);  // borrows and adopts
    found.check(adopted.arrive_and_wait(), "both are there");
    found.check(open_pairs(2) == 2, "access");
  });
}

BOOST_AUTO_TEST_CASE(a_pool_that_became_the_current_one_later_is_given_access_by_allocate) {
  run_pair([](nccl_communicator& group, const rank_place& place, findings& found) {
    const device_pool pool;
    cudaMemPool_t const before = current_pool(place.device);
    check_cuda(cudaDeviceSetMemPool(place.device, pool.handle()));
    close(pool.handle(), place.device);
    const int other = 1 - place.device;
    found.check(detail::nccl::has_access(other, pool.handle()) == false, "closed");
    const auto memory = group.allocate(8);
    found.check(detail::nccl::has_access(other, pool.handle()) == true, "open");
    check_cuda(cudaDeviceSetMemPool(place.device, before));
  });
}

BOOST_AUTO_TEST_CASE(memory_of_a_closed_pool_is_refused_before_anything_is_sent) {
  run_pair([](nccl_communicator& group, const rank_place& place, findings& found) {
    const int other = 1 - place.device;
    group_array<float, nccl_communicator> open(group, std::vector<float>{1, 2, 3, 4});
    group.wait();
    const closed_array closed(group.stream(), place.device, 4);
    float* const bad = closed.data();
    const auto refused = [&](const char* name, const auto& call) {
      found.throws<invalid_input>(call, refusal(name, other), name);
    };
    refused("mine", [&] { group.all_gather(bad, open.data(), 2); });
    refused("all", [&] { group.all_gather(open.data(), bad, 2); });
    refused("in", [&] { group.all_reduce(bad + 1, open.data(), 2, reduction::sum); });
    refused("out", [&] { group.all_reduce(open.data(), bad, 2, reduction::max); });
    refused("in", [&] { group.reduce_scatter(bad, open.data(), 1, reduction::sum); });
    refused("out", [&] { group.reduce_scatter(open.data(), bad, 1, reduction::sum); });
    refused("data", [&] { group.broadcast(bad, 4, group_rank{0}); });
    found.equal(open.values(), std::vector<float>{1, 2, 3, 4}, "unwritten");

    group.give_access(closed.pool.handle());
    group.all_reduce(open.data(), bad, 4, reduction::sum);
    found.equal(read_memory(group, bad, 4), std::vector<float>{2, 4, 6, 8}, "with access");
  });
}

BOOST_AUTO_TEST_CASE(a_tensor_in_a_closed_pool_is_refused_on_all_ranks) {
  run_pair([](nccl_communicator& group, const rank_place& place, findings& found) {
    group_array<float, nccl_communicator> open(group, std::vector<float>{1, 2, 3, 4});
    const closed_array closed(group.stream(), place.device, 4);
    float* const mine = group.rank().value == 1 ? closed.data() : open.data();
    found.throws<collective_mismatch>(
        [&] { broadcast_tensor(tensor_view<float>(mine, {4}), group_rank{0}, group); },
        "data on rank 1 is memory of a pool of CUDA device 1 without access for the group's other "
        "devices: it must be memory of CUDA device 1, which the group moves there",
        "closed");
    check_exchange(group, found);
    if (group.rank().value == 1) group.give_access(closed.pool.handle());
    broadcast_tensor(tensor_view<float>(mine, {4}), group_rank{0}, group);
    found.equal(read_memory(group, mine, 4), std::vector<float>{1, 2, 3, 4}, "with access");
  });
}

BOOST_AUTO_TEST_CASE(what_is_no_peers_business_is_not_refused) {
  run_pair([](nccl_communicator& group, const rank_place& place, findings& found) {
    nccl_communicator both = group.split(0, 0);
    nccl_communicator alone = group.split(place.rank, 0);
    const closed_array closed(group.stream(), place.device, 2);
    found.throws<invalid_input>([&] { both.broadcast(closed.data(), 2, group_rank{0}); },
                                refusal("data", 1 - place.device), "a part of both");
    alone.broadcast(closed.data(), 2, group_rank{0});
    alone.wait();
  });
}

BOOST_AUTO_TEST_CASE(nothing_is_refused_where_nccl_is_told_to_leave_peers_memory_alone) {
  BOOST_REQUIRE(setenv("NCCL_P2P_DIRECT_DISABLE", "1", 1) == 0);
  run_pair([](nccl_communicator& group, const rank_place& place, findings& found) {
    const closed_array closed(group.stream(), place.device, 2);
    group.broadcast(closed.data(), 2, group_rank{0});
    found.equal(read_memory(group, closed.data(), 2), std::vector<float>{0, 0}, "sent");
  });
  BOOST_REQUIRE(unsetenv("NCCL_P2P_DIRECT_DISABLE") == 0);
}

BOOST_AUTO_TEST_CASE(a_runtime_that_knows_no_access_has_groups_all_the_same) {
  close_all();
  no_access = cudaErrorNotSupported;
  run_pair([](nccl_communicator& group, const rank_place&, findings& found) {
    check_all_gather<std::int32_t>(group, found, 5);
    check_exchange(group, found);
  });
  no_access = cudaSuccess;
}

BOOST_AUTO_TEST_CASE(access_that_cannot_be_given_is_told_by_the_allocation) {
  meeting known(2);
  close_all();
  no_access = cudaErrorTooManyPeers;
  run_pair([&](nccl_communicator& group, const rank_place&, findings& found) {
    found.throws<cuda_error>([&] { group.allocate(8); }, "cudaErrorTooManyPeers", "allocate", true);
    const device_pool pool;
    found.throws<cuda_error>([&] { group.give_access(pool.handle()); }, "cudaErrorTooManyPeers",
                             "give_access", true);
    found.check(known.arrive_and_wait(), "both know");
    no_access = cudaSuccess;
    check_exchange(group, found);
  });
}
