// The inspector's command line, of any words: options whose numbers are within their limits, or an
// error in words.
#include <cstdint>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "input.hpp"
#include "inspect/options.hpp"

namespace {

using seqpack::testing::input;
using seqpack::testing::require;

std::string word(input& in) {
  static const char* const names[] = {"--width",        "--pad-each",    "--pad-total-multiple",
                                      "--pad-total-to", "--tail",        "--cp-size",
                                      "--sharding",     "--label-shift", "--segment-ids",
                                      "--position-ids", "--padding-id",  "--position-start",
                                      "--tail-tokens",  "--format",      "ghost",
                                      "row_contiguous", "json",          "--",
                                      "--lengths"};
  switch (in.choice(4)) {
    case 0: return names[in.choice(std::size(names))];
    case 1: return std::to_string(in.number());
    case 2: return names[in.choice(std::size(names))] + ("=" + in.text(6));
    default: return in.text(12);
  }
}

/// What --help prints is not looked at, and no file of this machine is read.
bool harmless(const std::string& text) {
  return text.find("-h") == text.npos && text.find("-f") == text.npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(std::span(data, size));
  std::vector<std::string> words{"seqpack-inspect"};
  if (in.flag()) words.emplace_back("--lengths=" + std::to_string(in.number()) + ",3");
  for (auto count = in.choice(8); count > 0; --count) {
    std::string next = word(in);
    next.resize(next.find('\0') == next.npos ? next.size() : next.find('\0'));
    if (harmless(next)) words.push_back(next);
  }
  std::vector<const char*> arguments;
  for (const std::string& text : words) arguments.push_back(text.c_str());
  try {
    const auto parsed =
        inspect::parse_options(static_cast<int>(arguments.size()), arguments.data());
    if (!parsed) return 0;
    require(parsed->pad_each >= 1 && parsed->pad_each <= inspect::most_entries);
    require(parsed->cp_size >= 1 && parsed->cp_size <= inspect::most_ranks);
    require(parsed->width >= 0 && parsed->width <= seqpack::max_tokens);
    require(parsed->label_shift >= 1);
    require(parsed->tail_tokens >= seqpack::dynamic &&
            parsed->tail_tokens <= inspect::most_entries);
    require(parsed->lengths || parsed->source != inspect::row_source::lengths);
  } catch (const std::invalid_argument& e) {
    require(*e.what() != '\0');
  }
  return 0;
}
