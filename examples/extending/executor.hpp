// A user-defined executor: threads of the standard library, started for each operation.
#pragma once

#include <algorithm>
#include <exception>
#include <seqpack/exec/executor.hpp>
#include <thread>
#include <vector>

/// At most `count` threads, the calling one included, with `least_bytes` or more to write for each:
/// starting a thread costs more than copying a few pages.
struct jthreads {
  seqpack::offset_t count = 4;
  seqpack::offset_t least_bytes = 128 * 1024;
};

template <>
struct seqpack::executor_traits<jthreads> : seqpack::host_executor_traits {
  template <class Op>
  static void run(const jthreads& where, const Op& op) {
    const offset_t rows = op.rows();
    const offset_t bytes = rows * std::max<offset_t>(op.row_bytes(), 1);
    const offset_t pieces =
        std::max<offset_t>(std::min({where.count, rows, bytes / where.least_bytes}), 1);

    // What a piece throws must reach the caller, once no thread works any more.
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(pieces));
    const auto piece = [&](offset_t k) noexcept {
      try {
        op.process(rows * k / pieces, rows * (k + 1) / pieces);
      } catch (...) {
        errors[static_cast<std::size_t>(k)] = std::current_exception();
      }
    };
    {
      std::vector<std::jthread> threads;
      for (offset_t k = 1; k < pieces; ++k) threads.emplace_back(piece, k);
      piece(0);
    }
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  }
};

static_assert(seqpack::host_executor<jthreads> && seqpack::memory_executor<jthreads>);
