/// \file
/// What a call does to the CUDA runtime: launches, copies, allocations, waits, and the stream of
/// each. Link with runtime_audit.cpp and the shared runtime, any of them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <vector>

namespace seqpack::testing {

/// A call of the runtime that costs something.
enum class runtime_call {
  launch,            ///< a kernel
  graph_launch,      ///< a graph, whatever is in it
  host_function,     ///< put into a stream
  memset,            ///< in a stream or in the legacy default stream
  copy,              ///< the same; see copy_kind
  allocate,          ///< device memory, in the order of a stream
  release,           ///< the same
  allocate_device,   ///< device memory, outside of all streams
  release_device,    ///< the same
  allocate_pinned,   ///< memory of the host that is pinned, or that was there and is now
  release_pinned,    ///< the same
  allocate_managed,  ///< memory that moves
  synchronise,       ///< a stream, an event or the device, by name
  query,             ///< of a stream or an event: who asks in a loop waits as well
  record_event,      ///< in a stream
  wait_event,        ///< a stream, not the host
};

/// Where a copy goes, and what the host's side of it is.
enum class copy_kind {
  none,
  device,
  to_host_pinned,
  to_host_pageable,
  to_device_pinned,
  to_device_pageable,
  host
};

/// One call, in the order of the calls.
struct recorded_call {
  runtime_call what;
  copy_kind direction = copy_kind::none;
  cudaStream_t stream = nullptr;
  bool has_stream = false;  ///< the call names a stream; else it is about the device
  /// Whether the host may have to wait for the device: a synchronisation, a copy that blocks or
  /// goes from or to pageable memory, memory that is freed outside of all streams.
  bool waits = false;
  std::size_t bytes = 0;
};

/// Everything that this thread has asked of the runtime.
struct runtime_calls {
  std::vector<recorded_call> all;
  /// Calls that a shared library other than the program made of the same functions, a
  /// communication library for example: not in `all`.
  std::vector<recorded_call> of_libraries;

  int count(runtime_call what) const;
  int count(copy_kind direction) const;
  /// Calls that may make the host wait.
  int waits() const;
  /// Whether a stream was asked if it is done.
  bool polls() const;
  /// Whether every call that has a stream has this one.
  bool all_in(cudaStream_t stream) const;
  /// One line for each call.
  std::string text() const;
};

/// Counts while it lives what the thread that made it asks of the runtime. The program that is
/// linked with it defines the functions of the runtime that cost something, and each of these calls
/// the runtime's own.
///
///     runtime_audit audit;
///     pack(where, layout, full_row, field(ids, row));
///     BOOST_TEST(audit.found().count(runtime_call::launch) == 1);
class runtime_audit {
 public:
  runtime_audit();
  ~runtime_audit();
  runtime_audit(const runtime_audit&) = delete;
  runtime_audit& operator=(const runtime_audit&) = delete;

  /// What it has seen so far.
  const runtime_calls& found() const { return found_; }

  /// Functions of the runtime that this program calls, and that are neither counted nor known to
  /// cost nothing: empty, or the audit may miss something.
  static std::vector<std::string> unknown_functions();

  /// Adds a call; the library's own.
  /// \param caller where it was made
  static void add(const recorded_call& call, const void* caller);

 private:
  runtime_calls found_;
  runtime_audit* outer_;
};

}  // namespace seqpack::testing
