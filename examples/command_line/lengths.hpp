// Lists of lengths, as words of the command line and in files.
#pragma once

#include <filesystem>
#include <fstream>
#include <seqpack/core/config.hpp>
#include <seqpack/core/error.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.hpp"

namespace command_line {

using seqpack::offset_t;

inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Appends the numbers of a comma-separated line; an empty line has none.
/// \param name what errors call the list
inline void append_numbers(const char* name, std::string_view line, std::vector<offset_t>& list) {
  if (trimmed(line).empty()) return;
  for (bool more = true; more;) {
    const std::size_t comma = line.find(',');
    const auto index = static_cast<offset_t>(list.size());
    list.push_back(parse_number(seqpack::entry_name(name, index), trimmed(line.substr(0, comma))));
    more = comma != std::string_view::npos;
    if (more) line.remove_prefix(comma + 1);
  }
}

/// A file of lengths, which may be an endless one.
inline std::string read_text(const std::string& path) {
  constexpr std::size_t most_bytes = std::size_t{1} << 26;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) {
    seqpack::reject("--lengths-file", shown(path), "it must be a file that can be read");
  }
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_bytes) {
      seqpack::reject("--lengths-file", shown(path),
                      "it must be a file of at most " + std::to_string(most_bytes) + " bytes");
    }
  }
  if (file.bad()) seqpack::reject("--lengths-file", shown(path), "reading it failed");
  return text;
}

/// The numbers of a file: commas and ends of lines separate them.
inline std::vector<offset_t> read_lengths(const std::string& path) {
  std::istringstream text(read_text(path));
  std::vector<offset_t> lengths;
  for (std::string line; std::getline(text, line);) append_numbers("lengths", line, lengths);
  return lengths;
}

}  // namespace command_line
