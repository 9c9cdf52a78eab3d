// The inspector's command line, of any words: options whose numbers are within their limits, or an
// error in words.
#include <cstdint>
#include <span>
#include <string>

#include "command_line.hpp"
#include "input.hpp"
#include "inspect/options.hpp"

namespace {

using seqpack::testing::input;
using seqpack::testing::require;

constexpr const char* names[] = {"--width",        "--pad-each",    "--pad-total-multiple",
                                 "--pad-total-to", "--tail",        "--cp-size",
                                 "--sharding",     "--label-shift", "--segment-ids",
                                 "--position-ids", "--padding-id",  "--position-start",
                                 "--tail-tokens",  "--format",      "ghost",
                                 "row_contiguous", "json",          "--",
                                 "--lengths"};

/// What --help prints is not looked at, and no file of this machine is read.
bool harmless(const std::string& text) {
  return text.find("-h") == text.npos && text.find("-f") == text.npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(std::span(data, size));
  const auto words = seqpack::testing::any_command_line(in, "seqpack-inspect", names, harmless);
  seqpack::testing::read_command_line(words, [](int argc, const char* const* argv) {
    const auto parsed = inspect::parse_options(argc, argv);
    if (!parsed) return;
    require(parsed->pad_each >= 1 && parsed->pad_each <= inspect::most_entries);
    require(parsed->cp_size >= 1 && parsed->cp_size <= inspect::most_ranks);
    require(parsed->width >= 0 && parsed->width <= seqpack::max_tokens);
    require(parsed->label_shift >= 1);
    require(parsed->tail_tokens >= seqpack::dynamic &&
            parsed->tail_tokens <= inspect::most_entries);
    require(parsed->lengths || parsed->source != inspect::row_source::lengths);
  });
  return 0;
}
