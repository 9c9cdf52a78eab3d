/// \file
/// How ranks come to one verdict on a call that they make together: each tells the others what it
/// has refused, or else what must be the same on all of them, in one record of fixed size.
// For the folders above too.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/layout/layout_hash.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/parallel/detail/majority.hpp"
#include "seqpack/parallel/detail/refusal.hpp"

namespace seqpack::detail {

namespace records {

template <>
struct traits<layout_fingerprint> {
  static void write(writer& to, const layout_fingerprint& layout) {
    to.put(layout.hash);
    for (const offset_t n : {layout.batch, layout.sequences, layout.total_tokens, layout.cp_size}) {
      to.put(n);
    }
  }
  static layout_fingerprint read(reader& from) {
    layout_fingerprint layout;
    layout.hash = from.get<std::uint64_t>();
    layout.batch = from.size("batch size");
    layout.sequences = from.size("number of sequences");
    layout.total_tokens = from.size("total tokens");
    layout.cp_size = from.size("context-parallel size");
    return layout;
  }
};

}  // namespace records

/// A number that must be the same on all ranks. Its name does not travel: all make the same call.
struct common_number {
  std::string name;
  std::uint64_t value = 0;
};

/// What a rank tells the others of its call.
struct call_record {
  static constexpr std::size_t longest_subject = 127;
  enum class known : std::int32_t { nothing, sizes, all };

  bool refused = false;
  refusal why;
  bool has_rank = false;  ///< `why` names the rank
  offset_t rank = 0;      ///< of the refusal, in the group that told of it first
  world_rank first;       ///< of the group that has been asked before

  // Where nothing is refused: what must be the same on all ranks.
  std::string subject;
  std::array<common_number, 2> numbers{};
  known of_layout = known::nothing;
  layout_fingerprint layout;

  void compare(const layout_fingerprint& whole) {
    of_layout = known::all;
    layout = whole;
  }
  /// Only the sizes of a layout on a device are known without waiting for it.
  void compare_sizes(const layout_fingerprint& sizes) {
    of_layout = known::sizes;
    layout = sizes;
  }

  void refuse(const std::string& what, const std::string& is, const std::string& must) {
    refused = true;
    why = {what, is, must};
  }
  /// Its entry ends with the name of the rank, which it is known by already.
  void refuse(const collective_mismatch& e, const group_members& members) {
    refused = true;
    has_rank = true;
    rank = e.rank().value;
    std::string name = rank_name(members, e.rank());
    if (e.entry().ends_with(" on " + name)) name = " on " + name;
    const bool named = e.entry().ends_with(name);
    const std::string what = e.entry().substr(0, e.entry().size() - (named ? name.size() : 0));
    why = {what, e.value(), e.requirement(), named ? name : ""};
  }
  /// The exception that is being handled.
  /// \param operation what has failed where the exception does not say it
  void refuse_current(const std::string& operation, const group_members& members) {
    try {
      throw;
    } catch (const collective_mismatch& e) {
      refuse(e, members);
    } catch (const invalid_input& e) {
      refuse(e.entry(), e.value(), e.requirement());
    } catch (const std::exception& e) {
      refuse(operation, "refused", e.what());
    } catch (...) {
      refuse(operation, "refused", "it is no std::exception");
    }
  }
  /// The name stays, whatever has to be cut.
  void name_rank(const group_members& members, group_rank r) {
    why = {why.entry, why.value, why.requirement, " on " + rank_name(members, r)};
    has_rank = true;
    rank = r.value;
  }
  /// The refusal as all ranks throw it.
  collective_mismatch error() const { return {{rank}, why.entry, why.value, why.requirement}; }

  void write(records::writer& to) const {
    to.flag(refused);
    to.put(first.value);
    if (refused) {
      to.flag(has_rank);
      to.put(rank);
      return why.write(to);
    }
    to.text(std::string_view(subject).substr(0, longest_subject));
    for (const common_number& n : numbers) to.put(n.value);
    to.choice(of_layout);
    if (of_layout != known::nothing) records::traits<layout_fingerprint>::write(to, layout);
  }
  static call_record read(records::reader& from) {
    call_record r;
    r.refused = from.flag("verdict");
    r.first = {from.size("first rank of the group")};
    if (r.refused) {
      r.has_rank = from.flag("kind of the entry");
      r.rank = from.size("rank");
      r.why = refusal::read(from);
      return r;
    }
    r.subject = from.text("subject of the agreement", longest_subject);
    for (common_number& n : r.numbers) n.value = from.get<std::uint64_t>();
    r.of_layout = from.choice("kind of the layout", known::all);
    if (r.of_layout != known::nothing) r.layout = records::traits<layout_fingerprint>::read(from);
    return r;
  }
};

/// The verdict on the records of all ranks.
/// \param mine has the names of the numbers
/// \throws collective_mismatch, the same on all ranks: about the first rank that has refused, else
/// about the first that is not with the majority, naming all of them.
inline void require_all(const group_members& members, const std::vector<call_record>& all,
                        const call_record& mine) {
  refuse(ranks_where(members.size(), [&](std::size_t r) { return all[r].refused; }),
         [&](group_rank r) {
           const call_record& found = all[static_cast<std::size_t>(r.value)];
           if (found.has_rank) return found.error();
           return collective_mismatch(r, found.why.entry + " on " + rank_name(members, r),
                                      found.why.value, found.why.requirement);
         });
  const auto each = [&](const auto& get) {
    std::vector<decltype(get(mine))> values;
    values.reserve(all.size());
    for (const call_record& r : all) values.push_back(get(r));
    return values;
  };
  require_same(members, each([](const call_record& r) { return r.subject; }),
               [](const std::string& a, const std::string& b) {
                 return difference{"subject of the agreement", "\"" + a + "\"", "\"" + b + "\""};
               });
  for (std::size_t k = 0; k < mine.numbers.size(); ++k) {
    require_same_number(members, each([=](const call_record& r) { return r.numbers[k].value; }),
                        mine.numbers[k].name);
  }
  if (mine.of_layout == call_record::known::nothing) return;
  const bool hashed = std::all_of(all.begin(), all.end(), [](const call_record& r) {
    return r.of_layout == call_record::known::all;
  });
  require_same(members, each([&](const call_record& r) {
                 layout_fingerprint layout = r.layout;
                 if (!hashed) layout.hash = 0;
                 return layout;
               }),
               [&](const layout_fingerprint& found, const layout_fingerprint& expected) {
                 difference d = describe_layouts(found, expected);
                 if (!mine.subject.empty()) d.name += " of " + mine.subject;
                 return d;
               });
}

/// One exchange, and the verdict of a group.
/// \throws collective_mismatch as require_all, and where ranks call something else.
template <communicator C>
void require_together(C& group, std::string_view operation, const call_record& mine) {
  if constexpr (one_rank<C>) {
    const group_rank only = group.rank();  // throws where the caller is no member
    if (!mine.refused) return;
    call_record named = mine;
    if (!named.has_rank) named.name_rank(group.members(), only);
    throw named.error();
  } else {
    require_all(group.members(), exchange_records(group, operation, mine), mine);
  }
}

/// The members of a group under the names of the first ranks of the groups that they have been in
/// before: all columns of a grid call its rows the same. Their own names, where these are not
/// different ranks.
inline group_members first_members(const group_members& members,
                                   const std::vector<call_record>& all) {
  std::vector<world_rank> firsts;
  for (const call_record& r : all) {
    if (std::find(firsts.begin(), firsts.end(), r.first) != firsts.end()) return members;
    firsts.push_back(r.first);
  }
  return group_members(std::move(firsts));
}

/// The verdict of one of two groups, which the other one is to be told: `mine` is the refusal of
/// the whole group afterwards, where there is one.
template <communicator C>
void spread(C& group, std::string_view operation, call_record& mine) {
  std::vector<call_record> all;
  try {
    all = exchange_records(group, operation, mine);
  } catch (const collective_mismatch& e) {  // some ranks call something else
    if (!mine.refused) {
      mine.refuse(e, group.members());
    } else if (!mine.has_rank) {
      mine.name_rank(group.members(), group.rank());
    }
    return;
  }
  const auto refused = std::find_if(all.begin(), all.end(), [](auto& r) { return r.refused; });
  if (refused != all.end() && refused->has_rank) {
    mine = *refused;
    return;
  }
  const group_members names = first_members(group.members(), all);
  try {
    require_all(names, all, mine);
  } catch (const collective_mismatch& e) {
    mine.refuse(e, names);
  }
}

/// Makes a call, whose exception is noted.
/// \returns the exception, or nothing
template <class Call>
std::exception_ptr attempt(call_record& mine, std::string_view operation,
                           const group_members& members, const Call& call) {
  try {
    call();
  } catch (...) {
    mine.refuse_current(std::string(operation), members);
    return std::current_exception();
  }
  return nullptr;
}

/// Throws an error; what this rank has thrown of its own is nested in it (std::rethrow_if_nested).
template <class Error>
[[noreturn]] void throw_nesting(const Error& error, const std::exception_ptr& own) {
  try {
    std::rethrow_exception(own);
  } catch (...) {
    std::throw_with_nested(error);
  }
}

/// Makes a call that communicates; where that fails, what this rank had to tell is not lost.
template <class Call>
void nesting(const std::exception_ptr& own, const Call& call) {
  if (own == nullptr) return call();
  try {
    call();
  } catch (const collective_mismatch& e) {
    throw_nesting(e, own);
  } catch (const deadline_passed& e) {
    throw_nesting(e, own);
  } catch (const communication_error& e) {
    throw_nesting(e, own);
  }
}

/// Makes a call of all ranks, on whose result they must agree where it is a layout or has one.
/// \param verdict is given the record of this rank, and throws what all ranks throw
template <class Call, class Verdict>
auto call_together(std::string_view operation, const group_members& members, std::uint64_t mark,
                   const Call& call, const Verdict& verdict) -> std::invoke_result_t<const Call&> {
  using call_result = std::invoke_result_t<const Call&>;
  constexpr bool empty = std::is_void_v<call_result>;
  std::optional<std::conditional_t<empty, bool, call_result>> result;
  call_record mine;
  mine.numbers[0] = {"hash of the options, sizes or order of the call", mark};
  const std::exception_ptr own = attempt(mine, operation, members, [&] {
    if constexpr (empty) {
      call();
    } else {
      result.emplace(call());
      if constexpr (layout<call_result>) {
        mine.compare(fingerprint(*result));
      } else if constexpr (requires { fingerprint(result->host_layout()); }) {
        mine.compare(fingerprint(result->host_layout()));
      }
    }
  });
  nesting(own, [&] { verdict(mine); });
  if constexpr (!empty) return std::move(*result);
}

}  // namespace seqpack::detail
