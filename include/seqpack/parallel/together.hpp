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
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/layout/layout_hash.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/parallel/agree.hpp"

namespace seqpack {

namespace detail::agreeing {

/// What a rank tells of a step, in a message between ranks: what it has refused, or the layout that
/// it has come to.
struct step_record {
  bool refused = false;
  bool has_rank = false;  ///< the entry names the rank
  offset_t rank = 0;      ///< of the refusal, in the group that told of it first
  refusal why;
  bool has_layout = false;
  std::uint64_t mark = 0;
  layout_fingerprint layout;
  world_rank first;  ///< of the group that has been asked before

  void refuse(const std::string& what, const std::string& is, const std::string& must) {
    refused = true;
    why = {what, is, must};
  }
  /// Its entry ends with the name of the rank, which it is known by already.
  void refuse(const collective_mismatch& e, const group_members& members) {
    refused = true;
    has_rank = true;
    rank = e.rank().value;
    const std::string name = detail::exchanging::rank_name(members, e.rank());
    const bool named = e.entry().ends_with(name);
    const std::string what = e.entry().substr(0, e.entry().size() - (named ? name.size() : 0));
    why = {what, e.value(), e.requirement(), named ? name : ""};
  }
  /// The name stays, whatever has to be cut.
  void name_rank(const group_members& members, group_rank r) {
    why = {why.entry, why.value, why.requirement,
           " on " + detail::exchanging::rank_name(members, r)};
    has_rank = true;
    rank = r.value;
  }

  void write(detail::records::writer& to) const {
    to.flag(refused);
    to.put(first.value);
    if (refused) {
      to.flag(has_rank);
      to.put(rank);
      return why.write(to);
    }
    to.put(mark);
    to.flag(has_layout);
    if (has_layout) detail::records::traits<layout_fingerprint>::write(to, layout);
  }
  static step_record read(detail::records::reader& from) {
    step_record r;
    r.refused = from.flag("verdict");
    r.first = {from.size("first rank of the group")};
    if (r.refused) {
      r.has_rank = from.flag("kind of the entry");
      r.rank = from.size("rank");
      r.why = refusal::read(from);
      return r;
    }
    r.mark = from.get<std::uint64_t>();
    r.has_layout = from.flag("kind of the result");
    if (r.has_layout) r.layout = detail::records::traits<layout_fingerprint>::read(from);
    return r;
  }
};

/// The members of a group under the names of the first ranks of the groups that they have been in
/// before: all columns of a grid call its rows the same. Their own names, where these are not
/// different ranks.
inline group_members first_members(const group_members& members,
                                   const std::vector<step_record>& all) {
  std::vector<world_rank> firsts;
  for (const step_record& r : all) {
    if (std::find(firsts.begin(), firsts.end(), r.first) != firsts.end()) return members;
    firsts.push_back(r.first);
  }
  return group_members(std::move(firsts));
}

/// What a group makes of the records of its ranks: the first refusal, with the name of its rank;
/// where there is none, that of marks or layouts that differ.
template <communicator C>
void spread(C& group, std::string_view operation, step_record& mine) {
  if (group.size() == 1) return;
  std::vector<step_record> all;
  try {
    all = detail::exchanging::exchange_records(group, operation, mine);
  } catch (const collective_mismatch& e) {  // some ranks call something else
    if (!mine.refused) {
      mine.refuse(e, group.members());
    } else if (!mine.has_rank) {
      mine.name_rank(group.members(), group.rank());
    }
    return;
  }
  const group_members names = first_members(group.members(), all);
  const auto refused = std::find_if(all.begin(), all.end(), [](auto& r) { return r.refused; });
  if (refused != all.end()) {
    mine = *refused;
    if (!mine.has_rank) mine.name_rank(names, {refused - all.begin()});
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
    require_same_number(names, marks, "hash of the options, sizes or order of the call");
    if (mine.has_layout) require_same(names, layouts, describe_layouts);
  } catch (const collective_mismatch& e) {
    mine.refuse(e, names);
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
  throw_nesting(collective_mismatch({record.rank}, record.why.entry, record.why.value,
                                    record.why.requirement),
                own);
}

}  // namespace detail::agreeing

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
  detail::agreeing::step_record mine;
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
    mine.refuse(e, first.members());
    own = std::current_exception();
  } catch (const invalid_input& e) {
    mine.refuse(e.entry(), e.value(), e.requirement());
    own = std::current_exception();
  } catch (const std::exception& e) {
    mine.refuse(std::string(operation), "refused", e.what());
    own = std::current_exception();
  } catch (...) {
    mine.refuse(std::string(operation), "refused", "it is no std::exception");
    own = std::current_exception();
  }
  detail::agreeing::nesting(own, [&] {
    detail::agreeing::spread(first, operation, mine);
    mine.first = first.members().to_world({0});
    detail::agreeing::spread(second, operation, mine);
  });
  if (mine.refused) detail::agreeing::throw_together(mine, own);
  if constexpr (!empty) return std::move(*result);
}

}  // namespace seqpack
