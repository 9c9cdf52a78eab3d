/// \file
/// What all communicators over MPI of a process share. CMake component: seqpack::mpi.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace seqpack::detail::mpi {

/// Keeps what MPI may still use after a deadline, until the process ends.
inline void keep_forever(std::shared_ptr<void> memory) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::shared_ptr<void>>();
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(memory));
}

/// Why the first communicator of this process gave up, or nothing. After that, nobody knows who of
/// the world will come to MPI_Finalize.
class first_failure {
 public:
  static void note(const std::string& why) {
    const std::lock_guard lock(mutex());
    if (reason().empty()) reason() = why;
  }
  static std::string get() {
    const std::lock_guard lock(mutex());
    return reason();
  }

 private:
  static std::mutex& mutex() {
    static std::mutex m;
    return m;
  }
  static std::string& reason() {
    static std::string text;
    return text;
  }
};

/// Whether an mpi_environment has chosen that errors of the world come back as codes.
inline std::atomic<bool> world_has_codes = false;

/// While one of them lives, errors that MPI attributes to no communicator come back as codes: Open
/// MPI hands those of non-blocking collectives to the handler of MPI_COMM_WORLD, which by default
/// ends the program. Several threads may wait at a time: the last one puts the handler back. Where
/// there is an mpi_environment, which has chosen codes for good, there is nothing to do.
class world_errors_return {
 public:
  world_errors_return() {
    if (!needed_) return;
    shared& s = state();
    const std::lock_guard lock(s.mutex);
    if (s.users++ > 0) return;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &s.former);
    s.changed = s.former != MPI_ERRORS_RETURN;
    if (s.changed) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  world_errors_return(const world_errors_return&) = delete;
  world_errors_return& operator=(const world_errors_return&) = delete;
  ~world_errors_return() {
    if (!needed_) return;
    shared& s = state();
    const std::lock_guard lock(s.mutex);
    if (--s.users > 0) return;
    if (s.changed) MPI_Comm_set_errhandler(MPI_COMM_WORLD, s.former);
    MPI_Errhandler_free(&s.former);
  }

 private:
  struct shared {
    std::mutex mutex;
    int users = 0;
    bool changed = false;
    MPI_Errhandler former = MPI_ERRHANDLER_NULL;
  };
  static shared& state() {
    static shared s;
    return s;
  }

  bool needed_ = !world_has_codes.load(std::memory_order_relaxed);
};

}  // namespace seqpack::detail::mpi
