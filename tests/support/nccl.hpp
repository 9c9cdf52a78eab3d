/// \file
/// The frame of a test of NCCL groups: ranks as threads, each with a device and a stream of its
/// own.
#pragma once

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "seqpack/comm/detail/deadline.hpp"
#include "seqpack/comm/nccl.hpp"
#include "support/findings.hpp"
#include "support/group_memory.hpp"

namespace seqpack::testing {

/// Leaves with the status that CTest counts as skipped.
[[noreturn]] inline void skip(const std::string& why) {
  std::printf("skipped: %s\n", why.c_str());
  std::fflush(stdout);
  std::_Exit(77);
}

inline int device_count() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

/// For BOOST_TEST_GLOBAL_FIXTURE: nothing here runs without a device.
struct needs_nccl_device {
  needs_nccl_device() {
    if (device_count() < 1) skip("no CUDA device");
  }
};

/// NCCL wants a device for each rank.
inline int most_ranks() {
  return std::min(device_count(), 4);
}
/// 1, 2, 3, 4, as far as there are devices.
inline std::vector<int> group_sizes() {
  std::vector<int> sizes;
  for (int n = 1; n <= most_ranks(); ++n) sizes.push_back(n);
  return sizes;
}

/// Long enough for a machine with other things to do.
inline constexpr nccl_options patient_nccl{.deadline = std::chrono::seconds(120)};
/// For what never comes.
inline constexpr nccl_options hasty{.deadline = std::chrono::milliseconds(1500)};

/// A stream that the legacy stream does not wait for, so that a missing order shows.
class rank_stream {
 public:
  rank_stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  rank_stream(const rank_stream&) = delete;
  rank_stream& operator=(const rank_stream&) = delete;
  ~rank_stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

inline ncclUniqueId new_id() {
  ncclUniqueId id;
  check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return id;
}

/// What the body of a rank is given. Its device is current.
struct rank_place {
  int rank;
  int size;
  int device;
  cudaStream_t stream;
  ncclUniqueId id;
};

/// Runs `body(place, found)` on n threads, and reports what they find. An exception is a finding.
template <class Body>
void run_ranks(int n, const Body& body) {
  const ncclUniqueId id = new_id();
  std::vector<findings> found;
  for (int r = 0; r < n; ++r) {
    found.emplace_back("on rank " + std::to_string(r) + " of " + std::to_string(n) + ": ");
  }
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) {
    threads.emplace_back([&, r] {
      findings& mine = found[static_cast<std::size_t>(r)];
      try {
        const int device = r % device_count();
        check_cuda(cudaSetDevice(device));
        const rank_stream stream;
        body(rank_place{r, n, device, stream, id}, mine);
      } catch (const std::exception& e) {
        mine.check(false, std::string("an exception: ") + e.what());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const findings& f : found) f.report();
}

inline nccl_communicator make_group(const rank_place& place,
                                    const nccl_options& options = patient_nccl) {
  return nccl_communicator::create(place.id, place.size, {place.rank}, place.stream, options);
}

/// Runs `body(group, found)` on a group of n threads.
template <class Body>
void run_group(int n, const Body& body, const nccl_options& options = patient_nccl) {
  run_ranks(n, [&](const rank_place& place, findings& found) {
    nccl_communicator group = make_group(place, options);
    body(group, found);
  });
}

/// A group with the short deadline, made and warmed up with the long one: making connections takes
/// its time.
/// \param prepare what else is to be done with the group before
template <class Prepare>
nccl_communicator make_hasty_group(const rank_place& place, const Prepare& prepare) {
  ncclComm_t comm = nullptr;
  ncclConfig_t config = detail::nccl::non_blocking();
  ncclCommInitRankConfig(&comm, place.size, place.id, place.rank, &config);
  {
    nccl_communicator warm = nccl_communicator::borrow(comm, place.stream, patient_nccl);
    std::byte mine{};
    std::vector<std::byte> all(static_cast<std::size_t>(place.size));
    warm.exchange(&mine, all.data(), 1);
    const auto number = warm.allocate(4);
    warm.broadcast(static_cast<std::int32_t*>(number.get()), 1, group_rank{0});
    prepare(warm);
    warm.wait();
  }
  return nccl_communicator::adopt(comm, place.stream, hasty);
}
inline nccl_communicator make_hasty_group(const rank_place& place) {
  return make_hasty_group(place, [](nccl_communicator&) {});
}

/// A wait that ends, for streams of groups that are broken: the elements at `data`.
template <class T>
std::vector<T> read_device(cudaStream_t stream, const T* data, std::size_t size) {
  check_cuda(cudaStreamSynchronize(stream));
  std::vector<T> result(size);
  check_cuda(
      cudaMemcpyAsync(result.data(), data, size * sizeof(T), cudaMemcpyDeviceToHost, stream));
  check_cuda(cudaStreamSynchronize(stream));
  return result;
}

template <>
struct group_copies<nccl_communicator> {
  static void upload(nccl_communicator& group, void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, group.stream()));
  }
  static void download(nccl_communicator& group, void* to, const void* from, std::size_t bytes) {
    group.wait();  // has a deadline, which a copy to pageable memory has not
    if (bytes == 0) return;
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, group.stream()));
    group.wait();
  }
};

/// Milliseconds that a call takes.
template <class Call>
std::chrono::milliseconds time_of(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               start);
}

/// What ranks that are threads wait for each other with, beside the group under test.
class meeting {
 public:
  explicit meeting(int threads) : missing_(threads) {}
  /// \returns whether all came, which they do unless one of them fails.
  bool arrive_and_wait() {
    --missing_;
    return detail::wait_until(std::chrono::seconds(60), [&] { return missing_ <= 0; });
  }

 private:
  std::atomic<int> missing_;
};

}  // namespace seqpack::testing
