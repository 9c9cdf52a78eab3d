/// \file
/// Exchanges a record of fixed size of each rank: the first half of every collective that is
/// checked on all ranks, so that all of them come to the same verdict.
// For the folders above too.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"

namespace seqpack::detail {

/// What travels: always this size, whatever the operation, so that ranks that call different
/// operations find out instead of waiting for each other.
struct envelope {
  static constexpr std::uint64_t current_version = 0x7365'7170'6163'6b03;  // "seqpack", 3
  static constexpr std::size_t room = records::room;

  std::uint64_t version = current_version;
  std::array<char, 32> operation{};
  records::bytes record{};

  /// Whether a call of this version has sent it.
  bool is_known() const noexcept { return version == current_version && operation.back() == 0; }
  bool same_call(const envelope& other) const noexcept {
    return version == other.version && operation == other.operation;
  }
};
static_assert(sizeof(envelope) == 256 && std::is_trivially_copyable_v<envelope>);

/// "rank 1", and "rank 1 (world rank 3)" where that is another number.
inline std::string rank_name(const group_members& members, group_rank rank) {
  const world_rank world = members.to_world(rank);
  std::string name = "rank " + std::to_string(rank.value);
  if (world.value != rank.value) name += " (world rank " + std::to_string(world.value) + ")";
  return name;
}

/// "rank 2 has not come", "rank 1, rank 2 have not come"
inline std::string absent_text(const group_members& members,
                               const std::vector<group_rank>& absent) {
  std::string text;
  for (const group_rank r : absent) text += (text.empty() ? "" : ", ") + rank_name(members, r);
  return text + (absent.size() == 1 ? " has not come" : " have not come");
}

/// "", or "; refused on 3 ranks: 2, 4, 5": where more ranks are refused than the one a verdict is
/// about.
inline std::string other_ranks(const std::vector<group_rank>& ranks) {
  if (ranks.size() < 2) return "";
  std::string text = "; refused on " + std::to_string(ranks.size()) + " ranks: ";
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    text += (k > 0 ? ", " : "") + std::to_string(ranks[k].value);
  }
  return text;
}

/// Throws, where some ranks are refused: about the first of them, naming all.
/// \param describe entry, value and requirement for a rank, as a collective_mismatch
template <class Describe>
void refuse(const std::vector<group_rank>& refused, const Describe& describe) {
  if (refused.empty()) return;
  const collective_mismatch first = describe(refused.front());
  throw collective_mismatch(first.rank(), first.entry(), first.value(),
                            first.requirement() + other_ranks(refused));
}

/// The ranks for which a question is answered with yes.
template <class Question>
std::vector<group_rank> ranks_where(offset_t size, const Question& question) {
  std::vector<group_rank> found;
  for (offset_t r = 0; r < size; ++r) {
    if (question(static_cast<std::size_t>(r))) found.push_back({r});
  }
  return found;
}

/// \throws collective_mismatch where not all ranks call the same operation.
inline void require_one_operation(const group_members& members,
                                  const std::vector<envelope>& received) {
  const auto called = [](const envelope& e) {
    return e.is_known() ? std::string(e.operation.data())
                        : std::string("one that ranks do not check, or of another seqpack");
  };
  // The first that is known, so that the others are held to it.
  const auto found = std::find_if(received.begin(), received.end(),
                                  [](const envelope& e) { return e.is_known(); });
  const envelope& reference = found == received.end() ? received.front() : *found;
  const group_rank reference_rank{&reference - received.data()};
  refuse(ranks_where(members.size(),
                     [&](std::size_t r) {
                       return !received[r].is_known() || !received[r].same_call(reference);
                     }),
         [&](group_rank r) {
           return collective_mismatch(r, "operation on " + rank_name(members, r),
                                      called(received[static_cast<std::size_t>(r.value)]),
                                      "it must be " + called(reference) + ", the operation on " +
                                          rank_name(members, reference_rank));
         });
}

/// The records in the order of the ranks.
/// \throws collective_mismatch about the first one that no rank can have written.
template <records::travels Record>
std::vector<Record> read_records(const group_members& members,
                                 const std::vector<envelope>& received) {
  std::vector<Record> found;
  std::vector<group_rank> corrupt;
  std::vector<invalid_input> errors;
  for (const envelope& e : received) {
    try {
      found.push_back(records::read<Record>(e.record));
    } catch (const invalid_input& error) {
      corrupt.push_back({&e - received.data()});
      errors.push_back(error);
    }
  }
  refuse(corrupt, [&](group_rank r) {
    const invalid_input& first = errors.front();
    return collective_mismatch(r, first.entry() + " in the record of " + rank_name(members, r),
                               first.value(), first.requirement());
  });
  return found;
}

/// Exchanges one record of each rank. One collective, complete on return.
/// \returns the records in the order of the ranks
/// \throws collective_mismatch on all ranks where not all of them call this operation, and on those
/// that have received a record which no rank can have sent.
template <records::travels Record, communicator C>
std::vector<Record> exchange_records(C& group, std::string_view operation, const Record& mine) {
  envelope sent;
  std::copy_n(operation.begin(), std::min(operation.size(), sent.operation.size() - 1),
              sent.operation.begin());
  sent.record = records::write(mine);
  [[maybe_unused]] const auto named = name_operation(group, operation);
  std::vector<envelope> received(static_cast<std::size_t>(group.size()));
  group.exchange(reinterpret_cast<const std::byte*>(&sent),
                 reinterpret_cast<std::byte*>(received.data()), sizeof(envelope));
  require_one_operation(group.members(), received);
  return read_records<Record>(group.members(), received);
}

}  // namespace seqpack::detail
