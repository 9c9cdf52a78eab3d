/// \file
/// The lists of ranks that subgroup is given, as they travel, and their verdict.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"

namespace seqpack::detail {

/// What one rank says about its list: all of it as a hash, its beginning for messages, and the
/// first entry that is wrong.
struct list_record {
  enum class mistake : std::int32_t { none, no_such_rank, named_twice };

  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  offset_t count = 0;
  std::array<std::int32_t, 20> first{};
  mistake what = mistake::none;
  std::int32_t where = 0;
  offset_t value = 0;

  void write(records::writer& to) const {
    to.put(hash);
    to.put(count);
    for (const std::int32_t rank : first) to.put(rank);
    to.choice(what);
    to.put(where);
    to.put(value);
  }
  static list_record read(records::reader& from) {
    list_record r;
    r.hash = from.get<std::uint64_t>();
    r.count = from.size("length of the list");
    for (std::int32_t& rank : r.first) rank = from.get<std::int32_t>();
    r.what = from.choice("kind of mistake", mistake::named_twice);
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    r.where = from.get<std::int32_t>("place of the mistake", 0, most);
    r.value = from.get<offset_t>();
    return r;
  }

  bool same_list(const list_record& other) const noexcept {
    return hash == other.hash && count == other.count && first == other.first;
  }
  std::string to_string() const {
    const auto shown = std::min(count, static_cast<offset_t>(first.size()));
    std::string text = "{";
    for (offset_t k = 0; k < shown; ++k) {
      text += (k > 0 ? ", " : "") + std::to_string(first[static_cast<std::size_t>(k)]);
    }
    return text + (shown < count ? ", ...}" : "}");
  }
};

inline list_record describe_list(const std::vector<group_rank>& ranks, offset_t size) {
  list_record r{.count = static_cast<offset_t>(ranks.size())};
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    const offset_t rank = ranks[k].value;
    r.hash = (r.hash ^ static_cast<std::uint64_t>(rank)) * 1099511628211u;
    if (k < r.first.size()) r.first[k] = static_cast<std::int32_t>(rank);
    if (r.what != list_record::mistake::none) continue;
    const auto before = ranks.begin() + static_cast<std::ptrdiff_t>(k);
    const bool outside = rank < 0 || rank >= size;
    if (!outside && std::find(ranks.begin(), before, ranks[k]) == before) continue;
    r.what = outside ? list_record::mistake::no_such_rank : list_record::mistake::named_twice;
    r.where = static_cast<std::int32_t>(k);
    r.value = rank;
  }
  return r;
}

/// \throws collective_mismatch on all ranks where a list is wrong or another one.
inline void require_one_list(const group_members& members,
                             const std::vector<list_record>& records) {
  const auto name = [&](group_rank r) { return rank_name(members, r); };
  const auto at = [&](group_rank r) { return records[static_cast<std::size_t>(r.value)]; };
  refuse(ranks_where(members.size(),
                     [&](std::size_t r) { return records[r].what != list_record::mistake::none; }),
         [&](group_rank r) {
           return collective_mismatch(
               r, entry_name("ranks", at(r).where) + " on " + name(r), std::to_string(at(r).value),
               at(r).what == list_record::mistake::named_twice
                   ? std::string("each rank may be named once")
                   : "it must be from 0 to " + std::to_string(members.size() - 1) +
                         ", the last rank of the group");
         });
  refuse(ranks_where(members.size(),
                     [&](std::size_t r) { return !records[r].same_list(records.front()); }),
         [&](group_rank r) {
           return collective_mismatch(
               r, "list of ranks on " + name(r), at(r).to_string(),
               "it must be " + records.front().to_string() + ", the list on rank 0");
         });
}

}  // namespace seqpack::detail
