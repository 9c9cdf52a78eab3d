/// \file
/// Failures of the CUDA runtime. Needs the toolkit's headers, and no CUDA compiler.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "seqpack/core/source_location.hpp"

namespace seqpack {

/// A call of the CUDA runtime that failed: its code, and where the library made it.
class cuda_error : public std::runtime_error {
 public:
  explicit cuda_error(cudaError_t code, source_location where = source_location::current())
      : cuda_error(code, "", where) {}
  /// \param what what failed, where the place alone does not say it
  cuda_error(cudaError_t code, const std::string& what, source_location where)
      : std::runtime_error((what.empty() ? "" : what + ": ") + "CUDA error " +
                           cudaGetErrorName(code) + " (" + cudaGetErrorString(code) + ") at " +
                           where.to_string()),
        code_(code),
        where_(where) {}

  cudaError_t code() const noexcept { return code_; }
  const source_location& where() const noexcept { return where_; }

 private:
  cudaError_t code_;
  source_location where_;
};

/// \throws cuda_error unless the code is cudaSuccess; it names the place of the call.
inline void check_cuda(cudaError_t code, source_location where = source_location::current()) {
  if (code != cudaSuccess) throw cuda_error(code, where);
}

namespace detail {

/// Takes a code that is dealt with out of the runtime's record, where the program would find it.
inline void forget(cudaError_t code) noexcept {
  if (code != cudaSuccess && cudaPeekAtLastError() == code) cudaGetLastError();
}

/// Whether a call was refused because of a stream capture.
constexpr bool is_of_capture(cudaError_t code) noexcept {
  return code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread;
}

}  // namespace detail

}  // namespace seqpack
