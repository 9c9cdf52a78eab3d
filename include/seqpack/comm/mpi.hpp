/// \file
/// mpi_communicator: groups of processes over MPI, which move host memory. CMake component:
/// seqpack::mpi.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/deadline.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/mpi_handle.hpp"
#include "seqpack/comm/detail/mpi_process.hpp"
#include "seqpack/comm/detail/mpi_signs.hpp"
#include "seqpack/comm/detail/mpi_types.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/mpi_environment.hpp"
#include "seqpack/comm/split.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/source_location.hpp"

namespace seqpack {

/// Options of an MPI communicator.
struct mpi_options {
  /// How long a collective waits for another rank.
  std::chrono::milliseconds deadline = default_deadline;
  /// The largest count passed to one call of MPI: larger operations are split. Below MPI's own
  /// limit only in tests. The same on all ranks.
  offset_t largest_count = INT_MAX;
};

/// A group of MPI processes. Non-blocking collectives tested against the deadline; errors are
/// exceptions. One thread at a time may use it, and MPI's thread level must allow that thread.
///
///     mpi_environment mpi;
///     auto world = mpi_communicator::duplicate(MPI_COMM_WORLD);
///     auto pair = world.split(world.rank().value / 2, 0);
///
/// After deadline_passed or mpi_error it refuses everything, and its MPI_Comm is left to MPI. The
/// arrays of the call that threw, those that it sends as well, are still MPI's: they must live
/// until the process ends. (Not so where the arrays are the library's, as in exchange, split,
/// agree, the header of broadcast_tensor and the tensors that it allocates: the library keeps
/// them.)
///
/// A rank that has given up tells the others so in a message of its own, unless the communicator is
/// borrowed. exchange(), and so every call that is checked on all ranks, looks for these: what
/// ranks that are gone have left in a collective is a communication_error, and no verdict. They
/// also tell who has waited, so that deadline_passed names the ranks that have not come, where all
/// ranks wait for all others: not in a broadcast.
class mpi_communicator : public communicator_base<mpi_communicator> {
 public:
  static constexpr bool on_device = false;
  template <class T>
  static constexpr bool reduces = detail::mpi::reducible<T>;
  /// Broadcasts move in pieces of so many bytes, a few of them at a time: as fast as one piece
  /// (docs/performance.md), and what a rank without memory for the whole needs.
  static constexpr offset_t piece = 4 << 20;

  /// A communicator of its own with the members of another: messages of the two never meet. Choose
  /// this one in doubt. **Collective** over the members of `original`, on which the ranks meet
  /// before MPI begins: an unfinished duplicate would keep MPI from making any other communicator.
  /// Where a rank does not come, a barrier stays pending on `original`: its collectives cannot be
  /// used any more on the ranks that have waited, nor those that the caller makes itself, and
  /// duplicate(), adopt() and borrow() refuse it there with a communication_error. Copies made of
  /// it before can be used.
  /// \throws invalid_input for MPI_COMM_NULL, an intercommunicator, a bad option; mpi_error;
  /// deadline_passed.
  static mpi_communicator duplicate(MPI_Comm original, const mpi_options& options = {}) {
    require_options(options);
    group_seat seat = detail::mpi::seat_in(original);
    const auto copy = std::make_shared<MPI_Comm>(MPI_COMM_NULL);
    try {
      // Twice: after the first time all have come, after the second one all know, and none has
      // given up in between.
      for (int k = 0; k < 2; ++k) {
        run_alone("MPI_Ibarrier", options,
                  [&](MPI_Request& request) { return MPI_Ibarrier(original, &request); });
      }
      run_alone("MPI_Comm_idup", options, [&](MPI_Request& request) {
        return MPI_Comm_idup(original, copy.get(), &request);
      });
    } catch (const communication_error& e) {
      detail::mpi::keep_forever(copy);  // a late rank completes it
      detail::mpi::unfinished::mark(original, e.reason());
      throw;
    }
    return mpi_communicator(detail::mpi::handle(*copy, true), std::move(seat), options);
  }
  /// Takes over a communicator, which is freed with the object. Not collective.
  static mpi_communicator adopt(MPI_Comm comm, const mpi_options& options = {}) {
    require_options(options);
    group_seat seat = detail::mpi::seat_in(comm);
    return mpi_communicator(detail::mpi::handle(comm, true), std::move(seat), options);
  }
  /// Uses a communicator that stays the caller's and must outlive the object. Until then its errors
  /// come back as codes; then its error handler is what it was. One object at a time may borrow it.
  /// Not collective.
  static mpi_communicator borrow(MPI_Comm comm, const mpi_options& options = {}) {
    require_options(options);
    group_seat seat = detail::mpi::seat_in(comm);
    return mpi_communicator(detail::mpi::handle(comm, false), std::move(seat), options);
  }

  memory_location location() const noexcept { return memory_location::host(); }
  /// MPI here moves host memory, and cannot tell what a pointer points to.
  memory_location location_of(const void*) const noexcept { return memory_location::host(); }

  MPI_Comm get() const noexcept { return handle_.get(); }
  std::chrono::milliseconds deadline() const noexcept { return options_.deadline; }

  /// An all-gather of few bytes, complete on return. MPI works on memory of the library.
  void exchange(const std::byte* mine, std::byte* all, offset_t bytes) {
    require_usable();
    require_count(bytes);
    const auto named = name_operation("exchange");
    const auto n = static_cast<std::size_t>(bytes);
    const std::size_t all_bytes = n * static_cast<std::size_t>(size());
    staging_.resize(n + all_bytes);
    std::memcpy(staging_.data(), mine, n);
    try {
      gather_bytes(staging_.data(), staging_.data() + n, bytes);
    } catch (...) {
      detail::mpi::keep_forever(std::make_shared<std::vector<std::byte>>(std::move(staging_)));
      throw;
    }
    require_nobody_left();
    std::memcpy(all, staging_.data() + n, all_bytes);
  }

  /// \throws std::bad_alloc for a rank without memory for one piece, after which the group cannot
  /// be used.
  void join_broadcast(offset_t bytes, group_rank root) {
    require_usable();
    const auto named = name_operation("join_broadcast");
    const auto bounce = make_bounce(std::min(bytes, largest_piece()));
    try {
      for (offset_t done = 0; done < bytes; done += largest_piece()) {
        broadcast_piece(bounce->data(), std::min(bytes - done, largest_piece()), root);
      }
    } catch (...) {
      detail::mpi::keep_forever(bounce);
      throw;
    }
  }

  /// Every call has completed when it returns.
  void wait() { require_usable(); }

  /// Collective over the members. What all ranks pass is exchanged first, and then the ranks meet
  /// once more, so that one which came too late finds out here; both have the deadline. MPI's own
  /// split has none: a rank that is lost in that very moment is waited for.
  mpi_communicator split(std::optional<offset_t> colour, offset_t key) {
    require_usable();
    const auto named = name_operation("split");
    auto [place, members] = members_of_split(*this, colour, key);
    const group_seat seat{std::move(members), me()};
    run("MPI_Ibarrier", [&](MPI_Request& request) { return MPI_Ibarrier(get(), &request); });
    MPI_Comm made = MPI_COMM_NULL;
    const int my_colour = place ? static_cast<int>(*place) : MPI_UNDEFINED;
    const int my_key = place ? static_cast<int>(seat.rank()->value) : 0;
    check(MPI_Comm_split(get(), my_colour, my_key, &made), "MPI_Comm_split");
    return mpi_communicator(place ? detail::mpi::handle(made, true) : detail::mpi::handle(), seat,
                            options_);
  }

  /// Keeps memory until the process ends: what a call that threw may have left to MPI.
  void keep(std::shared_ptr<void> memory) { detail::mpi::keep_forever(std::move(memory)); }

  /// Host memory. \throws std::bad_alloc
  std::shared_ptr<void> allocate(offset_t bytes) const {
    return {::operator new(static_cast<std::size_t>(bytes)), [](void* p) { ::operator delete(p); }};
  }

 private:
  friend communicator_base<mpi_communicator>;
  static constexpr std::size_t pieces_at_once = 4;

  mpi_communicator(detail::mpi::handle handle, group_seat seat, const mpi_options& options)
      : communicator_base(std::move(seat)), handle_(std::move(handle)), options_(options) {
    if (is_member()) {
      who_ = " on rank " + std::to_string(rank().value) + " of the group " + members().to_string();
      if (handle_.is_owned()) signs_ = detail::mpi::signs(get(), size(), rank());
    }
  }

  static void require_options(const mpi_options& options) {
    detail::require_deadline(options.deadline);
    if (options.largest_count < 1 || options.largest_count > INT_MAX) {
      reject("largest_count", options.largest_count,
             "it must be from 1 to " + std::to_string(INT_MAX) + ", what MPI can count to");
    }
  }
  offset_t largest_piece() const noexcept { return std::min(piece, options_.largest_count); }

  void require_usable() const {
    require_member();
    if (!broken_.empty()) {
      throw communication_error("the communicator cannot be used any more: " + broken_);
    }
  }
  void check(int code, const char* call, source_location where = source_location::current()) {
    if (code == MPI_SUCCESS) return;
    mpi_error error(code, operation_text(call), where);
    give_up(error.reason());
    throw error;
  }
  void give_up(const std::string& why) {
    broken_ = why;
    detail::mpi::first_failure::note(why);
    signs_.leave(operation());
    handle_.leak();
  }
  /// What ranks have sent before they gave up looks like what they would send now.
  void require_nobody_left(source_location where = source_location::current()) {
    signs_.listen_well();
    const auto left = signs_.find_left();
    if (!left) return;
    const communication_error error(std::string(operation()) + who_ + " has met what " +
                                        detail::rank_name(members(), left->first) +
                                        " left behind, which has given up " + left->second +
                                        " and is gone",
                                    where);
    give_up(error.reason());
    throw error;
  }
  /// What is known of the ranks that this one has waited for in vain.
  std::string describe_absent() {
    if (!signs_.are_heard()) return "";
    const std::vector<group_rank> absent = signs_.find_absent(options_.deadline);
    return absent.empty() ? "the others have come before, and given up"
                          : detail::absent_text(members(), absent);
  }

  std::shared_ptr<std::vector<std::byte>> make_bounce(offset_t bytes) {
    try {
      return std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(bytes));
    } catch (const std::bad_alloc&) {
      give_up("no memory for one piece of a broadcast");
      throw;
    }
  }

  /// Waits for a request until the deadline.
  /// \param idle is called now and then
  /// \returns whether it has completed; the code of MPI in `code`
  template <class Idle>
  static bool wait_for(MPI_Request& request, const mpi_options& options, int& code,
                       const Idle& idle) {
    constexpr int polls_between = 64;
    const detail::mpi::world_errors_return codes;
    int polls = 0;
    return detail::wait_until(options.deadline, [&] {
      int flag = 0;
      code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS || flag != 0) return true;
      if (++polls % polls_between == 0) idle();
      return false;
    });
  }
  /// Runs an operation before there is an object.
  template <class Start>
  static void run_alone(const std::string& call, const mpi_options& options, const Start& start,
                        source_location where = source_location::current()) {
    const std::string text = "duplicate (" + call + ")";
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(start(request), text.c_str(), where);
    int code = MPI_SUCCESS;
    const bool done = wait_for(request, options, code, [] {});
    check_mpi(code, text.c_str(), where);
    if (!done) throw deadline_passed(text, options.deadline, where);
  }

  /// Which ranks an operation needs.
  enum class needs { all_ranks, some_ranks };

  void finish(MPI_Request& request, const char* call, needs who, source_location where) {
    int code = MPI_SUCCESS;
    const bool done = wait_for(request, options_, code, [&] { signs_.listen(operation()); });
    check(code, call, where);
    if (done) return;
    signs_.leave(operation());
    const deadline_passed error(operation_text(call) + who_, options_.deadline,
                                who == needs::all_ranks ? describe_absent() : "", where);
    give_up(error.reason());
    throw error;
  }
  /// Starts an operation, and waits until it completes.
  template <class Start>
  void run(const char* call, const Start& start, needs who = needs::all_ranks,
           source_location where = source_location::current()) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(start(request), call, where);
    finish(request, call, who, where);
  }

  void gather_bytes(const void* mine, void* all, offset_t bytes) {
    require_usable();
    const bool in_place = mine == static_cast<const std::byte*>(all) + rank().value * bytes;
    const void* const from = in_place ? MPI_IN_PLACE : mine;
    const bool small = bytes <= options_.largest_count;
    const auto type = small ? detail::mpi::datatype(MPI_BYTE)
                            : detail::mpi::datatype::bytes(bytes, options_.largest_count);
    const int count = small ? static_cast<int>(bytes) : 1;
    run("MPI_Iallgather", [&](MPI_Request& request) {
      return MPI_Iallgather(from, count, type.get(), all, count, type.get(), get(), &request);
    });
  }

  void broadcast_piece(void* data, offset_t bytes, group_rank root) {
    run(
        "MPI_Ibcast",
        [&](MPI_Request& request) {
          return MPI_Ibcast(data, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(root.value),
                            get(), &request);
        },
        needs::some_ranks);
  }
  void finish_piece(MPI_Request& request, source_location where = source_location::current()) {
    if (request != MPI_REQUEST_NULL) finish(request, "MPI_Ibcast", needs::some_ranks, where);
  }
  void broadcast_bytes(void* data, offset_t bytes, group_rank root) {
    require_usable();
    if (bytes <= largest_piece()) return broadcast_piece(data, bytes, root);
    // A ring of requests, the oldest of which is waited for.
    std::array<MPI_Request, pieces_at_once> requests;
    requests.fill(MPI_REQUEST_NULL);
    std::size_t next = 0;
    for (offset_t done = 0; done < bytes; done += largest_piece()) {
      MPI_Request& request = requests[next++ % pieces_at_once];
      finish_piece(request);
      check(MPI_Ibcast(static_cast<std::byte*>(data) + done,
                       static_cast<int>(std::min(bytes - done, largest_piece())), MPI_BYTE,
                       static_cast<int>(root.value), get(), &request),
            "MPI_Ibcast");
    }
    for (std::size_t k = 0; k < pieces_at_once; ++k) {
      MPI_Request& request = requests[next++ % pieces_at_once];
      finish_piece(request);
    }
  }

  template <detail::mpi::reducible T>
  void reduce(const T* in, T* out, offset_t n, reduction how) {
    require_usable();
    const detail::mpi::operation<T> op(how);
    const auto type = detail::mpi::datatype::of<T>();
    for (offset_t done = 0; done < n; done += options_.largest_count) {
      const auto count = static_cast<int>(std::min(n - done, options_.largest_count));
      const void* const from = in == out ? MPI_IN_PLACE : in + done;
      run("MPI_Iallreduce", [&](MPI_Request& request) {
        return MPI_Iallreduce(from, out + done, count, type.get(), op.get(), get(), &request);
      });
    }
  }

  template <detail::mpi::reducible T>
  void reduce_blocks(const T* in, T* out, offset_t n, reduction how) {
    require_usable();
    const detail::mpi::operation<T> op(how);
    const auto type = detail::mpi::datatype::of<T>();
    if (n <= options_.largest_count) {
      run("MPI_Ireduce_scatter_block", [&](MPI_Request& request) {
        return MPI_Ireduce_scatter_block(in, out, static_cast<int>(n), type.get(), op.get(), get(),
                                         &request);
      });
      return;
    }
    // Blocks too long for one call: each goes to its rank in pieces.
    for (offset_t r = 0; r < size(); ++r) {
      for (offset_t done = 0; done < n; done += options_.largest_count) {
        const auto count = static_cast<int>(std::min(n - done, options_.largest_count));
        run(
            "MPI_Ireduce",
            [&](MPI_Request& request) {
              return MPI_Ireduce(in + r * n + done, out + done, count, type.get(), op.get(),
                                 static_cast<int>(r), get(), &request);
            },
            needs::some_ranks);
      }
    }
  }

  detail::mpi::handle handle_;
  mpi_options options_;
  detail::mpi::signs signs_;
  std::string who_;  ///< of the caller, for errors
  std::string broken_;
  std::vector<std::byte> staging_;  ///< of exchange
};

static_assert(communicator<mpi_communicator>);

}  // namespace seqpack
