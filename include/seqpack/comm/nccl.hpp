/// \file
/// nccl_communicator: groups of CUDA devices over NCCL, which move device memory. CMake component:
/// seqpack::nccl. Needs the toolkit's and NCCL's headers, and no CUDA compiler.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/deadline.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/nccl_handle.hpp"
#include "seqpack/comm/detail/nccl_invitation.hpp"
#include "seqpack/comm/detail/nccl_neighbours.hpp"
#include "seqpack/comm/detail/nccl_pools.hpp"
#include "seqpack/comm/detail/nccl_site.hpp"
#include "seqpack/comm/detail/nccl_types.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/nccl_error.hpp"
#include "seqpack/comm/nccl_type.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/comm/split.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/source_location.hpp"
#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/exec/cuda_release.hpp"
#include "seqpack/exec/detail/open_releases.hpp"

namespace seqpack {

/// Options of an NCCL communicator.
struct nccl_options {
  /// How long a collective waits for another rank, and how long wait() waits for the stream.
  std::chrono::milliseconds deadline = default_deadline;
};

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
/// has been aborted, and refuses everything. deadline_passed names the ranks of this process that
/// have begun fewer operations; of others, and of groups that were adopted or borrowed, nothing is
/// known. Its operations have come to their end without their data, so that no memory is in flight
/// any more. Outputs may be half written. The abort, and what else is in the stream, are given the
/// deadline once more. NCCL's own abort has none: it may wait for other work on the device, and for
/// ranks of the node that live and do not come to theirs. When the time has passed, it goes on in a
/// thread that is left alone; that thread, NCCL's communicator and what NCCL has allocated for it
/// are kept until the abort or the process ends. The reason that all further calls give then ends
/// with "NCCL has not ended the communicator", or with "the stream is still busy": memory that was
/// passed to operations may be in use for as long as the stream is.
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
/// that of cudaMallocAsync, when a group is made, and whenever allocate() finds another pool there.
/// A pool of the program's own needs give_access(). Memory of a pool that a device of the group in
/// this process cannot use is refused: invalid_input on this rank alone before anything is sent,
/// and collective_mismatch on all ranks from broadcast_tensor. Memory of graphs, and of groups that
/// were adopted or borrowed, is not looked at, nor any where the runtime knows no driver, or where
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
  /// 0 to size - 1. **Collective** over the callers that have the id, which one of them got from
  /// ncclGetUniqueId.
  /// \param stream of the current device; nothing checks that it is
  /// \throws invalid_input for a size below 1, a rank outside of it, a bad option; cuda_error where
  /// there is no device; nccl_error; deadline_passed where a rank does not come. What was begun has
  /// then been aborted, with the deadline once more.
  static nccl_communicator create(const ncclUniqueId& id, offset_t size, group_rank rank,
                                  cudaStream_t stream, const nccl_options& options = {}) {
    detail::require_deadline(options.deadline);
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
    detail::require_deadline(options.deadline);
    const group_rank rank = other.rank();
    const detail::nccl::invitation mine = detail::nccl::invite(rank.value == 0);
    const auto all = detail::exchange_records(other, "nccl_communicator::over", mine);
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
    detail::require_deadline(options.deadline);
    require_sites(devices, streams);
    ncclUniqueId id;
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    std::vector<detail::nccl::handle> handles;
    for (std::size_t k = 0; k < devices.size(); ++k) {
      handles.emplace_back(detail::nccl::site{devices[k], streams[k], options.deadline});
    }
    join_all(id, handles);
    std::vector<detail::nccl::neighbours> here;
    for (const int device : devices) {
      here.emplace_back(id, detail::nccl::neighbour{world_rank{std::ssize(here)}, device});
      detail::nccl::group_devices::of_process().add(device);
    }
    detail::nccl::group_devices::of_process().open_all();
    std::vector<nccl_communicator> ranks;
    for (std::size_t k = 0; k < handles.size(); ++k) {
      const world_rank me{static_cast<offset_t>(k)};
      ranks.push_back(
          {std::move(handles[k]), {group_members::all(std::ssize(devices)), me}, here[k]});
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
  /// device_pool, or of any other pool. Not collective.
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

  /// Makes the group's device the current one, for as long as the result lives.
  [[nodiscard]] detail::nccl::current_device make_current() const {
    return detail::nccl::current_device(at().device);
  }

  /// Null after an error, and where the caller is not a member.
  ncclComm_t get() const noexcept { return handle_.get(); }
  cudaStream_t stream() const noexcept { return at().stream; }
  std::chrono::milliseconds deadline() const noexcept { return at().deadline; }

  /// An all-gather of few bytes of host memory. It has completed on return, as has everything
  /// preceding it in the stream.
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

  /// Returns when everything in the stream has completed, the caller's own work too.
  /// \throws deadline_passed where it has not before the deadline; nccl_error for an asynchronous
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
    if (!over) {
      fail(deadline_passed(operation_text("the stream"), at().deadline, describe_absent()));
    }
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
    auto [place, members] = members_of_split(*this, colour, key);
    group_seat seat{std::move(members), me()};
    const int my_colour = place ? static_cast<int>(*place) : NCCL_SPLIT_NOCOLOR;
    const int my_key = place ? static_cast<int>(seat.rank()->value) : 0;
    ncclConfig_t config = detail::nccl::non_blocking();
    detail::nccl::handle made(at());
    handle_.makes(made);
    ++splits_;
    auto here = place ? here_.part(splits_, *place) : detail::nccl::neighbours();
    run("ncclCommSplit",
        [&] { return ncclCommSplit(get(), my_colour, my_key, made.address(), &config); });
    if (place) finish_split(made);
    return {std::move(made), std::move(seat), std::move(here)};
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
  static constexpr offset_t usual_exchange = sizeof(detail::envelope);

  nccl_communicator(detail::nccl::handle handle, group_seat seat, detail::nccl::neighbours here)
      : communicator_base(std::move(seat)), handle_(std::move(handle)), here_(std::move(here)) {
    if (detail::nccl::reaches_no_peers()) return;
    std::ranges::copy_if(here_.all(), std::back_inserter(others_),
                         [&](const detail::nccl::neighbour& other) {
                           return detail::nccl::can_reach(other.device, at().device);
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
    detail::nccl::neighbours here(id, {seat.me, at.device});
    detail::nccl::group_devices::of_process().add(at.device);
    detail::nccl::handle made(at);
    ncclConfig_t config = detail::nccl::non_blocking();
    const ncclResult_t code =
        ncclCommInitRankConfig(made.address(), static_cast<int>(seat.members.size()), id,
                               static_cast<int>(seat.rank()->value), &config);
    made.settle(code, "ncclCommInitRankConfig", source_location::current());
    made.ready();
    detail::nccl::group_devices::of_process().open_all();
    return {std::move(made), std::move(seat), std::move(here)};
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
    detail::require_deadline(options.deadline);
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

  /// What is known of the ranks that this one has waited for in vain: those of this process that
  /// have begun fewer operations.
  std::string describe_absent() const {
    const std::vector<group_rank> behind = here_.find_behind(members());
    return behind.empty() ? "" : detail::absent_text(members(), behind);
  }

  /// Puts an operation into the stream.
  template <class Start>
  void run(const char* call, const Start& start,
           source_location where = source_location::current()) {
    require_usable();
    here_.begin();
    const detail::nccl::current_device here(at().device);
    const std::string text = operation_text(call);
    try {
      handle_.settle(ncclSuccess, text.c_str(), where);
      handle_.settle(start(), text.c_str(), where);
    } catch (const deadline_passed&) {
      fail(deadline_passed(text, at().deadline, describe_absent(), where));
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

  /// Device memory for the exchanges, at least `bytes` bytes.
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
  detail::nccl::neighbours here_;
  offset_t splits_ = 0;
  std::vector<detail::nccl::neighbour>
      others_;  ///< in this process, on devices that can use own memory
  std::string broken_;
};

static_assert(communicator<nccl_communicator>);

}  // namespace seqpack
