/// \file
/// Where an operation runs: the customisation point, and the plain host.
#pragma once

#include <concepts>
#include <type_traits>

#include "seqpack/core/config.hpp"

namespace seqpack {

/// What an executor is given: independent rows, in two forms that do the same. The host asks for
/// ranges of rows, so that they can be copied in blocks; a device runs one function per unit of
/// work or, where the operation is a tiled_operation or a cooperative_operation too, does tiles or
/// rows with several threads together.
///
/// - `op.rows()`: rows of output, all of about the same cost
/// - `op.row_bytes()`: bytes that one row writes, for the choice of a grain
/// - `op.process(first, last)`: does the rows [first, last); host only
/// - `op.units()`, `op(unit)`: the same work, one unit of at most 16 bytes at a time; SEQPACK_HD
template <class Op>
concept bulk_operation = std::is_trivially_copyable_v<Op> && requires(const Op& op, offset_t n) {
  { op.rows() } -> std::same_as<offset_t>;
  { op.row_bytes() } -> std::same_as<offset_t>;
  op.process(n, n);
  { op.units() } -> std::same_as<offset_t>;
  op(n);
};

/// How an executor E runs a bulk operation. Specialise it for a type of one's own:
///
/// - `executor_traits<E>::on_device`: whether operations must be given device memory
/// - `executor_traits<E>::run(e, op)`: runs op, or puts it into the stream
template <class E>
struct executor_traits;

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
struct executor_traits<host_t> {
  static constexpr bool on_device = false;
  template <class Op>
  static void run(host_t, const Op& op) {
    op.process(0, op.rows());
  }
};

}  // namespace seqpack
