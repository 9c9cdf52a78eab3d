// Why host threads run on TBB: copying 2 MiB in two pieces through Thrust's two parallel host
// backends, on a machine that has nothing else to do, and on one whose cores are all busy.
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/omp/execution_policy.h>
#include <thrust/system/tbb/execution_policy.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "gates.hpp"

namespace {

constexpr std::size_t bytes = 2 << 20;
constexpr std::size_t pieces = 2;

/// One thread per core that does nothing but turn.
class other_work {
 public:
  explicit other_work(bool busy) {
    const unsigned count = busy ? std::thread::hardware_concurrency() : 0;
    for (unsigned k = 0; k < count; ++k) {
      threads_.emplace_back([this] {
        while (!done_.load(std::memory_order_relaxed)) benchmark::DoNotOptimize(this);
      });
    }
  }
  ~other_work() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> done_ = false;
  std::vector<std::thread> threads_;
};

template <class Policy>
void copy(benchmark::State& state, const Policy& policy, bool busy) {
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes);
  const char* const source = from.data();
  char* const target = to.data();
  const other_work rest_of_the_machine(busy);
  for (auto _ : state) {
    thrust::for_each_n(policy, thrust::counting_iterator<std::size_t>(0), pieces,
                       [=](std::size_t k) {
                         const std::size_t first = bytes * k / pieces;
                         std::memcpy(target + first, source + first, bytes / pieces);
                       });
    benchmark::ClobberMemory();
  }
}

bool add(const char* what, const char* name, bool busy) {
  return bench::add_gate(
      what, name, [=](auto& s) { copy(s, ::thrust::tbb::par, busy); },
      [=](auto& s) { copy(s, ::thrust::omp::par, busy); }, busy ? 1.0 : 1.1);
}

const bool registered =
    add("copy 2 MiB in two pieces, TBB against OpenMP, idle machine", "threads/idle", false) &&
    add("copy 2 MiB in two pieces, TBB against OpenMP, busy machine", "threads/busy", true);

}  // namespace
