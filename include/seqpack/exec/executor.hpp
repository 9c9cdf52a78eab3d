/// \file
/// Executors: the customisation point, and the plain host.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// What an executor runs: independent rows. The host asks for ranges of rows, so that they can be
/// copied in blocks. A device runs the operation in the one other form that it has: as a
/// tiled_operation, as a cooperative_operation, or with a thread for each row.
///
/// - `op.rows()`: rows of output, all of about the same cost
/// - `op.row_bytes()`: bytes that one row writes, for the choice of a grain
/// - `op.process(first, last)`: does the rows [first, last); host only
/// - `op(row)`, SEQPACK_HD: does one row, where a thread of a device is to do it alone
template <class Op>
concept bulk_operation = std::is_trivially_copyable_v<Op> && requires(const Op& op, offset_t n) {
  { op.rows() } -> std::same_as<offset_t>;
  { op.row_bytes() } -> std::same_as<offset_t>;
  op.process(n, n);
};

/// How an executor E runs operations, where its memory comes from, and how values get there and
/// back. It is the one thing to specialise for a user-defined executor:
///
///     template <>
///     struct seqpack::executor_traits<my_threads> : seqpack::host_executor_traits {
///       template <class Op>
///       static void run(const my_threads& where, const Op& op) { ... op.process(first, last) ... }
///     };
///
/// - `on_device`: whether operations must be given device memory
/// - `run(e, op)`: runs a bulk_operation of at least one row, or puts it into the stream. Each row is
///   done once, in any order; ranges of rows may be done by several threads at the same time. What
///   `process` throws must leave `run`, once no thread uses op any more
///
/// and where the library is to allocate for it, see memory_executor:
///
/// - `allocate(e, bytes)`: a `std::shared_ptr<void>` to `bytes` > 0 bytes of memory, aligned to 64
///   bytes or more, not initialised. What was put into e before the last owner is gone may still use
///   it
/// - `read(e, to, from, bytes)`: copies to the host once all that was put into e before has
///   finished, and waits for that
/// - `write(e, to, bytes, fill)`: calls `fill(p)` once, which writes `bytes` bytes to the host memory
///   at p; whatever is put into e afterwards finds them at `to`, which `allocate` gave
///
/// host_executor_traits has all but `run`.
template <class E>
struct executor_traits;

/// The traits of an executor of the host, but for `run`.
struct host_executor_traits {
  static constexpr bool on_device = false;

  /// Aligned to a cache line.
  template <class E>
  static std::shared_ptr<void> allocate(const E&, offset_t bytes) {
    static constexpr std::align_val_t line{64};
    return {::operator new(static_cast<std::size_t>(bytes), line),
            [](void* p) { ::operator delete(p, line); }};
  }
  template <class E>
  static void read(const E&, void* to, const void* from, offset_t bytes) {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  template <class E, class Fill>
  static void write(const E&, void* to, offset_t /*bytes*/, const Fill& fill) {
    fill(to);
  }
};

/// A type that says how to run bulk operations.
template <class E>
concept executor = requires {
  { executor_traits<std::remove_cvref_t<E>>::on_device } -> std::convertible_to<bool>;
};

/// An executor whose memory is a device's.
template <class E>
concept device_executor = executor<E> && executor_traits<std::remove_cvref_t<E>>::on_device;

/// An executor whose memory is the host's.
template <class E>
concept host_executor = executor<E> && !executor_traits<std::remove_cvref_t<E>>::on_device;

/// An executor that the library can allocate for.
template <class E>
concept memory_executor =
    executor<E> && requires(const std::remove_cvref_t<E>& where, void* to, const void* from,
                            offset_t bytes, void (*fill)(void*)) {
      {
        executor_traits<std::remove_cvref_t<E>>::allocate(where, bytes)
      } -> std::same_as<std::shared_ptr<void>>;
      executor_traits<std::remove_cvref_t<E>>::read(where, to, from, bytes);
      executor_traits<std::remove_cvref_t<E>>::write(where, to, bytes, fill);
    };

/// Runs an operation. It has finished on return for a host executor; on a stream it has been
/// enqueued, and nothing has synchronised.
template <executor E, bulk_operation Op>
void execute(const E& where, const Op& op) {
  if (op.rows() > 0) executor_traits<std::remove_cvref_t<E>>::run(where, op);
}

/// The calling thread, and no dependency.
struct host_t {};
/// `pack(host, ...)` runs on the calling thread.
inline constexpr host_t host{};

template <>
struct executor_traits<host_t> : host_executor_traits {
  template <class Op>
  static void run(host_t, const Op& op) {
    op.process(0, op.rows());
  }
};

}  // namespace seqpack
