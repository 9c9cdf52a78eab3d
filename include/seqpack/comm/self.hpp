/// \file
/// self_communicator: the group of one, for programs without other ranks. No dependency.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/core/config.hpp"

namespace seqpack {

/// A group of one rank. Collectives copy, or do nothing where source and target are the same array;
/// copies need host memory.
class self_communicator : public communicator_base<self_communicator> {
 public:
  static constexpr bool on_device = false;
  static constexpr bool one_rank = true;
  /// There is nothing to combine.
  template <class T>
  static constexpr bool reduces = element<T>;

  self_communicator() : self_communicator(group_members::all(1)) {}

  memory_location location() const noexcept { return {}; }
  memory_location location_of(const void*) const noexcept { return {}; }

  void exchange(const std::byte* mine, std::byte* all, offset_t bytes) {
    all_gather(mine, all, bytes);
  }
  /// There is no other rank that could be the root.
  void join_broadcast(offset_t, group_rank) { require_member(); }
  void wait() { require_member(); }

  self_communicator split(std::optional<offset_t> colour, offset_t /*key*/) {
    require_member();
    return self_communicator(colour ? members() : group_members());
  }

  /// \throws std::bad_alloc
  std::shared_ptr<void> allocate(offset_t bytes) const {
    return {::operator new(static_cast<std::size_t>(bytes)), [](void* p) { ::operator delete(p); }};
  }

 private:
  friend communicator_base<self_communicator>;

  void require_usable() const { require_member(); }

  explicit self_communicator(group_members members)
      : communicator_base(std::move(members), world_rank{0}) {}

  static void gather_bytes(const void* mine, void* all, offset_t bytes) {
    if (mine != all) std::memcpy(all, mine, static_cast<std::size_t>(bytes));
  }
  static void broadcast_bytes(void*, offset_t, group_rank) {}
  template <element T>
  static void reduce(const T* in, T* out, offset_t n, reduction) {
    gather_bytes(in, out, n * static_cast<offset_t>(sizeof(T)));
  }
  template <element T>
  static void reduce_blocks(const T* in, T* out, offset_t n, reduction how) {
    reduce(in, out, n, how);
  }
};

static_assert(communicator<self_communicator>);

}  // namespace seqpack
