/// \file
/// What a rank has refused, in a message to the others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "seqpack/comm/detail/record.hpp"

namespace seqpack::detail {

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

  void write(records::writer& to) const {
    to.text(entry);
    to.text(value);
    to.text(requirement);
  }
  static refusal read(records::reader& from) {
    refusal r;
    r.entry = from.text("entry", room);
    r.value = from.text("value", room);
    r.requirement = from.text("requirement", room);
    return r;
  }
};

}  // namespace seqpack::detail
