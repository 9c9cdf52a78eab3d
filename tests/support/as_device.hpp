/// \file
/// The form of an operation that a device runs, by the calling thread alone.
#pragma once

#include <cstring>
#include <memory>

#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/team.hpp"
#include "seqpack/exec/tiled.hpp"

namespace seqpack::testing {

/// The tiles [first, last), with memory that is poisoned before.
template <tiled_operation Op>
void run_tiles(const Op& op, offset_t first, offset_t last) {
  constexpr single_thread alone;
  const auto scratch = std::make_unique<typename Op::scratch_type>();
  std::memset(static_cast<void*>(scratch.get()), 0xA5, sizeof *scratch);
  op.prepare(alone, *scratch);
  for (offset_t tile = first; tile < last; ++tile) op.tile(alone, *scratch, tile, tile > first);
}

/// Does all of an operation.
template <bulk_operation Op>
void run_as_device(const Op& op) {
  if constexpr (tiled_operation<Op>) {
    run_tiles(op, 0, op.tiles());
  } else {
    for (offset_t row = op.rows() - 1; row >= 0; --row) {
      if constexpr (cooperative_operation<Op>) {
        op(single_thread{}, row);
      } else {
        op(row);
      }
    }
  }
}

/// An executor of the host that does every operation so.
struct as_device {};

}  // namespace seqpack::testing

template <>
struct seqpack::executor_traits<seqpack::testing::as_device> : seqpack::host_executor_traits {
  template <class Op>
  static void run(testing::as_device, const Op& op) {
    testing::run_as_device(op);
  }
};
