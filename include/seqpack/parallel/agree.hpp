/// \file
/// agree: makes sure that all ranks of a group have the same number or layout; for plans see
/// agree_plan.hpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/layout/layout_hash.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/parallel/detail/verdict.hpp"

namespace seqpack {

/// Makes sure that all ranks have the same number, such as a hash of what they must not differ in.
///
///     agree(group, step, "step");            // "step on rank 2 is 8: it must be 7, as on rank 0"
///
/// **Collective**: one exchange of a record of fixed size; the host waits for it.
///
/// \param value the number
/// \param what its name in errors, the same on all ranks; 127 characters of it count
/// \throws collective_mismatch on all ranks with the same text: it names the first rank that does
/// not have what most ranks have (of equally many, what the lowest rank has), both numbers, and all
/// ranks that differ. The group can be used.
/// \throws invalid_input on a caller that is not a member, alone and at once.
/// \throws communication_error, such as deadline_passed.
///
/// Allocates O(size) on the host. O(size) comparisons, and O(size^2) where ranks differ.
template <communicator C>
void agree(C& group, std::uint64_t value, std::string_view what) {
  group.rank();  // throws alone, and before anything is sent, where the caller is no member
  detail::call_record mine;
  mine.subject = what.substr(0, detail::call_record::longest_subject);
  mine.numbers[0] = {mine.subject, value};
  detail::require_together(group, "agree", mine);
}

/// The same for layouts on the host: whether all ranks put every token of this batch into the same
/// place. By what padding the bounds were made is not compared.
///
///     agree(group, layout);    // "total tokens on rank 2 is 128: it must be 96, as on rank 0"
///     agree(group, layout, "micro-batch 3");  // "total tokens of micro-batch 3 on rank 2 is ..."
///
/// \param what which layout it is, for errors, or nothing
/// \throws collective_mismatch as above; it names the first of batch size, number of sequences,
/// total tokens and context-parallel size that differs, else the layout hash.
/// \throws invalid_input for a layout of tokens without arrays, on that rank alone.
///
/// What layout_hash costs, beside the exchange.
template <communicator C, layout L>
  requires runs_on<host_t, L>
void agree(C& group, const L& layout, std::string_view what = {}) {
  group.rank();
  detail::call_record mine;
  mine.subject = what.substr(0, detail::call_record::longest_subject);
  mine.compare(fingerprint(layout));
  detail::require_together(group, "agree on a layout", mine);
}

}  // namespace seqpack
