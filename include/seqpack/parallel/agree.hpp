/// \file
/// agree: whether all ranks of a group have the same number, or the same layout.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/layout/layout_hash.hpp"
#include "seqpack/layout/layout_view.hpp"

namespace seqpack {

namespace detail::records {

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

}  // namespace detail::records

namespace detail::agreeing {

/// Where the name of a rank ends that begins there, "rank 1" or "rank 1 (world rank 3)"; elsewhere
/// the place itself.
inline std::size_t name_end(std::string_view text, std::size_t begin) {
  constexpr std::string_view digits = "0123456789";
  const auto number = [&](std::size_t at, std::string_view before) {
    if (text.substr(at, before.size()) != before) return at;
    const auto end = std::min(text.find_first_not_of(digits, at + before.size()), text.size());
    return end == at + before.size() ? at : end;
  };
  const std::size_t end = number(begin, "rank ");
  if (end == begin) return begin;
  const std::size_t world = number(end, " (world rank ");
  return world > end && text.substr(world, 1) == ")" ? world + 1 : end;
}

/// The beginning of a text that is longer than its room, and " ..."; cut between words, and not
/// within the name of a rank.
inline std::string shortened(const std::string& text, std::size_t room) {
  constexpr std::string_view mark = " ...";
  if (text.size() <= room) return text;
  const std::size_t most = room - mark.size();
  const auto space = text.rfind(' ', most);
  std::size_t cut = space == text.npos ? most : space;
  for (std::size_t k = 0; k < cut; ++k) {
    const std::size_t end = name_end(text, k);
    if (end > cut) cut = k;
    if (end > k) k = end - 1;
  }
  while (cut > 0 && text[cut - 1] == ' ') --cut;
  return text.substr(0, cut).append(mark);
}

/// What a rank has refused, in a message between ranks: an invalid_input, shortened to what fits.
struct refusal {
  /// Characters of all three together.
  static constexpr std::size_t room = 192;
  static constexpr std::size_t entry_room = 96;
  static constexpr std::size_t value_room = 40;

  std::string entry;
  std::string value;
  std::string requirement;

  refusal() = default;
  /// \param name ends the entry, and stays whatever else is cut
  refusal(const std::string& what, const std::string& is, const std::string& must,
          const std::string& name = "")
      : entry(shortened(what, entry_room - std::min(name.size(), entry_room / 2)) + name),
        value(shortened(is, value_room)),
        requirement(shortened(must, room - entry.size() - value.size())) {}

  void write(detail::records::writer& to) const {
    to.text(entry);
    to.text(value);
    to.text(requirement);
  }
  static refusal read(detail::records::reader& from) {
    refusal r;
    r.entry = from.text("entry", room);
    r.value = from.text("value", room);
    r.requirement = from.text("requirement", room);
    return r;
  }
};

/// A number of one rank beside what it must be.
struct difference {
  std::string name;
  std::string found;
  std::string expected;
};

/// The first rank of those that have what most ranks have; of equally many, the lowest.
template <class Value>
std::size_t most_common(const std::vector<Value>& values) {
  std::size_t best = 0;
  offset_t best_count = 0;
  for (std::size_t r = 0; r < values.size(); ++r) {
    const auto count = std::count(values.begin(), values.end(), values[r]);
    if (count <= best_count) continue;
    best = r;
    best_count = count;
  }
  return best;
}

/// \param describe the difference between two values that differ
/// \throws collective_mismatch about the first rank that is not with the majority, naming all.
template <class Value, class Describe>
void require_same(const group_members& members, const std::vector<Value>& values,
                  const Describe& describe) {
  if (std::count(values.begin(), values.end(), values.front()) == std::ssize(values)) return;
  const std::size_t expected = most_common(values);
  detail::exchanging::refuse(
      detail::exchanging::ranks_where(members.size(),
                                      [&](std::size_t r) { return values[r] != values[expected]; }),
      [&](group_rank r) {
        const difference d = describe(values[static_cast<std::size_t>(r.value)], values[expected]);
        const group_rank reference{static_cast<offset_t>(expected)};
        return collective_mismatch(r, d.name + " on " + detail::exchanging::rank_name(members, r),
                                   d.found,
                                   "it must be " + d.expected + ", as on " +
                                       detail::exchanging::rank_name(members, reference));
      });
}

/// The same for numbers.
template <class Number>
void require_same_number(const group_members& members, const std::vector<Number>& numbers,
                         const std::string& name) {
  require_same(members, numbers, [&](Number found, Number expected) {
    return difference{name, std::to_string(found), std::to_string(expected)};
  });
}

inline std::string hex(std::uint64_t hash) {
  std::string text = "0x";
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(hash >> shift) & 15];
  return text;
}

/// The first number in which two layouts differ, or else their hashes.
inline difference describe_layouts(const layout_fingerprint& found,
                                   const layout_fingerprint& expected) {
  struct number {
    const char* name;
    offset_t found;
    offset_t expected;
  };
  const std::array<number, 4> numbers{
      number{"batch size", found.batch, expected.batch},
      number{"number of sequences", found.sequences, expected.sequences},
      number{"total tokens", found.total_tokens, expected.total_tokens},
      number{"context-parallel size", found.cp_size, expected.cp_size}};
  for (const number& n : numbers) {
    if (n.found == n.expected) continue;
    return {n.name, std::to_string(n.found), std::to_string(n.expected)};
  }
  return {"layout hash", hex(found.hash), hex(expected.hash)};
}

/// What travels: the value, and what it is about, so that all ranks say the same.
template <class Value>
struct record {
  static constexpr std::size_t longest_name = 127;

  Value value{};
  std::string what;

  void write(detail::records::writer& to) const {
    detail::records::traits<Value>::write(to, value);
    to.text(std::string_view(what).substr(0, longest_name));
  }
  static record read(detail::records::reader& from) {
    record r;
    r.value = detail::records::traits<Value>::read(from);
    r.what = from.text("subject of the agreement", longest_name);
    return r;
  }
};

/// \param verdict is called with the values of all ranks and what they are about
template <class Value, communicator C, class Verdict>
void run(C& group, std::string_view operation, const Value& mine, std::string_view what,
         const Verdict& verdict) {
  group.rank();  // throws alone, and before anything is sent, where the caller is no member
  const auto records = detail::exchanging::exchange_records(group, operation,
                                                            record<Value>{mine, std::string(what)});
  std::vector<std::string> subjects;
  std::vector<Value> values;
  for (const auto& r : records) {
    subjects.push_back(r.what);
    values.push_back(r.value);
  }
  require_same(group.members(), subjects, [](const std::string& a, const std::string& b) {
    return difference{"subject of the agreement", "\"" + a + "\"", "\"" + b + "\""};
  });
  verdict(values, subjects.front());
}

}  // namespace detail::agreeing

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
  detail::agreeing::run(group, "agree", value, what,
                        [&](const std::vector<std::uint64_t>& values, const std::string& name) {
                          detail::agreeing::require_same_number(group.members(), values, name);
                        });
}

/// The same for layouts on the host: whether all ranks put every token into the same place, and pad
/// by the same policy, so that they will with the next batch too.
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
  detail::agreeing::run(
      group, "agree on a layout", fingerprint(layout), what,
      [&](const std::vector<layout_fingerprint>& values, const std::string& name) {
        detail::agreeing::require_same(
            group.members(), values,
            [&](const layout_fingerprint& found, const layout_fingerprint& expected) {
              auto d = detail::agreeing::describe_layouts(found, expected);
              if (!name.empty()) d.name += " of " + name;
              return d;
            });
      });
}

}  // namespace seqpack
