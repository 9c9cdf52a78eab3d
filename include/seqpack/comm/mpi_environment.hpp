/// \file
/// mpi_environment: MPI from initialisation to finalisation; and its errors. CMake component:
/// seqpack::mpi.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

#include "seqpack/comm/detail/deadline.hpp"
#include "seqpack/comm/detail/mpi_process.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/core/source_location.hpp"

namespace seqpack {

/// A call of MPI that failed: its code, MPI's own message, and where the library made it.
class mpi_error : public communication_error {
 public:
  mpi_error(int code, const std::string& operation,
            source_location where = source_location::current())
      : communication_error(
            operation + " failed: " + message(code) + " (MPI error " + std::to_string(code) + ")",
            where),
        code_(code) {}

  int code() const noexcept { return code_; }

 private:
  static std::string message(int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return "unknown error";
    return {text.data(), static_cast<std::size_t>(length)};
  }

  int code_;
};

/// \throws mpi_error unless the code is MPI_SUCCESS.
inline void check_mpi(int code, const char* operation,
                      source_location where = source_location::current()) {
  if (code != MPI_SUCCESS) throw mpi_error(code, operation, where);
}

/// Initialises and finalises MPI, for programs that do not do so themselves. One
/// object at the beginning of main, before any communicator. Errors of MPI_COMM_WORLD come back as
/// codes and do not end the program; that must stay so.
///
/// The destructor is MPI_Finalize, which waits for all ranks of the world, and does so without end
/// where one is gone. So the ranks meet first, with a deadline: the one that is given or, where a
/// communicator of this process has given up, a few seconds. Where they do not meet, it says why on
/// standard error and ends all of the world with MPI_Abort.
class mpi_environment {
 public:
  /// \param thread_level what the program's threads need, such as MPI_THREAD_FUNNELED
  /// \param deadline how long the destructor waits for the other ranks
  /// \throws mpi_error, and communication_error where MPI cannot give that level; invalid_input for
  /// a bad deadline.
  explicit mpi_environment(int thread_level = MPI_THREAD_FUNNELED,
                           std::chrono::milliseconds deadline = default_deadline)
      : deadline_(deadline) {
    detail::require_deadline(deadline);
    int provided = 0;
    check_mpi(MPI_Init_thread(nullptr, nullptr, thread_level, &provided), "MPI_Init_thread");
    if (provided < thread_level) {
      MPI_Finalize();
      throw communication_error("MPI has thread level " + std::to_string(provided) + " and not " +
                                std::to_string(thread_level));
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    detail::mpi::world_has_codes = true;
    MPI_Comm_dup(MPI_COMM_WORLD, &meeting_);
  }
  mpi_environment(const mpi_environment&) = delete;
  mpi_environment& operator=(const mpi_environment&) = delete;
  ~mpi_environment() {
    const std::string why = detail::mpi::first_failure::get();
    if (!meet(why.empty() ? deadline_ : std::min(deadline_, after_failure))) {
      std::fprintf(stderr, "the ranks do not meet at the end of MPI, so it is aborted%s%s\n",
                   why.empty() ? "" : ": ", why.c_str());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    detail::mpi::world_has_codes = false;
    MPI_Comm_free(&meeting_);
    MPI_Finalize();
  }

 private:
  static constexpr std::chrono::milliseconds after_failure = std::chrono::seconds(10);

  bool meet(std::chrono::milliseconds deadline) noexcept {
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Ibarrier(meeting_, &request) != MPI_SUCCESS) return false;
    return detail::wait_until(deadline, [&] {
      int flag = 0;
      return MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag != 0;
    });
  }

  std::chrono::milliseconds deadline_;
  MPI_Comm meeting_ = MPI_COMM_NULL;
};

}  // namespace seqpack
