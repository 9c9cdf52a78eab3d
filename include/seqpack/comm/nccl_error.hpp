/// \file
/// Errors of NCCL. CMake component: seqpack::nccl.
#pragma once

#include <nccl.h>

#include <string>

#include "seqpack/comm/error.hpp"
#include "seqpack/core/source_location.hpp"

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

}  // namespace seqpack
