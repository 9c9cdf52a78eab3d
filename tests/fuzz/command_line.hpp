// Command lines of any words, for programs whose options are read by a function.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "input.hpp"

namespace seqpack::testing {

/// One of the names, a number, a name with a value, or any text.
inline std::string any_word(input& in, std::span<const char* const> names) {
  const auto name = [&] { return std::string(names[in.choice(names.size())]); };
  switch (in.choice(4)) {
    case 0: return name();
    case 1: return std::to_string(in.number());
    case 2: {
      const std::string option = name();
      return option + "=" + (in.flag() ? std::to_string(in.number()) : in.text(6));
    }
    default: return in.text(12);
  }
}

/// A program's name and up to eight words.
/// \param harmless whether a word may be there: what --help prints is not looked at, and no file of
/// this machine is read
template <class Harmless>
std::vector<std::string> any_command_line(input& in, const char* program,
                                          std::span<const char* const> names,
                                          const Harmless& harmless) {
  std::vector<std::string> words{program};
  if (in.flag()) words.emplace_back("--lengths=" + std::to_string(in.number()) + ",3");
  for (auto count = in.choice(8); count > 0; --count) {
    std::string next = any_word(in, names);
    next.resize(next.find('\0') == next.npos ? next.size() : next.find('\0'));
    if (harmless(next)) words.push_back(next);
  }
  return words;
}

/// Calls parse(argc, argv), which may refuse the words and then must say something.
template <class Parse>
void read_command_line(const std::vector<std::string>& words, const Parse& parse) {
  std::vector<const char*> arguments;
  for (const std::string& text : words) arguments.push_back(text.c_str());
  try {
    parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const std::invalid_argument& e) {
    require(*e.what() != '\0');
  }
}

}  // namespace seqpack::testing
