/// \file
/// Owner of an MPI_Comm, and its members. CMake component: seqpack::mpi.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/mpi_environment.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/error.hpp"

namespace seqpack::detail::mpi {

inline bool is_running() noexcept {
  int initialised = 0;
  int finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  return initialised != 0 && finalised == 0;
}

/// An MPI_Comm, and what is to be done with it at the end.
class handle {
 public:
  handle() = default;
  handle(MPI_Comm comm, bool owned) : comm_(comm), owned_(owned) {
    // Errors come back as codes instead of ending the program.
    if (!owned_) MPI_Comm_get_errhandler(comm_, &former_);
    check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  handle(handle&& other) noexcept
      : comm_(std::exchange(other.comm_, MPI_COMM_NULL)),
        former_(std::exchange(other.former_, MPI_ERRHANDLER_NULL)),
        owned_(other.owned_) {}
  handle& operator=(handle&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(former_, other.former_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~handle() {
    if (comm_ == MPI_COMM_NULL || !is_running()) return;
    if (former_ != MPI_ERRHANDLER_NULL) {
      MPI_Comm_set_errhandler(comm_, former_);
      MPI_Errhandler_free(&former_);
    }
    if (owned_) MPI_Comm_free(&comm_);
  }
  MPI_Comm get() const noexcept { return comm_; }
  bool is_owned() const noexcept { return owned_; }
  /// Leaves the communicator to MPI: freeing it could wait for ranks that do not come.
  void leak() noexcept { owned_ = false; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Errhandler former_ = MPI_ERRHANDLER_NULL;
  bool owned_ = false;
};

/// The mark of a communicator on which ranks met in vain: a collective is pending on it, and the
/// next one of a late rank would meet that. Copies of the communicator do not have it.
class unfinished {
 public:
  static void mark(MPI_Comm comm, const std::string& why) {
    MPI_Comm_set_attr(comm, key(), new std::string(why));
  }
  /// \throws communication_error
  static void require_none(MPI_Comm comm) {
    void* value = nullptr;
    int found = 0;
    check_mpi(MPI_Comm_get_attr(comm, key(), &value, &found), "MPI_Comm_get_attr");
    if (found == 0) return;
    throw communication_error("the communicator cannot be used any more: " +
                              *static_cast<const std::string*>(value));
  }

 private:
  static int remove(MPI_Comm, int, void* value, void*) {
    delete static_cast<std::string*>(value);
    return MPI_SUCCESS;
  }
  static int key() {
    static const int made = [] {
      int k = MPI_KEYVAL_INVALID;
      check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &remove, &k, nullptr),
                "MPI_Comm_create_keyval");
      return k;
    }();
    return made;
  }
};

/// World ranks are ranks in MPI_COMM_WORLD.
inline group_seat seat_in(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) reject("communicator", "MPI_COMM_NULL", "it must be one");
  unfinished::require_none(comm);
  int between_groups = 0;
  check_mpi(MPI_Comm_test_inter(comm, &between_groups), "MPI_Comm_test_inter");
  if (between_groups != 0) {
    reject("communicator", "an intercommunicator", "it must be of one group");
  }
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(comm, &group), "MPI_Comm_group");
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  int size = 0;
  int me = 0;
  MPI_Group_size(group, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::vector<int> in_world(ranks.size());
  for (int r = 0; r < size; ++r) ranks[static_cast<std::size_t>(r)] = r;
  const int code = MPI_Group_translate_ranks(group, size, ranks.data(), world, in_world.data());
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  check_mpi(code, "MPI_Group_translate_ranks");
  std::vector<world_rank> members;
  members.reserve(in_world.size());
  for (const int r : in_world) {
    if (r == MPI_UNDEFINED) {
      reject("communicator", "with members outside of MPI_COMM_WORLD", "all must be in it");
    }
    members.push_back({r});
  }
  return {group_members(std::move(members)), world_rank{me}};
}

}  // namespace seqpack::detail::mpi
