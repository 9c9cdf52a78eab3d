/// \file
/// Freeing device memory in the order of a stream, also in captures, and reporting failures. Needs the
/// headers of the CUDA toolkit, but no CUDA compiler.
#pragma once

#include <cuda_runtime_api.h>

#include "seqpack/exec/detail/open_releases.hpp"

namespace seqpack {

/// Frees the memory that was given back while the stream was being captured, which the library
/// frees no later than when it next allocates or frees in the stream; and reports memory that could
/// not be freed. Call it after a capture where nothing else follows in the stream. It puts frees
/// into the stream and waits for nothing; in a capture it frees nothing.
/// \param stream of the current device
/// \throws cuda_error for the first release on the stream that has failed since the last call; what
/// could not be freed is lost.
inline void check_releases(cudaStream_t stream) {
  auto& open = detail::releasing::open_releases::of_process();
  if (!detail::releasing::stream_capture(stream).holds_up()) open.free_held(stream);
  open.check(stream);
}

}  // namespace seqpack
