/// \file
/// together: a step that may be refused on one rank, so that it is refused on all.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/exchange.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/pack/layout_hash.hpp"
#include "seqpack/pack/layout_view.hpp"
#include "seqpack/parallel/agree.hpp"

namespace seqpack {

namespace agreeing {

/// What a rank tells of a step, in a message between ranks: what it has refused, cut to what fits,
/// or the layout that it has come to.
struct step_record {
  bool refused = false;
  bool has_rank = false;  ///< the entry names the rank
  bool has_layout = false;
  offset_t rank = 0;  ///< of the refusal, in the group that told of it first
  short_text<64> entry;
  short_text<24> value;
  short_text<64> requirement;
  std::uint64_t mark = 0;
  layout_fingerprint layout;

  void refuse(std::string_view what, std::string_view is, std::string_view must) {
    refused = true;
    entry = short_text<64>(what);
    value = short_text<24>(is);
    requirement = short_text<64>(must);
  }
  void refuse(const collective_mismatch& e) {
    refuse(e.entry(), e.value(), e.requirement());
    has_rank = true;
    rank = e.rank().value;
  }
  /// The name stays, whatever has to be cut.
  void name_rank(const group_members& members, group_rank r) {
    const std::string name = " on " + exchanging::rank_name(members, r);
    entry = short_text<64>(entry.to_string().substr(0, 63 - name.size()) + name);
    has_rank = true;
    rank = r.value;
  }
};

/// What a group makes of the records of its ranks: the first refusal, with the name of its rank;
/// where there is none, that of marks or layouts that differ.
template <communicator C>
void spread(C& group, std::string_view operation, step_record& mine) {
  if (group.size() == 1) return;
  std::vector<step_record> all;
  try {
    all = exchanging::exchange_records(group, operation, mine);
  } catch (const collective_mismatch& e) {  // some ranks call something else
    if (!mine.refused) {
      mine.refuse(e);
    } else if (!mine.has_rank) {
      mine.name_rank(group.members(), group.rank());
    }
    return;
  }
  const auto refused = std::find_if(all.begin(), all.end(), [](auto& r) { return r.refused; });
  if (refused != all.end()) {
    mine = *refused;
    if (!mine.has_rank) mine.name_rank(group.members(), {refused - all.begin()});
    return;
  }
  std::vector<std::uint64_t> marks;
  std::vector<layout_fingerprint> layouts;
  marks.reserve(all.size());
  layouts.reserve(all.size());
  for (const step_record& r : all) {
    marks.push_back(r.mark);
    layouts.push_back(r.layout);
  }
  try {
    require_same_number(group.members(), marks, "hash of the options, sizes or order of the call");
    if (mine.has_layout) require_same(group.members(), layouts, describe_layouts);
  } catch (const collective_mismatch& e) {
    mine.refuse(e);
  }
}

/// Throws an error; what this rank has thrown of its own is nested in it (std::rethrow_if_nested).
template <class Error>
[[noreturn]] void throw_nesting(const Error& error, const std::exception_ptr& own) {
  if (own == nullptr) throw error;
  try {
    std::rethrow_exception(own);
  } catch (...) {
    std::throw_with_nested(error);
  }
}

/// Makes a call that communicates; where that fails, what this rank had to tell is not lost.
template <class Call>
void nesting(const std::exception_ptr& own, const Call& call) {
  try {
    call();
  } catch (const deadline_passed& e) {
    throw_nesting(e, own);
  } catch (const communication_error& e) {
    if (own == nullptr) throw;
    throw_nesting(e, own);
  }
}

/// Throws what all ranks throw.
[[noreturn]] inline void throw_together(const step_record& record, const std::exception_ptr& own) {
  throw_nesting(collective_mismatch({record.rank}, record.entry.to_string(),
                                    record.value.to_string(), record.requirement.to_string()),
                own);
}

}  // namespace agreeing

/// A mark for `together`: a hash of numbers that must be the same on all ranks.
template <class... Numbers>
  requires((std::integral<Numbers> || std::floating_point<Numbers>) && ...)
std::uint64_t mark_of(Numbers... numbers) {
  layout_hashing::hasher hash;
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

/// Makes a call that checks what this rank has been given, and lets every rank of a grid know
/// whether it succeeded everywhere.
///
///     auto layout = together(tp_group, cp_group, "layout", [&] { return make_layout(lengths); });
///
/// **Collective** over both groups: one exchange in each that has more than one rank, also where
/// the call throws, so that no rank waits for one that gave up. The groups are the rows and columns
/// of a grid; what one rank refuses reaches all of them. Where the call returns a layout on the
/// host, or something that has one as `host_layout()`, all ranks must have come to the same one.
///
/// \param first, second the groups; with one rank each, the call is simply made
/// \param operation the same text on all ranks; 31 characters of it count
/// \param call may not communicate itself
/// \param mark a number that must be the same on all ranks, such as a hash of options
/// \returns what the call returns
/// \throws collective_mismatch on all ranks where the call has thrown on one: it names the first
/// such rank, and has the entry, value and requirement of its invalid_input; or where the layouts
/// differ. Where the call has thrown on this rank, that is nested in it (std::rethrow_if_nested),
/// and in a communication_error where the others cannot be told. Without other ranks, what the call
/// throws.

template <communicator A, communicator B, class Call>
auto together(A& first, B& second, std::string_view operation, const Call& call,
              std::uint64_t mark = 0) -> std::invoke_result_t<const Call&> {
  if (first.size() == 1 && second.size() == 1) return call();
  using call_result = std::invoke_result_t<const Call&>;
  constexpr bool empty = std::is_void_v<call_result>;
  std::optional<std::conditional_t<empty, bool, call_result>> result;
  agreeing::step_record mine;
  mine.mark = mark;
  std::exception_ptr own;
  try {
    if constexpr (empty) {
      call();
    } else {
      result.emplace(call());
      if constexpr (layout<call_result>) {
        mine.has_layout = true;
        mine.layout = fingerprint(*result);
      } else if constexpr (requires { fingerprint(result->host_layout()); }) {
        mine.has_layout = true;
        mine.layout = fingerprint(result->host_layout());
      }
    }
  } catch (const collective_mismatch& e) {
    mine.refuse(e);
    own = std::current_exception();
  } catch (const invalid_input& e) {
    mine.refuse(e.entry(), e.value(), e.requirement());
    own = std::current_exception();
  } catch (const std::exception& e) {
    mine.refuse(operation, "refused", e.what());
    own = std::current_exception();
  } catch (...) {
    mine.refuse(operation, "refused", "it is no std::exception");
    own = std::current_exception();
  }
  agreeing::nesting(own, [&] {
    agreeing::spread(first, operation, mine);
    agreeing::spread(second, operation, mine);
  });
  if (mine.refused) agreeing::throw_together(mine, own);
  if constexpr (!empty) return std::move(*result);
}

}  // namespace seqpack
