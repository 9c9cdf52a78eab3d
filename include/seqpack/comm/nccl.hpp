/// \file
/// Groups of CUDA devices over NCCL; they move device memory. CMake component: seqpack::nccl. Needs
/// the toolkit's and NCCL's headers, and no CUDA compiler.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/deadline.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/source_location.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/exec/cuda_release.hpp"

namespace seqpack {

static_assert(NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0),
              "seqpack needs NCCL 2.18, the first one with ncclCommSplit");

/// A call of NCCL that failed, or an operation of NCCL that did later: its code, NCCL's own
/// message, and where the library made the call.
class nccl_error : public communication_error {
 public:
  /// \param comm what NCCL is asked about its last error; it must not have been aborted yet
  nccl_error(ncclResult_t code, const std::string& operation, ncclComm_t comm = nullptr,
             source_location where = source_location::current())
      : communication_error(operation + " failed: " + message(code, comm), where), code_(code) {}

  ncclResult_t code() const noexcept { return code_; }

 private:
  static std::string message(ncclResult_t code, ncclComm_t comm) {
    const char* const last = ncclGetLastError(comm);
    const std::string text = last == nullptr ? "" : last;
    return std::string(ncclGetErrorString(code)) + " (NCCL error " + std::to_string(code) + ")" +
           (text.empty() ? "" : ": " + text);
  }

  ncclResult_t code_;
};

/// \throws nccl_error unless the code is ncclSuccess.
inline void check_nccl(ncclResult_t code, const char* operation, ncclComm_t comm = nullptr,
                       source_location where = source_location::current()) {
  if (code != ncclSuccess) throw nccl_error(code, operation, comm, where);
}

/// What an NCCL communicator may be told.
struct nccl_options {
  /// How long a collective waits for another rank, and how long wait() waits for the stream.
  std::chrono::milliseconds deadline = default_deadline;
};

/// NCCL's name for a type that it reduces, as `value`. Specialise it for a type of one's own that
/// is laid out as one of these; all others travel, and cannot be reduced.
template <class T>
struct nccl_type {};
/// Every integer of 1, 4 or 8 bytes; NCCL has none of 2.
template <std::integral T>
  requires(!std::same_as<T, bool> && (sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8))
struct nccl_type<T> {
  static constexpr ncclDataType_t value =
      sizeof(T) == 1   ? (std::is_signed_v<T> ? ncclInt8 : ncclUint8)
      : sizeof(T) == 4 ? (std::is_signed_v<T> ? ncclInt32 : ncclUint32)
                       : (std::is_signed_v<T> ? ncclInt64 : ncclUint64);
};
template <>
struct nccl_type<float> : std::integral_constant<ncclDataType_t, ncclFloat32> {};
template <>
struct nccl_type<double> : std::integral_constant<ncclDataType_t, ncclFloat64> {};
template <>
struct nccl_type<__half> : std::integral_constant<ncclDataType_t, ncclFloat16> {};
template <>
struct nccl_type<__nv_bfloat16> : std::integral_constant<ncclDataType_t, ncclBfloat16> {};
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0) && CUDART_VERSION >= 11080
/// On devices of compute capability 9.0 and more.
template <>
struct nccl_type<__nv_fp8_e4m3> : std::integral_constant<ncclDataType_t, ncclFloat8e4m3> {};
/// On devices of compute capability 9.0 and more.
template <>
struct nccl_type<__nv_fp8_e5m2> : std::integral_constant<ncclDataType_t, ncclFloat8e5m2> {};
#endif

namespace detail::nccl {

/// What a reduction can combine.
template <class T>
concept reducible = element<T> && requires {
  { nccl_type<std::remove_cv_t<T>>::value } -> std::convertible_to<ncclDataType_t>;
};

constexpr ncclRedOp_t operation_of(reduction how) noexcept {
  return how == reduction::sum ? ncclSum : how == reduction::max ? ncclMax : ncclMin;
}

/// A device that is current for as long as the object lives. One that cannot become it shows in the
/// calls that follow: destructors need this too.
class current_device {
 public:
  explicit current_device(int device) noexcept {
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = device;
    if (before_ != device) cudaSetDevice(device);
    device_ = device;
  }
  current_device(const current_device&) = delete;
  current_device& operator=(const current_device&) = delete;
  ~current_device() {
    if (before_ != device_) cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  int device_ = 0;
};

using detail::forget;
using detail::is_of_capture;
using detail::releasing::relaxed_capture;

/// The number of devices, at least 1.
inline int count_devices() {
  int devices = 0;
  const cudaError_t code = cudaGetDeviceCount(&devices);
  forget(code);
  check_cuda(code == cudaSuccess && devices < 1 ? cudaErrorNoDevice : code);
  return devices;
}
inline int find_current_device() {
  count_devices();
  int device = 0;
  check_cuda(cudaGetDevice(&device));
  return device;
}

/// Where a communicator works, and for how long.
struct site {
  int device = 0;
  cudaStream_t stream = nullptr;
  std::chrono::milliseconds deadline = default_deadline;

  /// One of the codes of captures where the stream is being captured: what waits for it, a query
  /// too, would end the capture. Else cudaSuccess, or the error of earlier work in the stream.
  cudaError_t ask_capture() const noexcept {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t code = cudaStreamIsCapturing(stream, &status);
    forget(code);
    return code == cudaSuccess && status != cudaStreamCaptureStatusNone
               ? cudaErrorStreamCaptureUnsupported
               : code;
  }
  bool is_captured() const noexcept { return is_of_capture(ask_capture()); }

  /// cudaErrorNotReady where the stream is busy, else what became of the work in it, which nobody
  /// can tell during a capture.
  cudaError_t state() const noexcept {
    const cudaError_t asked = ask_capture();
    if (asked != cudaSuccess) return asked;
    const cudaError_t found = cudaStreamQuery(stream);
    forget(found);
    return found;
  }
};

/// Memory of the site's device, allocated and freed in the order of its stream; some also for no
/// bytes, as operator new has it.
inline std::shared_ptr<void> allocate(const site& at, offset_t bytes,
                                      source_location where = source_location::current()) {
  const auto size = static_cast<std::size_t>(std::max(bytes, offset_t{1}));
  const current_device here(at.device);
  void* const memory = detail::releasing::allocate(
      at.stream, [&](void** made) { return cudaMallocAsync(made, size, at.stream); }, where);
  return {memory, [at](void* p) {
            const current_device there(at.device);
            const relaxed_capture undisturbed;
            detail::releasing::release(p, at.stream);
          }};
}

/// Whether NCCL is told to leave the memory of peers alone.
inline bool reaches_no_peers() {
  const auto is_set = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != 0 && std::string_view(value) != "0";
  };
  return is_set("NCCL_P2P_DIRECT_DISABLE") || is_set("NCCL_P2P_DISABLE");
}

/// Whether kernels of one device can use memory of another one.
inline bool can_reach(int device, int memory) noexcept {
  int can = 0;
  forget(cudaDeviceCanAccessPeer(&can, device, memory));
  return device != memory && can != 0;
}

/// Whether a device has been given access to a pool's memory; nothing where nobody can tell.
inline std::optional<bool> has_access(int device, cudaMemPool_t pool) noexcept {
  cudaMemLocation place{};
  place.type = cudaMemLocationTypeDevice;
  place.id = device;
  cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
  const cudaError_t code = cudaMemPoolGetAccess(&flags, pool, &place);
  forget(code);
  if (code != cudaSuccess) return std::nullopt;
  return flags == cudaMemAccessFlagsProtReadWrite;
}

/// Gives devices access to a pool's memory, what has been allocated already too.
inline cudaError_t give_access(cudaMemPool_t pool, std::span<const int> devices) noexcept {
  const relaxed_capture undisturbed;
  for (const int device : devices) {
    if (has_access(device, pool) == true) continue;
    cudaMemAccessDesc wanted{};
    wanted.location.type = cudaMemLocationTypeDevice;
    wanted.location.id = device;
    wanted.flags = cudaMemAccessFlagsProtReadWrite;
    const cudaError_t code = cudaMemPoolSetAccess(pool, &wanted, 1);
    forget(code);
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

/// The devices that this process has groups on.
class group_devices {
 public:
  static group_devices& of_process() {
    static group_devices& all = *new group_devices;
    return all;
  }
  void add(int device) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(devices_, device) == devices_.end()) devices_.push_back(device);
  }
  /// Each device can use what cudaMallocAsync gives on every other one, as far as the machine can do
  /// that. What fails is told by the allocations of groups.
  void open_all() {
    const std::lock_guard lock(mutex_);
    for (const int d : devices_) open_current(d);
  }
  /// The same for the current pool of one device, which the program may have changed.
  cudaError_t open(int device) {
    const std::lock_guard lock(mutex_);
    return open_current(device);
  }
  /// The same for a pool of the device.
  cudaError_t open(int device, cudaMemPool_t pool) {
    const std::lock_guard lock(mutex_);
    return give_access(pool, peers_of(device));
  }

 private:
  std::vector<int> peers_of(int device) const {
    std::vector<int> peers;
    std::ranges::copy_if(devices_, std::back_inserter(peers),
                         [&](int d) { return can_reach(d, device); });
    return peers;
  }
  cudaError_t open_current(int device) const {
    const std::vector<int> peers = peers_of(device);
    if (peers.empty()) return cudaSuccess;
    cudaMemPool_t pool = nullptr;
    const cudaError_t code = cudaDeviceGetMemPool(&pool, device);
    forget(code);
    return code == cudaSuccess ? give_access(pool, peers) : code;
  }

  std::mutex mutex_;
  std::vector<int> devices_;
};

/// A rank that is in this process, and its device.
struct neighbour {
  world_rank rank;
  int device = 0;
};

/// The ranks of a group that is being made that are in this process; they meet by the group's id.
class neighbours {
 public:
  /// Adds one. All are there when the group has been made, which none is without the others.
  static std::shared_ptr<neighbours> join(const ncclUniqueId& id, const neighbour& mine) {
    static std::mutex& mutex = *new std::mutex;
    static auto& groups = *new std::map<std::string, std::weak_ptr<neighbours>, std::less<>>;
    const std::lock_guard lock(mutex);
    std::erase_if(groups, [](const auto& group) { return group.second.expired(); });
    std::weak_ptr<neighbours>& place = groups[std::string(id.internal, sizeof id.internal)];
    std::shared_ptr<neighbours> found = place.lock();
    if (!found) place = found = std::make_shared<neighbours>();
    const std::lock_guard own(found->mutex_);
    found->all_.push_back(mine);
    return found;
  }
  std::vector<neighbour> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<neighbour> all_;
};

/// The pool that memory is from; null where it is from none, or nobody can tell: only the driver
/// knows, and a runtime that has none says so.
inline cudaMemPool_t pool_of(const void* memory) noexcept {
#if CUDART_VERSION >= 12050
  using question = CUresult (*)(void*, CUpointer_attribute, CUdeviceptr);
  static const question ask = [] {
    void* found = nullptr;
    const cudaError_t code = cudaGetDriverEntryPointByVersion("cuPointerGetAttribute", &found,
                                                              12000, cudaEnableDefault, nullptr);
    forget(code);
    return code == cudaSuccess ? reinterpret_cast<question>(found) : nullptr;
  }();
  CUmemoryPool pool = nullptr;
  if (ask == nullptr || ask(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                            reinterpret_cast<std::uintptr_t>(memory)) != CUDA_SUCCESS) {
    return nullptr;
  }
  return pool;
#else
  return nullptr;
#endif
}

/// The asynchronous error of a communicator, ncclInProgress, or ncclSuccess.
inline ncclResult_t state_of(ncclComm_t comm) noexcept {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
  return asked == ncclSuccess ? state : asked;
}
constexpr bool has_failed(ncclResult_t code) noexcept {
  return code != ncclSuccess && code != ncclInProgress;
}

/// A call of NCCL that has no deadline of its own, made by a thread of its own, which goes on for
/// as long as the call does. Where there is no thread to be had, it is over when the object is
/// made.
class background_call {
 public:
  template <class Call>
  background_call(int device, const Call& call) noexcept {
    const auto make = [device, call] {
      const current_device here(device);
      const relaxed_capture undisturbed;
      const ncclResult_t code = call();
      return code == ncclInProgress ? ncclSuccess : code;
    };
    try {
      auto result = std::make_shared<std::atomic<ncclResult_t>>(ncclInProgress);
      std::thread([make, result] { result->store(make()); }).detach();
      result_ = std::move(result);
    } catch (const std::exception&) {
      made_here_ = make();
    }
  }

  /// ncclInProgress until the call has returned.
  ncclResult_t result() const noexcept { return result_ ? result_->load() : made_here_; }
  bool is_over() const noexcept { return result() != ncclInProgress; }

 private:
  std::shared_ptr<const std::atomic<ncclResult_t>> result_;
  ncclResult_t made_here_ = ncclSuccess;
};

/// An ncclComm_t at its site, and what is to be done with it at the end.
class handle {
 public:
  /// None.
  handle() = default;
  /// One that a call of NCCL puts there. It is aborted unless ready() follows.
  explicit handle(const site& at) : handle(at, nullptr, end::abort) {}
  /// One that is there.
  handle(const site& at, ncclComm_t comm, bool owned)
      : handle(at, comm, owned ? end::destroy : end::leave) {}
  handle(handle&&) noexcept = default;
  handle& operator=(handle&& other) noexcept {
    handle taken(std::move(other));
    std::swap(at_, taken.at_);
    std::swap(comm_, taken.comm_);
    std::swap(part_, taken.part_);
    std::swap(ends_, taken.ends_);
    return *this;
  }
  ~handle() {
    if (get() == nullptr || ends_ == end::leave) return;
    if (ends_ == end::destroy && finalize()) {
      const auto call = start([](ncclComm_t comm) { return ncclCommDestroy(comm); });
      detail::wait_until(at_.deadline, [&] { return call.is_over(); });
    } else {
      abort();
    }
  }

  const site& at() const noexcept { return at_; }
  ncclComm_t get() const noexcept {
    return comm_ == nullptr ? nullptr : std::atomic_ref(*comm_).load();
  }
  /// Where a call of NCCL writes it, at once or from a thread of its own later.
  ncclComm_t* address() noexcept { return comm_.get(); }
  /// Its setup is over.
  void ready() noexcept { ends_ = end::destroy; }
  /// NCCL makes another one of this one, and may write it until an abort of this one is over.
  void makes(const handle& part) noexcept { part_ = part.comm_; }

  /// Waits until what NCCL does of this communicator outside of streams is over.
  /// \param code what the call returned
  /// \throws nccl_error, deadline_passed
  void settle(ncclResult_t code, const char* operation, source_location where) const {
    if (has_failed(code)) throw nccl_error(code, operation, get(), where);
    const bool over = detail::wait_until(at_.deadline, [&] {
      code = state_of(get());
      return code != ncclInProgress;
    });
    if (has_failed(code)) throw nccl_error(code, operation, get(), where);
    if (!over) throw deadline_passed(operation, at_.deadline, where);
  }

  /// Ends what is in flight, and the communicator with it. The stream goes on without the data.
  /// \returns what did not come to its end before the deadline passed once more, to be put behind
  /// the reason of the abort; nothing where all of it did.
  const char* abort() noexcept {
    if (get() == nullptr) return "";
    const background_call call = start_abort();
    bool busy = false;
    detail::wait_until(at_.deadline, [&] {
      busy = ends_ != end::abort && at_.state() == cudaErrorNotReady;
      return !busy && call.is_over();
    });
    if (call.is_over()) return busy ? "; the stream is still busy after an abort" : "";
    return busy ? "; NCCL has not ended the communicator, and the stream is still busy"
                : "; NCCL has not ended the communicator";
  }
  /// Does not wait for its end.
  background_call start_abort() noexcept {
    return start([](ncclComm_t comm) { return ncclCommAbort(comm); });
  }

 private:
  enum class end { leave, destroy, abort };

  handle(const site& at, ncclComm_t comm, end ends)
      : at_(at), comm_(std::make_shared<ncclComm_t>(comm)), ends_(ends) {}

  /// The last call for this communicator. What NCCL may write to meanwhile lives as long as it.
  template <class Call>
  background_call start(const Call& call) noexcept {
    ncclComm_t const comm = std::atomic_ref(*comm_).exchange(nullptr);
    return {at_.device, [call, comm, written = std::pair(comm_, part_)] { return call(comm); }};
  }

  /// Lets everything come to its end.
  /// \returns whether it did, without errors, before the deadline passed.
  bool finalize() const noexcept {
    ncclComm_t const comm = get();
    if (!at_.is_captured()) {
      detail::wait_until(at_.deadline, [&] {
        return has_failed(state_of(comm)) || at_.state() != cudaErrorNotReady;
      });
      if (at_.state() != cudaSuccess) return false;
    }
    if (state_of(comm) != ncclSuccess) return false;
    const background_call call(at_.device, [comm] { return ncclCommFinalize(comm); });
    detail::wait_until(at_.deadline, [&] {
      return call.is_over() && (has_failed(call.result()) || state_of(comm) != ncclInProgress);
    });
    return call.result() == ncclSuccess && state_of(comm) == ncclSuccess;
  }

  site at_;
  std::shared_ptr<ncclComm_t> comm_;
  std::shared_ptr<ncclComm_t> part_;
  end ends_ = end::leave;
};

/// Calls return where they would wait for other ranks.
inline ncclConfig_t non_blocking() noexcept {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

inline void require_size(const char* name, offset_t size) {
  if (size < 1 || size > INT_MAX) {
    reject(name, size, "it must be from 1 to " + std::to_string(INT_MAX));
  }
}

/// One rank's part in making a group over another one: the id, from rank 0, and what went wrong.
struct invitation {
  ncclUniqueId id{};
  cudaError_t cuda = cudaSuccess;
  ncclResult_t nccl = ncclSuccess;
  int device = 0;

  void write(detail::records::writer& to) const {
    to.raw(&id, sizeof id);
    to.put(static_cast<std::int32_t>(cuda));
    to.put(static_cast<std::int32_t>(nccl));
  }
  /// The device is of no use to others.
  static invitation read(detail::records::reader& from) {
    invitation r;
    from.raw(&r.id, sizeof r.id);
    r.cuda = static_cast<cudaError_t>(
        from.get<std::int32_t>("code of CUDA", 0, static_cast<std::int32_t>(cudaErrorUnknown)));
    r.nccl = static_cast<ncclResult_t>(
        from.get<std::int32_t>("code of NCCL", 0, static_cast<std::int32_t>(ncclNumResults) - 1));
    return r;
  }
};

inline invitation invite(bool makes_id) {
  invitation mine{};
  try {
    mine.device = find_current_device();
  } catch (const cuda_error& e) {
    mine.cuda = e.code();
    return mine;
  }
  if (makes_id) mine.nccl = ncclGetUniqueId(&mine.id);
  return mine;
}

/// The same verdict on all ranks, but for a rank without a device, which throws its own error.
inline void require_all(const std::vector<invitation>& all, const group_members& members,
                        const invitation& mine) {
  check_cuda(mine.cuda);
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].cuda == cudaSuccess) continue;
    const group_rank rank{static_cast<offset_t>(r)};
    throw communication_error(detail::exchanging::rank_name(members, rank) +
                              " has no device: CUDA error " + cudaGetErrorName(all[r].cuda));
  }
  check_nccl(all.front().nccl, "ncclGetUniqueId on rank 0");
}

}  // namespace detail::nccl

/// A group of CUDA devices, one for each rank. Ranks are processes, or threads of one process. One
/// thread at a time may use it.
///
///     auto group = nccl_communicator::over(world, stream);            // beside MPI
///     auto groups = nccl_communicator::local(devices, streams);       // in one process
///     auto tensor = broadcast_tensor<float>(std::nullopt, group_rank{0}, group);
///     group.wait();
///
/// **Stream-ordered**: operations are put into the stream and return. What waits for the host is
/// wait(), exchange(), split(), and so the headers of broadcast_tensor; the first use of a
/// connection may wait for the other ranks to make it. All of that has the deadline. The stream is
/// the caller's and must outlive the communicator and the memory that it allocates. The
/// communicator remembers the device that was current when it was made, and its calls leave the
/// current device as it is.
///
/// It may be captured into a CUDA graph, but for what waits, on all ranks alike; graphs must be
/// destroyed before the communicator.
///
/// **After an error** (nccl_error, deadline_passed, a cuda_error of the stream) the communicator
/// has been aborted, and refuses everything. Its operations have come to their end without their
/// data, so that no memory is in flight any more. Outputs may be half written. The abort, and what
/// else is in the stream, are given the deadline once more. NCCL's own abort has none: it may wait
/// for other work on the device, and for ranks of the node that live and do not come to theirs.
/// When the time is over, it goes on in a thread that is left alone; that thread, NCCL's
/// communicator and what NCCL has allocated for it are kept until the abort or the process ends.
/// The reason that all further calls give then ends with "NCCL has not ended the communicator", or
/// with "the stream is still busy": memory that was passed to operations may be in use for as long
/// as the stream is.
///
/// **The destructor** waits for what is in the stream, and then for the other ranks of the process
/// or node to destroy theirs, each up to the deadline; then it aborts. It says nothing of an abort
/// or a destruction that does not end: the thread and the communicator are kept as above. Destroy
/// the ranks of one process in threads of their own, as they were used. While the stream is being
/// captured it does not wait for it, and leaves the capture as it is.
///
/// **Memory of pools**: between devices of one process NCCL may use a rank's memory from another
/// device, which memory of a stream-ordered pool refuses until the pool is told otherwise. The
/// devices that a process makes groups on are given access to the current pool of one another,
/// cudaMallocAsync's, when a group is made, and whenever allocate() finds another pool there. A pool
/// of one's own needs give_access(). Memory of a pool that a device of the group in this process
/// cannot use is refused: invalid_input on this rank alone before anything is sent, and
/// collective_mismatch on all ranks from broadcast_tensor. Memory of graphs, and of groups that were
/// adopted or borrowed, is not looked at, nor any where the runtime knows no driver, or where
/// NCCL_P2P_DIRECT_DISABLE or NCCL_P2P_DISABLE is set to 1 in the environment, since NCCL then
/// leaves such memory to its own device.
///
/// An **allocation** of the group's own that fails on one rank, for an exchange or in
/// join_broadcast, makes that rank give up alone with a cuda_error. The others find out where they
/// wait for it: deadline_passed, or an nccl_error where NCCL tells them before.
class nccl_communicator : public communicator_base<nccl_communicator> {
 public:
  static constexpr bool on_device = true;
  template <class T>
  static constexpr bool reduces = detail::nccl::reducible<T>;
  /// Broadcasts move in pieces of so many bytes: what a rank without memory for the whole needs.
  static constexpr offset_t piece = 16 << 20;

  /// Rank `rank` of a new group of `size`, on the current device, with the ranks of the world from
  /// 0 to size - 1. **Collective** over those who have the id, which one of them got from
  /// ncclGetUniqueId.
  /// \param stream of the current device; nothing checks that it is
  /// \throws invalid_input for a size below 1, a rank outside of it, a bad option; cuda_error where
  /// there is no device; nccl_error; deadline_passed where a rank does not come. What was begun has
  /// then been aborted, with the deadline once more.
  static nccl_communicator create(const ncclUniqueId& id, offset_t size, group_rank rank,
                                  cudaStream_t stream, const nccl_options& options = {}) {
    require_deadline(options.deadline);
    detail::nccl::require_size("size", size);
    group_members members = group_members::all(size);
    members.require(rank, "rank");
    const detail::nccl::site at{detail::nccl::find_current_device(), stream, options.deadline};
    return join(id, {std::move(members), world_rank{rank.value}}, at);
  }

  /// The same members as those of another group, such as one of MPI; each on its current device.
  /// **Collective** over them. The two are independent afterwards.
  /// \param stream of the current device, as in create
  /// \throws invalid_input for a caller that is not a member, a bad option; cuda_error where there
  /// is no device, on which the other ranks throw communication_error; nccl_error; deadline_passed.
  template <communicator C>
  static nccl_communicator over(C& other, cudaStream_t stream, const nccl_options& options = {}) {
    require_deadline(options.deadline);
    const group_rank rank = other.rank();
    const detail::nccl::invitation mine = detail::nccl::invite(rank.value == 0);
    const auto all = detail::exchanging::exchange_records(other, "nccl_communicator::over", mine);
    detail::nccl::require_all(all, other.members(), mine);
    return join(all.front().id, {other.members(), other.members().to_world(rank)},
                {mine.device, stream, options.deadline});
  }

  /// A group of devices of this process, made by one thread. Rank k is `devices[k]`, and works on
  /// `streams[k]`; each rank is then moved to a thread of its own, and destroyed there. Not
  /// collective.
  /// \param streams each of its device
  /// \throws invalid_input for no devices, one that does not exist, another number of streams, a
  /// bad option; cuda_error where there is no device; nccl_error; deadline_passed.
  static std::vector<nccl_communicator> local(std::span<const int> devices,
                                              std::span<const cudaStream_t> streams,
                                              const nccl_options& options = {}) {
    require_deadline(options.deadline);
    require_sites(devices, streams);
    ncclUniqueId id;
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    std::vector<detail::nccl::handle> handles;
    for (std::size_t k = 0; k < devices.size(); ++k) {
      handles.emplace_back(detail::nccl::site{devices[k], streams[k], options.deadline});
    }
    join_all(id, handles);
    std::vector<detail::nccl::neighbour> all;
    for (const int device : devices) {
      all.push_back({world_rank{std::ssize(all)}, device});
      detail::nccl::group_devices::of_process().add(device);
    }
    detail::nccl::group_devices::of_process().open_all();
    std::vector<nccl_communicator> ranks;
    for (detail::nccl::handle& h : handles) {
      const world_rank me{std::ssize(ranks)};
      ranks.push_back({std::move(h), {group_members::all(std::ssize(devices)), me}, all});
    }
    return ranks;
  }

  /// Takes over a communicator, which is destroyed with the object. Not collective. Make it with
  /// `blocking = 0`: calls on others can wait for ranks without a deadline. split() does not pass
  /// on the configuration that it was made with.
  /// \param stream of the communicator's device, which need not be current
  /// \throws invalid_input for a null one, a bad option; cuda_error where there is no device;
  /// nccl_error; deadline_passed where its setup is not over. It is then still the caller's.
  static nccl_communicator adopt(ncclComm_t comm, cudaStream_t stream,
                                 const nccl_options& options = {}) {
    return wrap(comm, true, stream, options);
  }
  /// Uses a communicator that stays the caller's and must outlive the object. After an error it has
  /// been aborted all the same, since nothing else ends what is in the stream: where get() is null,
  /// the caller must neither use nor destroy it any more. Not collective; throws as adopt() does.
  static nccl_communicator borrow(ncclComm_t comm, cudaStream_t stream,
                                  const nccl_options& options = {}) {
    return wrap(comm, false, stream, options);
  }

  /// Gives the other devices that this process has groups on access to the memory of a pool of the
  /// communicator's device, what is there and what comes, so that the group can move memory of a
  /// device_pool, or of any pool of one's own. Not collective.
  /// \throws cuda_error
  void give_access(cudaMemPool_t pool) const {
    check_cuda(detail::nccl::group_devices::of_process().open(at().device, pool));
  }

  /// Memory of the communicator's device.
  memory_location location() const noexcept { return memory_location::on_device(at().device); }
  /// Pageable and pinned memory is the host's, managed memory is anywhere. Memory of a pool that
  /// another device of the group in this process cannot use is told apart.
  memory_location location_of(const void* pointer) const noexcept {
    cudaPointerAttributes found{};
    const cudaError_t code = cudaPointerGetAttributes(&found, pointer);
    detail::nccl::forget(code);
    if (code != cudaSuccess) return memory_location::host();
    if (found.type == cudaMemoryTypeManaged) return {};
    if (found.type != cudaMemoryTypeDevice) return memory_location::host();
    return find_excluded(pointer) ? memory_location::closed(found.device)
                                  : memory_location::on_device(found.device);
  }

  /// The group's device as the current one, for as long as the result lives.
  [[nodiscard]] detail::nccl::current_device make_current() const {
    return detail::nccl::current_device(at().device);
  }

  /// Null after an error, and where the caller is not a member.
  ncclComm_t get() const noexcept { return handle_.get(); }
  cudaStream_t stream() const noexcept { return at().stream; }
  std::chrono::milliseconds deadline() const noexcept { return at().deadline; }

  /// Few bytes of every rank, in host memory, over on return, as is everything before in the
  /// stream.
  /// \throws deadline_passed, nccl_error; cuda_error, also for a rank without memory for it, after
  /// which the others wait for it until their deadline; it must not be captured.
  void exchange(const std::byte* mine, std::byte* all, offset_t bytes) {
    wait();  // a copy of pageable memory may wait for the stream, and has no deadline
    if (bytes == 0) return;
    const detail::nccl::current_device here(at().device);
    auto* const mirror = reserve(bytes * size());
    auto* const own = mirror + rank().value * bytes;
    const auto n = static_cast<std::size_t>(bytes);
    check(cudaMemcpyAsync(own, mine, n, cudaMemcpyHostToDevice, stream()));
    gather(own, mirror, bytes);
    wait();
    check(cudaMemcpyAsync(all, mirror, n * static_cast<std::size_t>(size()), cudaMemcpyDeviceToHost,
                          stream()));
    check(cudaStreamSynchronize(stream()));  // nothing but this copy is in it
  }

  /// \throws cuda_error for a rank without memory for one piece, after which it cannot use the
  /// group; the others find out in wait(), at the deadline.
  void join_broadcast(offset_t bytes, group_rank root) {
    require_usable();
    std::shared_ptr<void> bounce;
    try {
      bounce = allocate_own(std::min(bytes, piece));
    } catch (const cuda_error& e) {
      fail(e, e.what());
    }
    broadcast_pieces(bytes, root, [&](offset_t) { return bounce.get(); });
  }

  /// Until everything in the stream is over, the caller's own work too.
  /// \throws deadline_passed where it is not before the deadline; nccl_error for an asynchronous
  /// error; cuda_error for one of the stream, and, leaving all as it is, where the stream is being
  /// captured.
  void wait() {
    require_usable();
    const detail::nccl::current_device here(at().device);
    require_not_captured();
    ncclResult_t group = ncclSuccess;
    cudaError_t work = cudaSuccess;
    const bool over = detail::wait_until(at().deadline, [&] {
      group = detail::nccl::state_of(get());
      work = at().state();
      return detail::nccl::has_failed(group) || (work != cudaErrorNotReady && group == ncclSuccess);
    });
    if (detail::nccl::has_failed(group))
      fail(nccl_error(group, "an operation in the stream", get()));
    if (!over) fail(deadline_passed(operation_text("the stream"), at().deadline));
    if (detail::nccl::is_of_capture(work)) throw cuda_error(work);  // it began while this waited
    check(work);
    detail::releasing::open_releases::of_process().free_held(stream());
  }

  /// **Collective** over the members. What all ranks pass is exchanged first; NCCL's own split
  /// starts when all ranks are known to be there. The new group works on the same stream, with the
  /// same deadline. It has NCCL's default configuration, but that its calls do not block: a
  /// communicator with a configuration of its own, adopted or borrowed, does not pass it on, since
  /// its children would inherit the blocking calls of such a one as well. Split that one with
  /// ncclCommSplit, and adopt the parts, where they need one. Waits for the stream; it must not be
  /// captured.
  nccl_communicator split(std::optional<offset_t> colour, offset_t key) {
    require_usable();
    auto [place, members] = detail::exchanging::agree_on_split(*this, colour, key);
    group_seat seat{std::move(members), me()};
    const int my_colour = place ? static_cast<int>(*place) : NCCL_SPLIT_NOCOLOR;
    const int my_key = place ? static_cast<int>(seat.rank()->value) : 0;
    ncclConfig_t config = detail::nccl::non_blocking();
    detail::nccl::handle made(at());
    handle_.makes(made);
    run("ncclCommSplit",
        [&] { return ncclCommSplit(get(), my_colour, my_key, made.address(), &config); });
    if (place) finish_split(made);
    return {std::move(made), std::move(seat), others_};
  }

  /// Memory of the device, allocated and freed in the order of the stream; it may outlive the
  /// communicator. The other devices of the process that have groups can use it. In a capture the
  /// graph allocates it; memory from before that is given back in a capture is freed after it, in
  /// the next allocation, release or wait() in the stream, or by check_releases().
  /// \throws cuda_error, on this rank alone, and leaves the group as it is; also where memory that
  /// was given back before in the stream could not be freed.
  std::shared_ptr<void> allocate(offset_t bytes) const {
    {
      const detail::nccl::current_device here(at().device);
      detail::releasing::open_releases::of_process().check(stream());
    }
    return allocate_own(bytes);
  }

 private:
  friend communicator_base<nccl_communicator>;
  /// What the library's own exchanges need of each rank.
  static constexpr offset_t usual_exchange = sizeof(detail::exchanging::envelope);

  /// \param here the ranks of this process, where they are known
  nccl_communicator(detail::nccl::handle handle, group_seat seat,
                    const std::vector<detail::nccl::neighbour>& here)
      : communicator_base(std::move(seat)), handle_(std::move(handle)) {
    if (here.empty() || detail::nccl::reaches_no_peers()) return;
    std::ranges::copy_if(here, std::back_inserter(others_),
                         [&](const detail::nccl::neighbour& other) {
                           return members().contains(other.rank) &&
                                  detail::nccl::can_reach(other.device, at().device);
                         });
    std::ranges::sort(others_, {}, [](const detail::nccl::neighbour& n) { return n.rank.value; });
  }

  static void require_sites(std::span<const int> devices, std::span<const cudaStream_t> streams) {
    detail::nccl::require_size("number of devices", std::ssize(devices));
    if (streams.size() != devices.size()) {
      reject("number of streams", std::ssize(streams),
             "it must be " + std::to_string(devices.size()) + ", one for each device");
    }
    const int last = detail::nccl::count_devices() - 1;
    for (std::size_t k = 0; k < devices.size(); ++k) {
      if (devices[k] >= 0 && devices[k] <= last) continue;
      reject(entry_name("devices", static_cast<offset_t>(k)), devices[k],
             "it must be from 0 to " + std::to_string(last) + ", the last device");
    }
  }

  static nccl_communicator join(const ncclUniqueId& id, group_seat seat,
                                const detail::nccl::site& at) {
    // Before the setup, which is over on no rank before all have begun it: then all are known.
    const auto here = detail::nccl::neighbours::join(id, {seat.me, at.device});
    detail::nccl::group_devices::of_process().add(at.device);
    detail::nccl::handle made(at);
    ncclConfig_t config = detail::nccl::non_blocking();
    const ncclResult_t code =
        ncclCommInitRankConfig(made.address(), static_cast<int>(seat.members.size()), id,
                               static_cast<int>(seat.rank()->value), &config);
    made.settle(code, "ncclCommInitRankConfig", source_location::current());
    made.ready();
    detail::nccl::group_devices::of_process().open_all();
    return {std::move(made), std::move(seat), here->all()};
  }
  static void join_all(const ncclUniqueId& id, std::vector<detail::nccl::handle>& handles) {
    ncclConfig_t config = detail::nccl::non_blocking();
    const int size = static_cast<int>(handles.size());
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    ncclResult_t code = ncclSuccess;
    for (int rank = 0; rank < size && !detail::nccl::has_failed(code); ++rank) {
      detail::nccl::handle& h = handles[static_cast<std::size_t>(rank)];
      const detail::nccl::current_device here(h.at().device);
      code = ncclCommInitRankConfig(h.address(), size, id, rank, &config);
    }
    const ncclResult_t ended = ncclGroupEnd();  // also where a call failed, so that the group ends
    if (!detail::nccl::has_failed(code)) code = ended;
    try {
      for (const detail::nccl::handle& h : handles) {
        h.settle(code, "ncclCommInitRankConfig", source_location::current());
      }
    } catch (const communication_error&) {
      abort_all(handles);
      throw;
    }
    for (detail::nccl::handle& h : handles) h.ready();
  }
  /// At the same time, since one may wait for another.
  static void abort_all(std::vector<detail::nccl::handle>& handles) {
    std::vector<detail::nccl::background_call> calls;
    calls.reserve(handles.size());
    for (detail::nccl::handle& h : handles) {
      if (h.get() != nullptr) calls.push_back(h.start_abort());
    }
    detail::wait_until(handles.front().at().deadline, [&] {
      return std::ranges::all_of(calls, &detail::nccl::background_call::is_over);
    });
  }
  static nccl_communicator wrap(ncclComm_t comm, bool owned, cudaStream_t stream,
                                const nccl_options& options) {
    require_deadline(options.deadline);
    if (comm == nullptr) reject("communicator", "null", "it must be one");
    detail::nccl::count_devices();
    detail::nccl::site at{0, stream, options.deadline};
    int size = 0;
    int rank = 0;
    detail::nccl::handle(at, comm, false)
        .settle(ncclSuccess, "the setup of the communicator", source_location::current());
    check_nccl(ncclCommCuDevice(comm, &at.device), "ncclCommCuDevice", comm);
    check_nccl(ncclCommCount(comm, &size), "ncclCommCount", comm);
    check_nccl(ncclCommUserRank(comm, &rank), "ncclCommUserRank", comm);
    detail::nccl::group_devices::of_process().add(at.device);
    detail::nccl::group_devices::of_process().open_all();
    return {
        detail::nccl::handle(at, comm, owned), {group_members::all(size), world_rank{rank}}, {}};
  }

  const detail::nccl::site& at() const noexcept { return handle_.at(); }

  void require_usable() const {
    require_member();
    if (!broken_.empty()) {
      throw communication_error("the communicator cannot be used any more: " + broken_);
    }
  }
  /// A capture is the caller's mistake; an error of earlier work in the stream is the group's end.
  void require_not_captured() {
    const cudaError_t asked = at().ask_capture();
    if (detail::nccl::is_of_capture(asked)) throw cuda_error(asked);
    check(asked);
  }

  void give_up(const std::string& why) { broken_ = why + handle_.abort(); }
  template <class E>
  [[noreturn]] void fail(const E& error, const std::string& why) {
    give_up(why);
    throw error;
  }
  template <std::derived_from<communication_error> E>
  [[noreturn]] void fail(const E& error) {
    fail(error, error.reason());
  }
  void check(cudaError_t code, source_location where = source_location::current()) {
    if (code == cudaSuccess) return;
    detail::nccl::forget(code);
    const cuda_error error(code, where);
    fail(error, error.what());
  }

  /// Puts an operation into the stream.
  template <class Start>
  void run(const char* call, const Start& start,
           source_location where = source_location::current()) {
    require_usable();
    const detail::nccl::current_device here(at().device);
    const std::string text = operation_text(call);
    try {
      handle_.settle(ncclSuccess, text.c_str(), where);
      handle_.settle(start(), text.c_str(), where);
    } catch (const communication_error& e) {
      give_up(e.reason());
      throw;
    }
  }

  /// NCCL writes the new communicator when the old one is no longer busy, or a little later.
  void finish_split(detail::nccl::handle& made,
                    source_location where = source_location::current()) {
    try {
      if (!detail::wait_until(at().deadline, [&] { return made.get() != nullptr; })) {
        throw deadline_passed("ncclCommSplit", at().deadline, where);
      }
      made.settle(ncclSuccess, "ncclCommSplit", where);
      made.ready();
    } catch (const communication_error& e) {
      give_up(e.reason());
      throw;
    }
  }

  std::shared_ptr<void> allocate_own(offset_t bytes) const {
    const cudaError_t code = detail::nccl::group_devices::of_process().open(at().device);
    if (code != cudaErrorNotSupported) check_cuda(code);
    return detail::nccl::allocate(at(), bytes);
  }

  /// A device of the group in this process that cannot use the memory, as far as anyone can tell.
  std::optional<int> find_excluded(const void* memory) const noexcept {
    if (others_.empty()) return std::nullopt;
    cudaMemPool_t const pool = detail::nccl::pool_of(memory);
    if (pool == nullptr) return std::nullopt;
    for (const detail::nccl::neighbour& other : others_) {
      if (detail::nccl::has_access(other.device, pool) == false) return other.device;
    }
    return std::nullopt;
  }
  void require_open(const char* name, const void* memory) const {
    if (const auto device = find_excluded(memory)) {
      reject(name, "memory of a pool that CUDA device " + std::to_string(*device) + " cannot use",
             "the pool must give access to the group's devices in this process, with "
             "nccl_communicator::give_access or cudaMemPoolSetAccess");
    }
  }

  /// Device memory for the exchanges, so many bytes at least.
  std::byte* reserve(offset_t bytes) {
    if (bytes > reserved_) {
      try {
        memory_ = allocate_own(std::max(bytes, usual_exchange * size()));
      } catch (const cuda_error& e) {
        fail(e, e.what());
      }
      reserved_ = std::max(bytes, usual_exchange * size());
    }
    return static_cast<std::byte*>(memory_.get());
  }

  void gather_bytes(const void* mine, void* all, offset_t bytes) {
    require_open("mine", mine);
    require_open("all", all);
    gather(mine, all, bytes);
  }
  void gather(const void* mine, void* all, offset_t bytes) {
    run("ncclAllGather", [&] {
      return ncclAllGather(mine, all, static_cast<std::size_t>(bytes), ncclUint8, get(), stream());
    });
  }

  void broadcast_bytes(void* data, offset_t bytes, group_rank root) {
    require_open("data", data);
    broadcast_pieces(bytes, root,
                     [&](offset_t done) { return static_cast<std::byte*>(data) + done; });
  }
  /// One call for each piece, so that they come one after another: in a group, NCCL could move
  /// several at a time, and a rank passes on what it finds in its memory, which for all pieces may
  /// be the same.
  template <class Place>
  void broadcast_pieces(offset_t bytes, group_rank root, const Place& place) {
    require_usable();
    for (offset_t done = 0; done < bytes; done += piece) {
      void* const data = place(done);
      const auto n = static_cast<std::size_t>(std::min(bytes - done, piece));
      run("ncclBroadcast", [&] {
        return ncclBroadcast(data, data, n, ncclUint8, static_cast<int>(root.value), get(),
                             stream());
      });
    }
  }

  template <detail::nccl::reducible T>
  void reduce(const T* in, T* out, offset_t n, reduction how) {
    require_open("in", in);
    require_open("out", out);
    run("ncclAllReduce", [&] {
      return ncclAllReduce(in, out, static_cast<std::size_t>(n), nccl_type<T>::value,
                           detail::nccl::operation_of(how), get(), stream());
    });
  }
  template <detail::nccl::reducible T>
  void reduce_blocks(const T* in, T* out, offset_t n, reduction how) {
    require_open("in", in);
    require_open("out", out);
    run("ncclReduceScatter", [&] {
      return ncclReduceScatter(in, out, static_cast<std::size_t>(n), nccl_type<T>::value,
                               detail::nccl::operation_of(how), get(), stream());
    });
  }

  std::shared_ptr<void> memory_;
  offset_t reserved_ = 0;
  detail::nccl::handle handle_;
  std::vector<detail::nccl::neighbour>
      others_;  ///< in this process, on devices that can use own memory
  std::string broken_;
};

static_assert(communicator<nccl_communicator>);

}  // namespace seqpack
