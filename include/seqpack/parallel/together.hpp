/// \file
/// together: a step that may be refused on one rank, so that it is refused on all.
#pragma once

#include <algorithm>
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
  bool has_layout = false;
  offset_t rank = 0;  ///< of the refusal, in the group that told of it first
  short_text<64> entry;
  short_text<24> value;
  short_text<72> requirement;
  layout_fingerprint layout;

  void refuse(std::string_view what, std::string_view is, std::string_view must) {
    refused = true;
    entry = short_text<64>(what);
    value = short_text<24>(is);
    requirement = short_text<72>(must);
  }
};

/// What a group makes of the records of its ranks: the first refusal, with the name of its rank;
/// where there is none, that of the layouts.
template <communicator C>
void spread(C& group, std::string_view operation, step_record& mine) {
  if (group.size() == 1) return;
  const auto all = exchanging::exchange_records(group, operation, mine);
  const auto refused = std::find_if(all.begin(), all.end(), [](auto& r) { return r.refused; });
  if (refused != all.end()) {
    step_record first = *refused;
    std::string entry = first.entry.to_string();
    if (entry.find(" on rank ") == std::string::npos) {
      first.rank = refused - all.begin();
      entry += " on " + exchanging::rank_name(group.members(), {first.rank});
      first.refuse(entry, first.value.to_string(), first.requirement.to_string());
    }
    mine = first;
    return;
  }
  if (!mine.has_layout) return;
  std::vector<layout_fingerprint> layouts;
  layouts.reserve(all.size());
  for (const step_record& r : all) layouts.push_back(r.layout);
  try {
    require_same(group.members(), layouts, describe_layouts);
  } catch (const collective_mismatch& e) {
    mine.refuse(e.entry(), e.value(), e.requirement());
    mine.rank = e.rank().value;
  }
}

}  // namespace agreeing

/// Makes a call that checks what this rank has been given, and lets every rank of a grid know
/// whether it succeeded everywhere.
///
///     auto layout = together(tp_group, cp_group, "layout", [&] { return make_layout(lengths); });
///
/// **Collective** over both groups: one exchange in each that has more than one rank, also where
/// the call throws, so that no rank waits for one that gave up. The groups are the rows and columns
/// of a grid; what one rank refuses reaches all of them. Where the call returns a layout on the
/// host, all ranks must have come to the same one.
///
/// \param first, second the groups; with one rank each, the call is simply made
/// \param operation the same text on all ranks; 31 characters of it count
/// \param call may not communicate itself
/// \returns what the call returns
/// \throws collective_mismatch on all ranks where the call has thrown on one: it names the first
/// such rank, and has the entry, value and requirement of its invalid_input; or where the layouts
/// differ. Without other ranks, what the call throws.
template <communicator A, communicator B, class Call>
auto together(A& first, B& second, std::string_view operation,
              const Call& call) -> std::invoke_result_t<const Call&> {
  if (first.size() == 1 && second.size() == 1) return call();
  using call_result = std::invoke_result_t<const Call&>;
  constexpr bool empty = std::is_void_v<call_result>;
  std::optional<std::conditional_t<empty, bool, call_result>> result;
  agreeing::step_record mine;
  try {
    if constexpr (empty) {
      call();
    } else {
      result.emplace(call());
      if constexpr (layout<call_result>) {
        mine.has_layout = true;
        mine.layout = fingerprint(*result);
      }
    }
  } catch (const invalid_input& e) {
    mine.refuse(e.entry(), e.value(), e.requirement());
  } catch (const std::exception& e) {
    mine.refuse(operation, "refused", e.what());
  }
  agreeing::spread(first, operation, mine);
  agreeing::spread(second, operation, mine);
  if (mine.refused) {
    throw collective_mismatch({mine.rank}, mine.entry.to_string(), mine.value.to_string(),
                              mine.requirement.to_string());
  }
  if constexpr (!empty) return std::move(*result);
}

}  // namespace seqpack
