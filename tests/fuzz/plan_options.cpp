// The planner's command line, of any words: options whose numbers are within their limits, or an error in
// words.
#include <cstdint>
#include <span>
#include <string>

#include "command_line.hpp"
#include "input.hpp"
#include "plan/options.hpp"

namespace {

using seqpack::testing::input;
using seqpack::testing::require;

constexpr const char* names[] = {"--capacity", "--ranks",      "--method",
                                 "--cost",     "--hidden",     "--too-long",
                                 "--pad-each", "--longest",    "--pad-total-multiple",
                                 "--seed",     "--log-normal", "--pad-total-to",
                                 "--tail",     "--format",     "balanced",
                                 "attention",  "split",        "json",
                                 "all",        "--",           "--lengths"};

/// What --help prints is not looked at, and no file of this machine is read.
bool harmless(const std::string& text) {
  if (text.starts_with("--hidden") || text.starts_with("--format")) return true;
  return text.find("-h") == text.npos && text.find("-f") == text.npos;
}

void require_limits(const plan_text::options& o) {
  const auto within = [](seqpack::offset_t number, seqpack::offset_t most) {
    require(number >= 1 && number <= most);
  };
  within(o.pad_each, plan_text::most_entries);
  within(o.pad_total_multiple.value_or(1), plan_text::most_entries);
  within(o.pad_total_to.value_or(1), plan_text::most_entries);
  within(o.capacity.value_or(1), plan_text::most_tokens);
  within(o.ranks.value_or(1), plan_text::most_ranks);
  within(o.longest, plan_text::most_entries);
  within(o.hidden, 1 << 20);
  require(o.log_normal.value_or(0) >= 0 && o.log_normal.value_or(0) <= plan_text::most_entries);
  require(o.method || o.format == plan_text::format_choice::text);
  require(o.row_capacity() >= 1 || (o.row_capacity() == seqpack::dynamic && o.pad_total_to));
  require(o.cost()(1) >= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(std::span(data, size));
  const auto words = seqpack::testing::any_command_line(in, "seqpack-plan", names, harmless);
  seqpack::testing::read_command_line(words, [](int argc, const char* const* argv) {
    const auto parsed = plan_text::parse_options(argc, argv);
    if (parsed) require_limits(*parsed);
  });
  return 0;
}
