// Why host threads run on TBB: copying 2 MiB in two pieces through Thrust's two parallel host
// backends, on a machine that has nothing else to do, and on one whose cores are all busy.
#include <benchmark/benchmark.h>

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/omp/execution_policy.h>
#include <thrust/system/tbb/execution_policy.h>

#include <atomic>
#include <cstring>
#include <memory>
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
auto copy(const Policy& policy) {
  return [=, from = std::vector<char>(bytes, 1), to = std::vector<char>(bytes)]() mutable {
    const char* const source = from.data();
    char* const target = to.data();
    thrust::for_each_n(policy, thrust::counting_iterator<std::size_t>(0), pieces,
                       [=](std::size_t k) {
                         const std::size_t first = bytes * k / pieces;
                         std::memcpy(target + first, source + first, bytes / pieces);
                       });
    benchmark::ClobberMemory();
  };
}

/// On a busy machine the other work is there for both sides, and a turn is judged by its mean: the
/// fastest call is one that the other work has not met.
bool add(const char* what, const char* name, bool busy) {
  return bench::add_gate(
      what, name, [] { return copy(::thrust::tbb::par); },
      [=] {
        return [floor = copy(::thrust::omp::par),
                rest_of_the_machine = std::make_shared<other_work>(busy)]() mutable { floor(); };
      },
      busy ? 1.0 : 1.1, busy ? bench::turn_time::mean : bench::turn_time::fastest);
}

const bool registered =
    add("copy 2 MiB in two pieces, TBB against OpenMP, idle machine", "threads/idle", false) &&
    add("copy 2 MiB in two pieces, TBB against OpenMP, busy machine", "threads/busy", true);

}  // namespace
