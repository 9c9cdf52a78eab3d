/// \file
/// Many host threads, through Thrust's TBB backend. CMake component: seqpack::threads.
///
/// TBB and not OpenMP: on an idle machine both reach memory speed, on a busy one TBB is ahead
/// (docs/performance.md).
#pragma once

#include <tbb/task_arena.h>
#include <thrust/system/tbb/execution_policy.h>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/thrust.hpp"

namespace seqpack {

/// An executor that splits the rows into as many pieces as there are threads. Results do not depend
/// on the number: every row is written by one thread.
///
///     pack(host_threads{}, layout, full_row, field(ids, packed_ids));
class host_threads {
 public:
  /// As many threads as TBB would use here.
  host_threads() : count_(::tbb::this_task_arena::max_concurrency()) {}
  /// At most `count` threads; never more than TBB would use.
  /// \throws invalid_input below 1.
  explicit host_threads(offset_t count) : count_(count) {
    if (count < 1) reject("number of threads", count, "it must be at least 1");
  }
  offset_t count() const noexcept { return count_; }

 private:
  offset_t count_;
};

template <>
struct executor_traits<host_threads> : host_executor_traits {
  template <class Op>
  static void run(host_threads threads, const Op& op) {
    // Waking threads costs more than a few pages of copying.
    constexpr offset_t least_bytes = 32 * 1024;
    const offset_t pieces =
        min_of(threads.count(), op.rows() * max_of(op.row_bytes(), 1) / least_bytes);
    if (pieces <= 1) return op.process(0, op.rows());
    detail::for_each_piece(::thrust::tbb::par, op, pieces);
  }
};

}  // namespace seqpack
