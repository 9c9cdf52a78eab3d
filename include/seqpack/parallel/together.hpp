/// \file
/// together: makes a call on all ranks, and refuses it on all where one rank refuses it.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/layout/detail/hash.hpp"
#include "seqpack/parallel/detail/verdict.hpp"

namespace seqpack {

/// Makes a call that checks what this rank has been given, and lets every rank of a group know
/// whether it succeeded everywhere.
///
///     auto layout = together(group, "layout", [&] { return make_layout(lengths); });
///
/// **Collective**: one exchange of a record of fixed size, also where the call throws, so that no
/// rank waits for one that gave up. Where the call returns a layout on the host, or something that
/// has one as `host_layout()`, all ranks must have come to the same one.
///
/// \param group with one rank, the call is simply made
/// \param operation the same text on all ranks; 31 characters of it count
/// \param call may not communicate itself
/// \param mark a number that must be the same on all ranks, such as a hash of options
/// \returns what the call returns
/// \throws collective_mismatch on all ranks where the call has thrown on one: it names the first
/// such rank, has the entry, value and requirement of its invalid_input, and names the others that
/// have thrown; or where the marks or layouts differ. Where the call has thrown on this rank, that is
/// nested in it (std::rethrow_if_nested), and in a communication_error where the refusal cannot
/// be sent. Without other ranks, what the call throws.
///
/// Allocates O(size) on the host.
template <communicator C, class Call>
auto together(C& group, std::string_view operation, const Call& call,
              std::uint64_t mark = 0) -> std::invoke_result_t<const Call&> {
  if constexpr (detail::one_rank<C>) {
    group.rank();  // throws where the caller is no member
    return call();
  } else {
    if (group.size() == 1) return call();
    return detail::call_together(
        operation, group.members(), mark, call,
        [&](const detail::call_record& mine) { detail::require_together(group, operation, mine); });
  }
}

/// The same for a grid of ranks.
///
///     auto layout = together(tp_group, cp_group, "layout", [&] { return make_layout(lengths); });
///
/// **Collective** over both groups: one exchange in each that has more than one rank.
///
/// \param first, second the groups of this rank in the two dimensions of the grid; what one rank
/// refuses reaches all ranks of the grid. Where ranks of several groups differ, each is named by the
/// first rank of its first group. With one rank each, the call is simply made.
template <communicator A, communicator B, class Call>
auto together(A& first, B& second, std::string_view operation, const Call& call,
              std::uint64_t mark = 0) -> std::invoke_result_t<const Call&> {
  if constexpr (detail::one_rank<A> && detail::one_rank<B>) {
    first.rank();  // throws where the caller is no member
    second.rank();
    return call();
  } else {
    if (first.size() == 1 && second.size() == 1) return call();
    return detail::call_together(operation, first.members(), mark, call,
                                 [&](detail::call_record& mine) {
                                   if (first.size() > 1) detail::spread(first, operation, mine);
                                   mine.first = first.members().to_world({0});
                                   if (second.size() > 1) detail::spread(second, operation, mine);
                                   if (mine.refused) throw mine.error();
                                 });
  }
}

/// A mark for `together`: a hash of numbers that must be the same on all ranks.
template <class... Numbers>
  requires((std::integral<Numbers> || std::floating_point<Numbers>) && ...)
std::uint64_t mark_of(Numbers... numbers) {
  detail::hasher hash;
  const auto add = [&](auto number) {
    if constexpr (std::floating_point<decltype(number)>) {
      hash.add(std::bit_cast<std::int64_t>(static_cast<double>(number)));
    } else {
      hash.add(static_cast<offset_t>(number));
    }
  };
  (add(numbers), ...);
  return hash.value();
}

}  // namespace seqpack
