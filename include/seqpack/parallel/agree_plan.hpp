/// \file
/// agree for plans: makes sure that all ranks of a group have planned alike.
#pragma once

#include <string_view>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/parallel/agree.hpp"
#include "seqpack/parallel/detail/plan_agreement.hpp"
#include "seqpack/plan/row_plan.hpp"
#include "seqpack/plan/step_plan.hpp"

namespace seqpack {

/// What agree does for numbers and layouts, for plans: whether all ranks put the same sequences into the same rows and slots.
///
///     agree(group, plan);            // "sequences[17] on rank 2 is 5: it must be 9, as on rank 0"
///     agree(group, plan, "epoch 3");  // "number of rows of epoch 3 on rank 2 is 5: it must be 4, ..."
///
/// **Collective**: one exchange of a record of fixed size and, only where plans differ, one more for
/// every factor of 24 in the numbers of a plan: 5 for a million. All ranks make as many.
///
/// \param what which plan it is, for errors, or nothing
/// \throws collective_mismatch as above; it names the first that differs of: number of ranks, rows, sequences
/// and pieces, a bound, a sequence, a piece.
///
/// Allocates O(size). O(numbers of the plan), beside the exchanges.
template <communicator C>
void agree(C& group, const row_plan& plan, std::string_view what = {}) {
  detail::require_same_plan(group, plan, 0, what);
}
/// The same for micro-batches: also, whether they are for as many data-parallel ranks. `bounds` and
/// `sequences` are those of step_plan::micro_batches.
template <communicator C>
void agree(C& group, const step_plan& plan, std::string_view what = {}) {
  detail::require_same_plan(group, plan.micro_batches(), plan.ranks(), what);
}

}  // namespace seqpack
