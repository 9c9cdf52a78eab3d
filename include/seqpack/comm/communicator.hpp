/// \file
/// The communicator concept, what a group of ranks can do together, and the base class of its
/// models.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "seqpack/comm/error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"

namespace seqpack {

/// How a reduction combines the values of the ranks.
enum class reduction { sum, max, min };

/// Where memory is, as far as that is known. Trivially copyable, so that ranks can exchange it.
struct memory_location {
  /// `on_closed_device` is device memory that other devices of the group cannot use and should.
  enum class kind : std::int32_t { anywhere, on_host, on_device, on_closed_device };
  kind where = kind::anywhere;
  std::int32_t device = 0;

  static constexpr memory_location host() { return {kind::on_host, 0}; }
  static constexpr memory_location on_device(int number) { return {kind::on_device, number}; }
  static constexpr memory_location closed(int number) { return {kind::on_closed_device, number}; }

  /// Whether memory at `there` serves a call that needs memory here.
  constexpr bool accepts(memory_location there) const noexcept {
    return where == kind::anywhere || there.where == kind::anywhere ||
           (where == there.where && device == there.device);
  }
  std::string to_string() const {
    if (where == kind::on_device) return "memory of CUDA device " + std::to_string(device);
    if (where == kind::on_closed_device) {
      return "memory of a pool of CUDA device " + std::to_string(device) +
             " without access for the group's other devices";
    }
    return where == kind::on_host ? "host memory" : "memory anywhere";
  }
};

/// A group of ranks, seen from one of them. Models: self_communicator, mpi_communicator,
/// nccl_communicator, and user-defined types.
///
/// Every operation but the queries is **collective**: all members make the same calls in the same
/// order. Operations that move data are **stream-ordered**: where the model has a stream they are
/// put into it and return; elsewhere they complete before they return. `wait()` returns when they
/// have completed.
/// Nothing waits longer than the deadline of the communicator for a peer; then it throws
/// deadline_passed, and the communicator refuses everything from then on.
///
/// - `c.is_member()`: whether the caller belongs to the group; rank() and all operations throw
///   invalid_input, at once and on the caller alone, where it does not
/// - `c.rank()`, `c.size()`, `c.members()`: who the caller is, how many there are, and who they are
///   in the world
/// - `c.all_gather(mine, all, n)`: n elements of every rank, to `all[rank * n ...]` on every rank
/// - `c.all_reduce(in, out, n, how)`: element-wise over the ranks, the same result on every rank
/// - `c.reduce_scatter(in, out, n, how)`: the same of size() * n elements, of which a rank gets n
/// - `c.broadcast(data, n, root)`: the root's elements to every rank
/// - `c.join_broadcast(bytes, root)`: takes part in a broadcast of `bytes` bytes, on a rank that is
///   not the root and has no memory for them
/// - `c.exchange(mine, all, bytes)`: an all-gather of few bytes of host memory, complete on return
/// - `c.split(colour, key)`: new groups of the ranks that name the same colour, in the order of
///   their keys, then ranks; a rank that names none is a member of none
/// - `c.wait()`: returns when everything put into the stream so far has completed
/// - `c.allocate(bytes)`: allocates memory that c can move; the result owns it
/// - `c.location()`, `c.location_of(p)`: the memory that c moves, and that p points to
/// - `C::on_device`: whether it moves device memory
/// - `C::template reduces<T>`: whether it can reduce elements of type T
///
/// Members that the library calls where a model has them:
///
/// - `c.keep(memory)`: keeps what `c.allocate` returned, where the engine may still use it after an
///   exception
/// - `c.stream()`: the stream of the operations; a call with an executor of another one is refused
/// - `c.make_current()`: makes the group's device the current one for as long as the result lives
/// - `c.name_operation(name)`, `c.left_out_of(members)`: for the texts of errors; communicator_base has
///   them
///
/// - `C::one_rank`: true where a group never has more than one rank: nothing that ranks would say to
///   each other is compiled then
///
/// Elements are trivially copyable and travel as bytes; only reductions depend on the type.
///
/// Of a model the library also expects that
///
/// - `mine` of all_gather may be this rank's part of `all`, and `in` of all_reduce may be `out`
/// - an operation of no elements sends nothing, and needs no arrays
/// - all_reduce gives the same bits on all ranks
/// - split begins with members_of_split, so that it is checked on all ranks
/// - after an exception that is no invalid_input it refuses everything with a communication_error
///
/// communicator_base does what can be done without an engine. One thread at a time uses a
/// communicator.
template <class C>
concept communicator =
    std::movable<C> &&
    requires(C& c, const C& k, const float* in, float* out, const std::int64_t* in64,
             std::int64_t* out64, offset_t n, const std::byte* mine, std::byte* all, reduction how,
             group_rank r, std::optional<offset_t> colour) {
      { C::on_device } -> std::convertible_to<bool>;
      requires C::template reduces<float>;
      requires C::template reduces<std::int64_t>;
      { k.is_member() } -> std::same_as<bool>;
      { k.rank() } -> std::same_as<group_rank>;
      { k.size() } -> std::same_as<offset_t>;
      { k.members() } -> std::same_as<const group_members&>;
      { k.location() } -> std::same_as<memory_location>;
      { k.location_of(mine) } -> std::same_as<memory_location>;
      c.all_gather(in, out, n);
      c.all_reduce(in, out, n, how);
      c.all_reduce(in64, out64, n, how);
      c.reduce_scatter(in, out, n, how);
      c.broadcast(out, n, r);
      c.join_broadcast(n, r);
      c.exchange(mine, all, n);
      c.wait();
      { c.split(colour, n) } -> std::same_as<C>;
      { c.allocate(n) } -> std::same_as<std::shared_ptr<void>>;
    };

/// The members of a group, and the world rank of the caller, which need not be one of them.
struct group_seat {
  group_members members;
  world_rank me;

  std::optional<group_rank> rank() const noexcept { return members.find(me); }
};

/// The base class of the library's models: who is who, and the checks of what the caller passes.
/// The checks are the caller's alone: one rank that fails them leaves the others waiting until
/// their deadline. broadcast_tensor and agree, for example, fail on all ranks together.
///
/// A model derives from it and defines `reduces`, `require_usable()`, which throws where the caller
/// is not a member or the communicator has given up, and, for sizes that are not 0:
/// `gather_bytes(mine, all, bytes)`, `broadcast_bytes(data, bytes, root)`, `reduce(in, out, n,
/// how)` and `reduce_blocks(in, out, n, how)`.
template <class Model>
class communicator_base {
 public:
  bool is_member() const noexcept { return rank_.has_value(); }
  /// \throws invalid_input where the caller is not a member.
  group_rank rank() const {
    require_member();
    return *rank_;
  }
  /// Sets the group that a caller which is a member of none was left out of: errors name it, and
  /// members() returns its members.
  void left_out_of(group_members group) {
    if (!is_member() && !group.contains(me_)) members_ = std::move(group);
  }
  /// The number of members.
  offset_t size() const noexcept { return members_.size(); }
  const group_members& members() const noexcept { return members_; }

  /// \param mine n elements
  /// \param all size() * n elements; `mine` may be this rank's part of it
  /// \throws invalid_input for a caller that is not a member, a negative n, a null pointer, arrays
  /// that overlap.
  template <element T>
  void all_gather(const T* mine, T* all, offset_t n) {
    model().require_usable();
    const auto named = name_operation("all_gather");
    require_count(n, size());
    require_array("mine", mine, n);
    require_array("all", all, n);
    if (mine != all + rank_->value * n) require_apart(mine, n, all, size() * n);
    if (n > 0) model().gather_bytes(mine, all, n * static_cast<offset_t>(sizeof(T)));
  }

  /// \param in, out n elements each, the same array or apart
  /// \throws invalid_input as all_gather does.
  template <element T, class M = Model>
    requires(M::template reduces<T>)
  void all_reduce(const T* in, T* out, offset_t n, reduction how) {
    model().require_usable();
    const auto named = name_operation("all_reduce");
    require_count(n);
    require_array("in", in, n);
    require_array("out", out, n);
    if (in != out) require_apart(in, n, out, n);
    if (n > 0) model().reduce(in, out, n, how);
  }

  /// \param in size() * n elements
  /// \param out n elements, apart from `in`
  /// \throws invalid_input as all_gather does.
  template <element T, class M = Model>
    requires(M::template reduces<T>)
  void reduce_scatter(const T* in, T* out, offset_t n, reduction how) {
    model().require_usable();
    const auto named = name_operation("reduce_scatter");
    require_count(n, size());
    require_array("in", in, n);
    require_array("out", out, n);
    require_apart(in, size() * n, out, n);
    if (n > 0) model().reduce_blocks(in, out, n, how);
  }

  /// \param data n elements: read on the root, written elsewhere
  /// \throws invalid_input as all_gather does, and for a root outside of the group.
  template <element T>
  void broadcast(T* data, offset_t n, group_rank root) {
    model().require_usable();
    const auto named = name_operation("broadcast");
    require_count(n);
    require_array("data", data, n);
    members_.require(root, "root");
    if (n > 0) model().broadcast_bytes(data, n * static_cast<offset_t>(sizeof(T)), root);
  }

  /// Names what the group is asked for, in errors, for as long as it lives. The outermost one
  /// counts.
  class [[nodiscard]] named_operation {
   public:
    named_operation(communicator_base& group, std::string_view name)
        : group_(group.operation_.empty() ? &group : nullptr) {
      if (group_ != nullptr) group_->operation_ = name;
    }
    named_operation(const named_operation&) = delete;
    named_operation& operator=(const named_operation&) = delete;
    ~named_operation() {
      if (group_ != nullptr) group_->operation_ = {};
    }

   private:
    communicator_base* group_;
  };
  /// \param name must live as long as the result
  named_operation name_operation(std::string_view name) { return {*this, name}; }

 protected:
  communicator_base(group_members members, world_rank me)
      : communicator_base(group_seat{std::move(members), me}) {}
  explicit communicator_base(group_seat seat)
      : members_(std::move(seat.members)), me_(seat.me), rank_(members_.find(me_)) {}
  /// The source is a member of no group afterwards.
  communicator_base(communicator_base&& other) noexcept
      : members_(std::exchange(other.members_, {})),
        me_(other.me_),
        rank_(std::exchange(other.rank_, std::nullopt)) {}
  communicator_base& operator=(communicator_base&& other) noexcept {
    members_ = std::exchange(other.members_, {});
    me_ = other.me_;
    rank_ = std::exchange(other.rank_, std::nullopt);
    return *this;
  }
  ~communicator_base() = default;

  world_rank me() const noexcept { return me_; }
  /// The call that is running; empty outside of one.
  std::string_view operation() const noexcept { return operation_; }
  /// "agree (MPI_Iallgather)": the call that is running, and that of the engine within it.
  std::string operation_text(std::string_view engine_call) const {
    const std::string call(engine_call);
    return operation_.empty() ? call : std::string(operation_) + " (" + call + ")";
  }

  void require_member() const {
    if (!is_member()) {
      reject("caller", "world rank " + std::to_string(me_.value),
             members_.size() == 0 ? std::string("it must be a member of the group")
                                  : "it must be a member of the group " + members_.to_string());
    }
  }
  static void require_count(offset_t n, offset_t times = 1) {
    if (n < 0 || n > max_tokens / times) {
      reject("number of elements", n, "it must be from 0 to " + std::to_string(max_tokens / times));
    }
  }

 private:
  Model& model() noexcept { return static_cast<Model&>(*this); }

  static void require_array(const char* name, const void* array, offset_t n) {
    if (array == nullptr && n > 0) {
      reject(name, "null", "it must point to " + std::to_string(n) + " elements");
    }
  }
  template <class T>
  static void require_apart(const T* a, offset_t a_size, const T* b, offset_t b_size) {
    if (bytes_of(a, a_size).overlaps(bytes_of(b, b_size))) {
      reject("arrays", "overlapping", "what a collective reads and writes must be apart");
    }
  }

  group_members members_;
  world_rank me_;
  std::optional<group_rank> rank_;
  std::string_view operation_;  ///< no part of a move: it belongs to the call that is running
};

}  // namespace seqpack
